//! Where an event stands for a subscription, as everybody is shown it.

use std::fmt;
use std::str::FromStr;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::policy::subscription::words;
use crate::{Error, ErrorKind, Result};

/// Where an event stands for a subscription. *Undelivered* is pending, processing and retrying together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not read yet.
    Pending,
    /// Read by the holder of its lane and not settled yet, or running.
    Processing,
    /// Failed and to be tried again, or waiting behind one that is.
    Retrying,
    /// Given up, until an operator acts.
    Dead,
    /// Delivered.
    Done,
    /// Given up by an operator: only a replay brings it again.
    Discarded,
}

words!(
    State,
    Pending = "pending",
    Processing = "processing",
    Retrying = "retrying",
    Dead = "dead",
    Done = "done",
    Discarded = "discarded"
);

/// Where one event stands for one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventState {
    /// The event's number in the log.
    pub id: i64,
    /// The event.
    pub event_id: Uuid,
    /// The subscription.
    pub subscription: String,
    /// Where it stands.
    pub state: State,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next.
    pub next_retry_at: Option<OffsetDateTime>,
    /// When it was last tried.
    pub last_attempt_at: Option<OffsetDateTime>,
    /// When it was delivered.
    pub delivered_at: Option<OffsetDateTime>,
    /// Which relay delivered it.
    pub delivered_by: Option<String>,
    /// Who holds its lane.
    pub lease_owner: Option<String>,
    /// Until when.
    pub lease_until: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub error_code: Option<String>,
    /// The sentence of its last failure.
    pub error_message: Option<String>,
}

/// Which states to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateQuery {
    /// Of one subscription only.
    pub subscription: Option<String>,
    /// Of one event only.
    pub event_id: Option<Uuid>,
    /// In one state only.
    pub state: Option<State>,
    /// Of events after this id.
    pub after: i64,
    /// At most this many; 0 means 1,000.
    pub limit: u32,
}
