//! What a destination says of an event, and of itself.

use std::fmt;
use std::time::Duration;

use crate::DeliveryFailure;

/// What became of one event at its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has been delivered.
    Delivered,
    /// It had been delivered before: its effect was there already, and was not done again.
    Duplicate,
    /// It failed, and may succeed later.
    Retry {
        /// Not before this has passed; nothing leaves it to the subscription.
        after: Option<Duration>,
        /// Why it failed.
        failure: DeliveryFailure,
    },
    /// It can't be delivered now, through no fault of its own (its topic is missing): it waits and loses no attempt, and
    /// others go on.
    Hold {
        /// Asked again when this has passed.
        after: Duration,
        /// Why it can't be delivered.
        failure: DeliveryFailure,
    },
    /// It failed, and one failure does not show whether because of the event or of the destination: an answer of 404, none in
    /// time. For as long as no other key has succeeded since it began, the destination is to blame, and the event loses no
    /// attempt; afterwards the event is.
    Unclear {
        /// The destination asked not to be asked again before this has passed.
        after: Option<Duration>,
        /// Why it failed.
        failure: DeliveryFailure,
        /// What it is where the event is to blame: rejected, or tried again.
        rejects: bool,
    },
    /// It failed, and trying again is of no use.
    Reject {
        /// Why it failed.
        failure: DeliveryFailure,
    },
}

impl Outcome {
    /// A failure that may pass.
    pub fn retry(failure: DeliveryFailure) -> Self {
        Self::Retry { after: None, failure }
    }

    /// A failure that will not pass.
    pub fn reject(failure: DeliveryFailure) -> Self {
        Self::Reject { failure }
    }

    /// A failure that may be the event's or the destination's; where it is the event's, it is tried again.
    pub fn unclear(failure: DeliveryFailure) -> Self {
        Self::Unclear { after: None, failure, rejects: false }
    }

    /// Whether the event is where it should be.
    pub fn is_delivered(&self) -> bool {
        matches!(self, Self::Delivered | Self::Duplicate)
    }

    /// The word for it in logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Duplicate => "duplicate",
            Self::Retry { .. } => "retry",
            Self::Hold { .. } => "hold",
            Self::Unclear { .. } => "unclear",
            Self::Reject { .. } => "reject",
        }
    }
}

/// The destination itself can't take anything now: no event is to blame, and none loses an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Why, in a sentence without secrets.
    pub reason: String,
    /// It asked not to be asked again before this has passed; nothing leaves it to the subscription.
    pub pause: Option<Duration>,
}

impl Unavailable {
    /// Unavailable, for this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), pause: None }
    }

    /// The same, with the longer of both pauses.
    #[must_use]
    pub fn or_longer(mut self, other: &Self) -> Self {
        self.pause = self.pause.max(other.pause);
        self
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unavailable {}
