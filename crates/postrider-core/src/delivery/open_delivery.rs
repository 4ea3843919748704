//! Deliveries that did not simply succeed, as operators see them.

use time::OffsetDateTime;

use crate::{DeliveryState, Pattern, Recorded};

/// Which deliveries to show. What is not set does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenDeliveryQuery {
    /// Those that are to be tried again, or wait behind one that is; not the dead.
    pub retrying: bool,
    /// Of one subscription only.
    pub subscription: Option<String>,
    /// Of event types that fit this.
    pub event_type: Option<Pattern>,
    /// Whose last failure has this code.
    pub error_code: Option<String>,
    /// Last tried then or later.
    pub from: Option<OffsetDateTime>,
    /// Last tried before that.
    pub until: Option<OffsetDateTime>,
    /// Those behind this id and subscription: the last of the page before.
    pub after: Option<(i64, String)>,
    /// Without payloads and headers: JSON null, and none. For who only names or counts them, and should not hold them in memory.
    pub bare: bool,
    /// At most this many; 0 means 1,000.
    pub limit: u32,
}

impl OpenDeliveryQuery {
    /// How many at most.
    pub fn most(&self) -> u32 {
        if self.limit == 0 { 1000 } else { self.limit }
    }
}

/// A delivery that did not simply succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDelivery {
    /// The subscription.
    pub subscription: String,
    /// The event.
    pub event: Recorded,
    /// Dead, retrying, or waiting behind one that is.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next.
    pub next_at: Option<OffsetDateTime>,
    /// When it first failed.
    pub first_failed_at: Option<OffsetDateTime>,
    /// When it was last tried.
    pub last_attempt_at: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub error_code: Option<String>,
    /// The sentence of its last failure.
    pub error_message: Option<String>,
}
