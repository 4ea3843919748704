//! Which topic an event goes to.

use std::collections::HashMap;

use postrider_core::{Error, ErrorKind, Recorded, Result, Template};

/// Which topic an event goes to: by a template, with exceptions by type.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    template: Template,
    exceptions: HashMap<String, String>,
}

impl Topics {
    pub(crate) fn new(template: &str, exceptions: HashMap<String, String>) -> Result<Self> {
        let fixed = |name: &str| {
            if valid(name) {
                return Ok(());
            }
            let message = format!(
                "{name:?} is not a valid topic name: it must have 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-'"
            );
            Err(Error::new(ErrorKind::Invalid, "kafka", message))
        };
        exceptions.values().try_for_each(|name| fixed(name))?;
        if !template.contains('{') {
            fixed(template)?;
        }
        Ok(Self { template: Template::parse(template)?, exceptions })
    }

    /// The topic of an event; nothing if what comes out can't be the name of one.
    pub(crate) fn of(&self, event: &Recorded) -> Result<String, String> {
        if let Some(topic) = self.exceptions.get(&*event.event_type) {
            return Ok(topic.clone());
        }
        let topic = self.template.fill(event);
        if valid(&topic) { Ok(topic) } else { Err(topic) }
    }
}

pub(crate) fn valid(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    (1..=249).contains(&name.len()) && name != "." && name != ".." && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_topic_can_have_is_refused() {
        assert!(Topics::new("orders events", HashMap::new()).is_err());
        assert!(Topics::new("{nothing}", HashMap::new()).is_err());
        assert!(Topics::new("{stream}", HashMap::from([("A".to_owned(), String::new())])).is_err());
        assert!(Topics::new("{stream}", HashMap::from([("A".to_owned(), "a-events".to_owned())])).is_ok());
    }

    #[test]
    fn a_catalog_learns_the_template_and_its_exceptions() {
        let sink = crate::Kafka::builder("localhost:9092").topic("{domain}-events");
        let sink = sink.topic_of("LEDGER_POSTED", "ledger-posted-events").build().expect("a sink");
        let topics = [("*", "{domain}-events"), ("LEDGER_POSTED", "ledger-posted-events")];
        let topics = topics.map(|(name, topic)| (name.to_owned(), topic.to_owned()));
        assert_eq!(postrider_core::Sink::topics(&sink), topics.into());
    }

    /// L12 and C3.
    #[test]
    fn an_exception_wins_over_the_template() {
        let exceptions = HashMap::from([("LEDGER_POSTED".to_owned(), "ledger-posted-events".to_owned())]);
        let topics = Topics::new("{domain}-events", exceptions).expect("topics");
        let topic = |event_type: &str| {
            let attributes = [("specversion", "1.0"), ("id", "1"), ("source", "s"), ("type", event_type)];
            let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let time = postrider_core::OffsetDateTime::UNIX_EPOCH;
            let arrival = postrider_core::IncomingEvent { topic: "t", key: None, number: 1, time };
            let payload = postrider_core::Payload::Json("1".into());
            let event = postrider_core::CloudEvents::read(&attributes, payload, &arrival).expect("an event");
            topics.of(&event).expect("a topic")
        };
        assert_eq!(topic("LEDGER_POSTED"), "ledger-posted-events");
        assert_eq!(topic("loopers.order.paid.v1"), "order-events");
    }
}
