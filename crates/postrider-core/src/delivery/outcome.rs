//! Outcomes: what a destination reports about an event, and about itself.

use std::fmt;
use std::time::Duration;

use crate::DeliveryFailure;

/// The outcome of delivering one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Delivered.
    Delivered,
    /// Delivered before: its effect already existed and was not repeated.
    Duplicate,
    /// Failed, and may succeed later.
    Retry {
        /// Retry no sooner than this; `None` uses the subscription's policy.
        after: Option<Duration>,
        /// Why it failed.
        failure: DeliveryFailure,
    },
    /// Can't be delivered now, and the event is not to blame (its topic is missing): it waits and loses no attempt, and others
    /// go on.
    Hold {
        /// Retry after this time.
        after: Duration,
        /// Why it can't be delivered.
        failure: DeliveryFailure,
    },
    /// Failed, and one failure does not show whether the event or the destination is the cause: a 404, a timeout. As long as no
    /// other key has succeeded since it started, the destination is blamed, and the event loses no attempt; after that, the
    /// event is blamed.
    Unclear {
        /// The destination asked to wait this long.
        after: Option<Duration>,
        /// Why it failed.
        failure: DeliveryFailure,
        /// If the event is to blame: whether it is rejected (`true`) or retried.
        rejects: bool,
    },
    /// Failed, and a retry can't help.
    Reject {
        /// Why it failed.
        failure: DeliveryFailure,
    },
}

impl Outcome {
    /// A temporary failure.
    pub fn retry(failure: DeliveryFailure) -> Self {
        Self::Retry { after: None, failure }
    }

    /// A permanent failure.
    pub fn reject(failure: DeliveryFailure) -> Self {
        Self::Reject { failure }
    }

    /// A failure of the event or of the destination; if it is the event's, the event is retried.
    pub fn unclear(failure: DeliveryFailure) -> Self {
        Self::Unclear { after: None, failure, rejects: false }
    }

    /// Whether the event was delivered, now or before.
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

/// The destination is unavailable: no event is to blame, and none loses an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Why, in a sentence without secrets.
    pub reason: String,
    /// The destination asked to wait this long; `None` uses the subscription's policy.
    pub pause: Option<Duration>,
}

impl Unavailable {
    /// Unavailable, for this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), pause: None }
    }

    /// Keeps the longer of both pauses.
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
