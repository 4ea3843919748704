//! The state of an event for a subscription, as every interface shows it.

use std::fmt;
use std::str::FromStr;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::policy::subscription::words;
use crate::{Error, ErrorKind, Result};

/// The state of an event for a subscription. *Undelivered* means pending, processing or retrying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not read yet.
    Pending,
    /// Read by the holder of its lane and not settled yet, or running.
    Processing,
    /// Failed and will be retried, or waiting for one that will.
    Retrying,
    /// Dead, until an operator acts.
    Dead,
    /// Delivered.
    Done,
    /// Discarded by an operator: only a replay delivers it again.
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

/// The state of one event for one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventState {
    /// The event's number in the log.
    pub id: i64,
    /// The event.
    pub event_id: Uuid,
    /// The subscription.
    pub subscription: String,
    /// Its state.
    pub state: State,
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the next attempt.
    pub next_retry_at: Option<OffsetDateTime>,
    /// Time of the last attempt.
    pub last_attempt_at: Option<OffsetDateTime>,
    /// When it was delivered.
    pub delivered_at: Option<OffsetDateTime>,
    /// Which relay delivered it.
    pub delivered_by: Option<String>,
    /// The holder of its lane.
    pub lease_owner: Option<String>,
    /// When the lease of its lane expires.
    pub lease_until: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub error_code: Option<String>,
    /// The message of its last failure.
    pub error_message: Option<String>,
}

/// Filters states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateQuery {
    /// Only this subscription.
    pub subscription: Option<String>,
    /// Only this event.
    pub event_id: Option<Uuid>,
    /// Only this state.
    pub state: Option<State>,
    /// Only events after this id.
    pub after: i64,
    /// Maximum number of results; 0 means 1,000.
    pub limit: u32,
}
