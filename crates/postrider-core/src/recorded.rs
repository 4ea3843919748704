//! An event as it stands in the log.

use std::borrow::Cow;
use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Headers, Payload};

/// An event that was committed. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its number in the store's log: unique, but not the order of commits.
    pub id: i64,
    /// Its id for everybody else.
    pub event_id: Uuid,
    /// The stream it is in.
    pub stream: Arc<str>,
    /// What happened.
    pub event_type: Arc<str>,
    /// What kind of thing it happened to.
    pub aggregate_type: Arc<str>,
    /// Which one it happened to.
    pub aggregate_id: String,
    /// What it is ordered by, where that is not its aggregate.
    pub ordering_key: Option<String>,
    /// Its number within its key, where asked for: 1, 2, 3, … without gaps.
    pub sequence: Option<i64>,
    /// What it says.
    pub payload: Payload,
    /// What travels beside the payload.
    pub headers: Headers,
    /// When it happened, by the application.
    pub occurred_at: OffsetDateTime,
    /// When it was recorded, by the database.
    pub recorded_at: OffsetDateTime,
    /// How often a delivery is tried at most; nothing leaves it to the subscription.
    pub max_attempts: Option<u32>,
}

impl Recorded {
    /// What its order is kept by: the ordering key, or the aggregate as `type:id`.
    pub fn key(&self) -> Cow<'_, str> {
        match &self.ordering_key {
            Some(key) => Cow::Borrowed(key),
            None => Cow::Owned(format!("{}:{}", self.aggregate_type, self.aggregate_id)),
        }
    }
}
