//! What arrived in the topics, counted by a group of the story's own.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use postrider::kafka::{Consumer, Offsets, RunningConsumer};
use postrider::postgres::Outbox;
use postrider::{Failure, Raw, Received, Uuid};

/// The topics of the shop.
pub const TOPICS: [&str; 4] = ["order-events", "like-events", "product-events", "stock-events"];

/// The events that arrived, by type, and how many records there were.
#[derive(Debug, Clone, Default)]
pub struct Arrivals(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    events: BTreeMap<String, HashSet<Uuid>>,
    records: usize,
}

impl Arrivals {
    /// Begins to count, from the oldest record.
    pub async fn begin(&self, outbox: &Outbox, brokers: &str) -> postrider::Result<RunningConsumer> {
        let seen = Arc::clone(&self.0);
        Consumer::new(outbox, brokers, "story-arrivals")
            .topics(TOPICS)
            .from(Offsets::Earliest)
            .on_other(move |event: Received<Raw>| {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                let recorded = event.event();
                seen.records += 1;
                seen.events.entry(recorded.event_type.to_string()).or_default().insert(recorded.event_id);
                async { Ok::<(), Failure>(()) }
            })
            .start()
            .await
    }

    /// How many different events of each type arrived.
    pub fn by_type(&self) -> BTreeMap<String, i64> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.events.iter().map(|(event_type, ids)| (event_type.clone(), ids.len() as i64)).collect()
    }

    /// How many records came again with the same event.
    pub fn duplicates(&self) -> usize {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.records - seen.events.values().map(HashSet::len).sum::<usize>()
    }
}
