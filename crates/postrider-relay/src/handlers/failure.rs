//! The error of a handler.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use postrider_core::{DeliveryFailure, Excerpt, Outcome};

/// Why a handler failed, and what happens next.
///
/// `?` converts any error into one that is retried. It does not implement `Error` itself, which makes that conversion possible.
///
/// ```
/// use std::time::Duration;
///
/// use postrider::{Event, Failure, Received};
///
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct OrderPaid { order: String, amount: i64 }
/// async fn invoice(event: Received<OrderPaid>) -> Result<(), Failure> {
///     let order: i64 = event.order.parse()?; // any error: retried
///     if event.amount < 0 {
///         return Err(Failure::reject("the amount is negative").code("amount")); // dead at once
///     }
///     if event.attempt() == 1 {
///         return Err(Failure::retry_after(Duration::from_secs(60), "the order is not ready"));
///     }
///     println!("order {order}: {}", event.amount);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(crate) class: FailureClass,
    code: String,
    message: String,
    answer: Option<Excerpt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FailureClass {
    Retry(Option<Duration>),
    Reject,
    Wait,
    Hold(Duration),
    /// The event's or the service's: told apart by what else succeeds.
    Unclear {
        rejects: bool,
    },
}

/// When an event whose handler could not reach what it needs is asked for again, where others of its batch were handled.
const SOON: Duration = Duration::from_secs(1);
/// Longer messages are cut: they are kept with every failed event.
const LONGEST: usize = 2000;

impl Failure {
    pub(crate) fn new(class: FailureClass, code: &str, message: impl fmt::Display) -> Self {
        let mut message = message.to_string();
        if message.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
            message.truncate(end);
            message.push('…');
        }
        Self { class, code: code.to_owned(), message, answer: None }
    }

    /// Retry, by the subscription's policy.
    pub fn retry(message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Retry(None), "failed", message)
    }

    /// Retry, no sooner than after this pause.
    pub fn retry_after(pause: Duration, message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Retry(Some(pause)), "failed", message)
    }

    /// Don't retry: the event is dead at once, until an operator acts.
    pub fn reject(message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Reject, "rejected", message)
    }

    /// A dependency of the handler is unavailable: no event is to blame or loses an attempt, and the subscription waits.
    pub fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Wait, "unavailable", message)
    }

    /// The event or the service that the handler called may be to blame, as after a 503 or a timeout.
    ///
    /// As long as no other key of the subscription succeeds, the service is blamed: no event loses an attempt, and the relay tries
    /// again with one event at a time, after growing pauses. Once another key has succeeded, the event is retried by the policy. A
    /// Kafka consumer has nothing to compare with: there, it is a [`retry`](Self::retry).
    pub fn unclear(message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Unclear { rejects: false }, "failed", message)
    }

    /// It waits for something else, and loses no attempt.
    pub(crate) fn hold(after: Duration, message: impl fmt::Display) -> Self {
        Self::new(FailureClass::Hold(after), "held", message)
    }

    /// Sets a code for programs: a short word.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// Adds the response of an external system. Its start is stored with the attempt for operators, and never logged.
    #[must_use]
    pub fn answer(mut self, answer: impl AsRef<[u8]>) -> Self {
        self.answer = Excerpt::new(answer.as_ref());
        self
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether it is retried.
    pub fn is_retry(&self) -> bool {
        matches!(self.class, FailureClass::Retry(_) | FailureClass::Unclear { rejects: false })
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        let failure = DeliveryFailure::new(self.code, self.message).answer(self.answer);
        match self.class {
            FailureClass::Retry(after) => Outcome::Retry { after, failure },
            FailureClass::Reject => Outcome::Reject { failure },
            FailureClass::Wait => Outcome::Hold { after: SOON, failure },
            FailureClass::Hold(after) => Outcome::Hold { after, failure },
            FailureClass::Unclear { rejects } => Outcome::Unclear { after: None, failure, rejects },
        }
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: Box<dyn StdError + Send + Sync> = error.into();
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many errors repeat their source in their own text.
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        Self::retry(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_question_mark() -> Result<(), Failure> {
        Err(std::io::Error::other("the disk is full"))?;
        Ok(())
    }

    #[test]
    fn any_error_becomes_a_retry() {
        let failure = by_question_mark().expect_err("it failed");
        assert!(failure.is_retry());
        assert_eq!(failure.message(), "the disk is full");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let failure = Failure::reject("é".repeat(3000));
        assert!(failure.message().len() <= LONGEST + '…'.len_utf8());
        assert!(!failure.is_retry());
    }
}
