//! Rows for what did not simply succeed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::policy::subscription::words;
use crate::{Error, ErrorKind, Excerpt, PastAttempt, Recorded, Result};

/// Where a delivery that did not simply succeed stands.
///
/// `waiting → running | retrying → delivered | dead`, a dead one is requeued (`retrying`) or `discarded`. A running one may
/// also be given back (`waiting`). The stores refuse every other step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Behind an earlier event of its key (or, under strict order, of its lane).
    Waiting,
    /// Begun and not finished when its batch was settled. Under the epoch of its lane's lease it is in hand and never due;
    /// under another epoch its holder is gone, and it is due at once.
    Running,
    /// Failed, to be tried again.
    Retrying,
    /// Given up, until an operator requeues or discards it.
    Dead,
    /// Delivered in the end. Final.
    Delivered,
    /// Given up by an operator. Final: only a replay, which forgets it, brings the event again.
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

/// Which event of which history: its number in the log, and its own id.
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

/// What a settle says of one event that did not simply succeed the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryChange {
    /// The event's number in the log.
    pub id: i64,
    /// The event's own id: after a failover or a restore another event may have that number, and nothing is written to it.
    pub event_id: Uuid,
    /// Where it stands now.
    pub state: DeliveryState,
    /// How often it was tried; for `Running`, with the try that is under way.
    pub attempts: u32,
    /// For `Retrying`: in how long it is to be tried again, from the settle on.
    pub retry_in: Duration,
    /// Why the last try failed.
    pub failure: Option<DeliveryFailure>,
    /// The last tries that failed, this one last: they take the place of those on record. Nothing leaves these.
    pub past: Option<Vec<PastAttempt>>,
}

impl DeliveryChange {
    /// It was not tried: an earlier event of its key is open.
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

    /// It is being tried: this is the try with that number, counted from 1. The row gets the epoch of the lease it is settled
    /// under. The last failure on record stays.
    pub fn running(event: impl Into<EventRef>, attempt: u32) -> Self {
        let EventRef { id, event_id } = event.into();
        let state = DeliveryState::Running;
        Self { id, event_id, state, attempts: attempt, retry_in: Duration::ZERO, failure: None, past: None }
    }

    /// It was running, and its try was cut short: it waits as if that try had never begun. The last failure on record stays.
    pub fn given_back(event: impl Into<EventRef>, attempts: u32) -> Self {
        Self { attempts, ..Self::waiting(event) }
    }

    /// It failed and is to be tried again.
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

    /// It is given up.
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

    /// The same with the last tries that failed, this one last.
    #[must_use]
    pub fn past(mut self, past: Vec<PastAttempt>) -> Self {
        self.past = Some(past);
        self
    }

    /// It was delivered in the end. The last failure on record stays.
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

/// Why a try failed: a code for programs, a sentence for people, never a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// A short word such as `timeout`.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What the destination answered, if it did: kept with the attempt, never logged.
    pub answer: Option<Excerpt>,
}

impl DeliveryFailure {
    /// A failure. NUL characters, which no store can keep, are dropped from both.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let clean = |text: String| if text.contains('\0') { text.replace('\0', "") } else { text };
        Self { code: clean(code.into()), message: clean(message.into()), answer: None }
    }

    /// The same with what the destination answered.
    #[must_use]
    pub fn answer(mut self, answer: Option<Excerpt>) -> Self {
        self.answer = answer;
        self
    }
}

/// A delivery that is to be tried now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The event.
    pub event: Recorded,
    /// `Retrying`; or `Waiting` with nothing in front of it any more but what is due with it; or `Running` under another epoch
    /// than the lease's: its holder is gone.
    pub state: DeliveryState,
    /// How often it was tried; for `Running`, with the try that its holder did not finish.
    pub attempts: u32,
    /// When it first failed.
    pub first_failed_at: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub error_code: Option<String>,
    /// Its last tries that failed, the oldest first.
    pub past: Vec<PastAttempt>,
    /// The store's time of this look, for ages.
    pub now: OffsetDateTime,
    /// Why the event's row can't be read, if it can't: see [`ReadEvent`](crate::ReadEvent).
    pub unreadable: Option<String>,
}

impl Due {
    /// About how many bytes it takes in memory: the event, and its tries.
    pub fn size(&self) -> u64 {
        let past = self.past.iter().map(PastAttempt::size).sum::<usize>();
        self.event.size() + past as u64
    }
}

/// What a look at the open deliveries of a lane found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueBatch {
    /// What is to be tried now, by id.
    pub deliveries: Vec<Due>,
    /// In how long, by the store's clock, the next one's time comes, if one is retrying whose time has not; what is behind another
    /// one of its key does not count.
    pub next_in: Option<Duration>,
    /// Whether anything of the lane keeps later events waiting: under strict order the lane reads nothing more then.
    pub holds: bool,
}

/// What an operator does about dead deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveDead {
    /// Try again: attempts back to 0, its place before its key's waiting ones kept.
    Requeue {
        /// The subscription.
        subscription: String,
        /// The events; empty means all that are dead.
        events: Vec<Uuid>,
    },
    /// Give up: the key goes on, and retention may take it. Only a replay brings it again.
    Discard {
        /// The subscription.
        subscription: String,
        /// The events; empty means all that are dead.
        events: Vec<Uuid>,
    },
}
