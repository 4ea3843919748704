//! What is committed: the events, what consumers handled, the values of applications, and the subscriptions.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postrider_core::{Audit, Clock, Recorded, RelayInfo, Result, Subscription};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::bell::SharedBell;
use crate::clock::to_micros;
use crate::leader_lease::HeldLease;
use crate::lock::Locks;
use crate::position::Place;
use crate::subscribe::SubscriptionData;

/// A log in memory, shared by everything that was made of one outbox.
#[derive(Default)]
pub(crate) struct Log {
    data: Mutex<Data>,
    pub(crate) clock: Clock,
    pub(crate) locks: Arc<Locks>,
    pub(crate) bell: Arc<SharedBell>,
}

impl Log {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// What is committed, for one short step that waits for nothing.
    pub(crate) fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, by the manual clock or the machine's. To be asked for after the data: with a time from before, a faster
    /// claim's lease would look like one from the future.
    pub(crate) fn now(&self) -> OffsetDateTime {
        to_micros(self.clock.now().unwrap_or_else(OffsetDateTime::now_utc))
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({} events)", self.data().events.len())
    }
}

/// What is committed.
#[derive(Default)]
pub(crate) struct Data {
    /// The relays that are known.
    pub(crate) relays: HashMap<Uuid, RelayInfo>,
    /// The last id that was handed out, whatever became of its transaction.
    last_id: i64,
    /// Where the log ends.
    pub(crate) end: Place,
    /// The events, by their places.
    pub(crate) events: BTreeMap<i64, Recorded>,
    /// The places of the events, by their ids.
    pub(crate) places: BTreeMap<i64, i64>,
    /// The ids of the events, by what they are called outside.
    pub(crate) ids: HashMap<Uuid, i64>,
    /// What retention moved away.
    pub(crate) archive: Vec<Recorded>,
    /// How far retention has got in the log.
    pub(crate) swept: Option<Swept>,
    /// When the last mark was made that retention took, of each consumer.
    pub(crate) forgotten: HashMap<Arc<str>, OffsetDateTime>,
    /// Who did what.
    pub(crate) audits: Vec<Audit>,
    /// Leader leases, by task.
    pub(crate) leader_leases: BTreeMap<String, HeldLease>,
    /// The last number of each key that has numbers.
    pub(crate) counters: HashMap<String, i64>,
    /// What each consumer has handled, and when.
    pub(crate) inbox: HashMap<(Arc<str>, Uuid), OffsetDateTime>,
    /// The values of applications.
    pub(crate) values: HashMap<String, String>,
    /// The subscriptions, by name.
    pub(crate) readers: BTreeMap<String, SubscriptionData>,
}

/// Of what retention has taken, the highest place, the highest id and the latest time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swept {
    pub(crate) number: i64,
    pub(crate) id: i64,
    pub(crate) recorded_at: OffsetDateTime,
}

impl Data {
    /// A new id. It is used up even if its transaction is rolled back.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// Puts an event at the end of the log.
    pub(crate) fn append(&mut self, mut event: Recorded, sequenced: bool) {
        if sequenced {
            let counter = self.counters.entry(event.key().into_owned()).or_default();
            *counter += 1;
            event.sequence = Some(*counter);
        }
        self.end = self.end.passing(self.end.number + 1, event.id);
        self.ids.insert(event.event_id, event.id);
        self.places.insert(event.id, self.end.number);
        self.events.insert(self.end.number, event);
    }

    /// Takes an event out of the log.
    pub(crate) fn remove(&mut self, place: i64) -> Option<Recorded> {
        let event = self.events.remove(&place)?;
        self.places.remove(&event.id);
        self.ids.remove(&event.event_id);
        Some(event)
    }

    /// An event and its place, by its id.
    pub(crate) fn event(&self, id: i64) -> Option<(i64, &Recorded)> {
        let place = *self.places.get(&id)?;
        Some((place, self.events.get(&place)?))
    }

    /// A subscription that must exist.
    pub(crate) fn subscription(&self, name: &str, op: &'static str) -> Result<&SubscriptionData> {
        self.readers.get(name).ok_or_else(|| Subscription::unknown(name, op))
    }

    /// The same, to change it.
    pub(crate) fn reader(&mut self, subscription: &str, op: &'static str) -> Result<&mut SubscriptionData> {
        self.readers.get_mut(subscription).ok_or_else(|| Subscription::unknown(subscription, op))
    }
}
