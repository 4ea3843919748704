//! Open deliveries, as operators see them.

use time::OffsetDateTime;

use crate::{DeliveryState, Pattern, Recorded};

/// Filters open deliveries. A field that is not set does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenDeliveryQuery {
    /// `true`: those that will be retried or wait for one that will. `false`: the dead ones.
    pub retrying: bool,
    /// Only this subscription.
    pub subscription: Option<String>,
    /// Only event types that match this.
    pub event_type: Option<Pattern>,
    /// Only those whose last failure has this code.
    pub error_code: Option<String>,
    /// Last attempted at this time or later.
    pub from: Option<OffsetDateTime>,
    /// Last attempted before this time.
    pub until: Option<OffsetDateTime>,
    /// Only those after this id and subscription: the last of the previous page.
    pub after: Option<(i64, String)>,
    /// Leave out payloads (JSON null) and headers (none), to save memory if they are not needed.
    pub bare: bool,
    /// Maximum number of results; 0 means 1,000.
    pub limit: u32,
}

impl OpenDeliveryQuery {
    /// Maximum number of results.
    pub fn most(&self) -> u32 {
        if self.limit == 0 { 1000 } else { self.limit }
    }
}

/// A delivery that did not succeed at its first attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDelivery {
    /// The subscription.
    pub subscription: String,
    /// The event.
    pub event: Recorded,
    /// Dead, retrying, or waiting for one that is.
    pub state: DeliveryState,
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the next attempt.
    pub next_at: Option<OffsetDateTime>,
    /// When it first failed.
    pub first_failed_at: Option<OffsetDateTime>,
    /// Time of the last attempt.
    pub last_attempt_at: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub error_code: Option<String>,
    /// The message of its last failure.
    pub error_message: Option<String>,
}
