//! Which topic dead letters go to.

use postrider_core::Result;

use crate::client::invalid::invalid;
use crate::dead_letter::dead_letters::DeadLetters;
use crate::produce::topic;

/// Which topic the dead letters of a topic go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Default for Address {
    fn default() -> Self {
        Self(DeadLetters::TOPIC.to_owned())
    }
}

impl Address {
    pub(crate) fn new(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }

    /// The topic for the dead letters of `topic`.
    pub(crate) fn of(&self, topic: &str) -> String {
        self.0.replace("{topic}", topic)
    }

    /// Whether it makes the name of another topic from each of these.
    pub(crate) fn check<'a>(&self, topics: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        for topic in topics.clone() {
            let letters = self.of(topic);
            if !topic::valid(&letters) {
                return Err(invalid(&format!(
                    "{letters:?}, the dead-letter topic, is not a valid topic name"
                )));
            }
            if topics.clone().any(|consumed| consumed == letters) {
                let message = format!(
                    "{letters} is consumed, so it can't be the dead-letter topic of {topic}; choose another one"
                );
                return Err(invalid(&message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_no_topic_or_consumed_itself_is_refused() {
        assert_eq!(Address::default().of("orders"), "orders.DLT");
        assert!(Address::new("{topic} dead").check(["orders"].into_iter()).is_err());
        assert!(Address::new("{topic}").check(["orders"].into_iter()).is_err());
        assert!(Address::new("all-dead").check(["orders", "payments"].into_iter()).is_ok());
    }
}
