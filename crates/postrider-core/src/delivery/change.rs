//! Changes to delivery rows: one for each event that was not simply delivered.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::policy::subscription::words;
use crate::{Error, ErrorKind, Excerpt, PastAttempt, Recorded, Result};

/// The state of a delivery that did not succeed at its first attempt.
///
/// `waiting → running | retrying → delivered | dead`. An operator requeues a dead delivery (`retrying`) or discards it
/// (`discarded`). A running one may also be returned (`waiting`). The stores reject every other transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Waits for an earlier event of its key (or, under strict order, of its lane).
    Waiting,
    /// Started, and not finished when its batch was settled. It stores the epoch of the lease under which it runs: while that is the
    /// epoch of its lane's lease, it is never due; if its epoch is not the lease's, its relay is gone, so it is due immediately.
    Running,
    /// Failed, and will be retried.
    Retrying,
    /// Dead: not retried until an operator requeues or discards it.
    Dead,
    /// Delivered after all. Final.
    Delivered,
    /// Discarded by an operator. Final: only a replay, which deletes this state, delivers the event again.
    Discarded,
}

words!(
    DeliveryState,
    Waiting = "waiting",
    Running = "running",
    Retrying = "retrying",
    Dead = "dead",
    Delivered = "delivered",
    Discarded = "discarded"
);

/// Identifies an event by its number in the log and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventRef {
    /// The event's number in the log.
    pub id: i64,
    /// The event's own id.
    pub event_id: Uuid,
}

impl From<&Recorded> for EventRef {
    fn from(event: &Recorded) -> Self {
        Self { id: event.id, event_id: event.event_id }
    }
}

/// The outcome of one event that did not succeed at its first attempt, as a settle writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryChange {
    /// The event's number in the log.
    pub id: i64,
    /// The event's id. After a failover or a restore another event may have that number; nothing is written to it then.
    pub event_id: Uuid,
    /// Its state now.
    pub state: DeliveryState,
    /// Number of attempts; for `Running`, including the one in progress.
    pub attempts: u32,
    /// For `Retrying`: how long after the settle it is retried.
    pub retry_in: Duration,
    /// Why the last attempt failed.
    pub failure: Option<DeliveryFailure>,
    /// The last failed attempts, this one last. They replace the stored ones; `None` keeps those.
    pub past: Option<Vec<PastAttempt>>,
}

impl DeliveryChange {
    /// Not attempted: an earlier event of its key is open.
    pub fn waiting(event: impl Into<EventRef>) -> Self {
        let EventRef { id, event_id } = event.into();
        Self {
            id,
            event_id,
            state: DeliveryState::Waiting,
            attempts: 0,
            retry_in: Duration::ZERO,
            failure: None,
            past: None,
        }
    }

    /// In progress: this is the attempt with that number, counted from 1. The row gets the epoch of the lease it is settled
    /// under. The stored last failure stays.
    pub fn running(event: impl Into<EventRef>, attempt: u32) -> Self {
        let EventRef { id, event_id } = event.into();
        let state = DeliveryState::Running;
        Self { id, event_id, state, attempts: attempt, retry_in: Duration::ZERO, failure: None, past: None }
    }

    /// It was running, and its attempt was cut short: it waits as if that attempt had never started. The stored last failure stays.
    pub fn given_back(event: impl Into<EventRef>, attempts: u32) -> Self {
        Self { attempts, ..Self::waiting(event) }
    }

    /// Failed, and will be retried.
    pub fn retrying(
        event: impl Into<EventRef>,
        attempts: u32,
        retry_in: Duration,
        failure: DeliveryFailure,
    ) -> Self {
        let EventRef { id, event_id } = event.into();
        Self {
            id,
            event_id,
            state: DeliveryState::Retrying,
            attempts,
            retry_in,
            failure: Some(failure),
            past: None,
        }
    }

    /// Dead.
    pub fn dead(event: impl Into<EventRef>, attempts: u32, failure: DeliveryFailure) -> Self {
        let EventRef { id, event_id } = event.into();
        Self {
            id,
            event_id,
            state: DeliveryState::Dead,
            attempts,
            retry_in: Duration::ZERO,
            failure: Some(failure),
            past: None,
        }
    }

    /// Adds the last failed attempts, this one last.
    #[must_use]
    pub fn past(mut self, past: Vec<PastAttempt>) -> Self {
        self.past = Some(past);
        self
    }

    /// Delivered after all. The stored last failure stays.
    pub fn delivered(event: impl Into<EventRef>, attempts: u32) -> Self {
        let EventRef { id, event_id } = event.into();
        Self {
            id,
            event_id,
            state: DeliveryState::Delivered,
            attempts,
            retry_in: Duration::ZERO,
            failure: None,
            past: None,
        }
    }
}

/// Why an attempt failed: a code for programs and a sentence for people. Never contains a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// A short word such as `timeout`.
    pub code: String,
    /// What happened.
    pub message: String,
    /// The response of the destination, if there was one. Stored with the attempt, never logged.
    pub answer: Option<Excerpt>,
}

impl DeliveryFailure {
    /// A failure. NUL characters, which stores can't hold, are removed from both.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let clean = |text: String| if text.contains('\0') { text.replace('\0', "") } else { text };
        Self { code: clean(code.into()), message: clean(message.into()), answer: None }
    }

    /// Adds the response of the destination.
    #[must_use]
    pub fn answer(mut self, answer: Option<Excerpt>) -> Self {
        self.answer = answer;
        self
    }
}

/// A delivery that is due now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The event.
    pub event: Recorded,
    /// `Retrying`; or `Waiting`, if everything in front of it is due in the same batch; or `Running` under an epoch other than
    /// the lease's, whose holder is gone.
    pub state: DeliveryState,
    /// Number of attempts; for `Running`, including the one that its holder did not finish.
    pub attempts: u32,
    /// When it first failed.
    pub first_failed_at: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub error_code: Option<String>,
    /// Its last failed attempts, oldest first.
    pub past: Vec<PastAttempt>,
    /// The store's time of this query, to compute ages.
    pub now: OffsetDateTime,
    /// Why the event's row can't be read, or `None`: see [`ReadEvent`](crate::ReadEvent).
    pub unreadable: Option<String>,
}

impl Due {
    /// Approximate size in memory in bytes: the event and its attempts.
    pub fn size(&self) -> u64 {
        let past = self.past.iter().map(PastAttempt::size).sum::<usize>();
        self.event.size() + past as u64
    }
}

/// The open deliveries of a lane that are due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueBatch {
    /// What is due now, by id.
    pub deliveries: Vec<Due>,
    /// How long, by the store's clock, until the next retry is due, if one is pending. A delivery that waits for another one of
    /// its key does not count.
    pub next_in: Option<Duration>,
    /// Whether anything in the lane blocks later events. Under strict order the lane reads nothing more then.
    pub holds: bool,
}

/// How an operator resolves dead deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveDead {
    /// Retry: resets the attempts to 0, and keeps its place before the waiting events of its key.
    Requeue {
        /// The subscription.
        subscription: String,
        /// The events; empty means all dead ones.
        events: Vec<Uuid>,
    },
    /// Discard: unblocks the key, and lets retention remove the event. Only a replay delivers it again.
    Discard {
        /// The subscription.
        subscription: String,
        /// The events; empty means all dead ones.
        events: Vec<Uuid>,
    },
}
