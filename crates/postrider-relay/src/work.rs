//! Events in a lane's hands, from read (or due) to settled.

use std::collections::HashSet;
use std::sync::Arc;

use postrider_core::{
    Attempt, Batch, DeliveryChange, Due, Error, OffsetDateTime, OnDead, Order, Position, Recorded,
    Settlement, UNWRITABLE,
};

use crate::judge::{Case, Verdict};

/// Events in a lane's hands, and what will be settled of them.
pub(crate) struct Work {
    pub(crate) items: Vec<Item>,
    pub(crate) settlement: Settlement,
    /// Where the lane stands afterwards, if it moves.
    pub(crate) next: Option<Position>,
    /// Whether the read was cut off by its limit, so that there is more to read.
    pub(crate) full: bool,
}

/// One of them.
pub(crate) struct Item {
    pub(crate) event: Arc<Recorded>,
    key: u64,
    pub(crate) tried: u32,
    pub(crate) first_failed_at: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub(crate) code: Option<String>,
    /// Whether it has a delivery row already.
    pub(crate) has_row: bool,
    /// Whether an earlier event of its key is open elsewhere.
    held: bool,
    /// Whether its row can't be read: it is dead without having been tried.
    unreadable: bool,
    pub(crate) verdict: Option<Verdict>,
}

impl Item {
    pub(crate) fn case(&self, now: OffsetDateTime) -> Case<'_> {
        Case { event: &self.event, tried: self.tried, first_failed_at: self.first_failed_at, now }
    }

    /// Whether what became of it keeps later events of its key from going on.
    fn blocks(&self, on_dead: OnDead) -> bool {
        match &self.verdict {
            Some(Verdict::Retry { .. }) => true,
            Some(Verdict::Dead { .. }) => on_dead == OnDead::Hold,
            Some(Verdict::Delivered { .. }) => false,
            None => self.held,
        }
    }
}

impl Work {
    /// A batch that was read. `open` are the keys that the batch before it has left open.
    pub(crate) fn of_batch(batch: Batch, open: &HashSet<u64>, limit: u32) -> Self {
        let settlement = Settlement::of(&batch);
        let full = batch.scanned >= limit;
        let items = batch.events.into_iter().map(|read| {
            let key = read.event.key_hash();
            Item {
                key,
                tried: 0,
                first_failed_at: None,
                code: None,
                has_row: false,
                held: read.held || open.contains(&key),
                unreadable: read.unreadable.is_some(),
                verdict: read.unreadable.map(|reason| Verdict::unreadable(0, reason)),
                event: Arc::new(read.event),
            }
        });
        Self { items: items.collect(), settlement, next: Some(batch.next), full }
    }

    /// Deliveries that are due.
    pub(crate) fn of_due(due: Vec<Due>, position: &Position) -> Self {
        let items = due.into_iter().map(|due| Item {
            key: due.event.key_hash(),
            tried: due.attempts,
            first_failed_at: due.first_failed_at,
            code: due.error_code,
            has_row: true,
            held: false,
            unreadable: due.unreadable.is_some(),
            verdict: due.unreadable.map(|reason| Verdict::unreadable(due.attempts, reason)),
            event: Arc::new(due.event),
        });
        Self { items: items.collect(), settlement: Settlement::at(position.clone()), next: None, full: false }
    }

    /// What can be tried now, in order: what has no verdict and nothing open in front of it.
    pub(crate) fn ready(&self, order: Order, on_dead: OnDead) -> Vec<usize> {
        let mut blocked: HashSet<u64> = HashSet::new();
        let mut ready = Vec::with_capacity(self.items.len());
        for (index, item) in self.items.iter().enumerate() {
            if order != Order::None {
                if !blocked.is_empty() && blocked.contains(&item.key) {
                    continue;
                }
                if item.blocks(on_dead) {
                    if order == Order::Strict {
                        break;
                    }
                    blocked.insert(item.key);
                    continue;
                }
            }
            if item.verdict.is_none() {
                ready.push(index);
            }
        }
        ready
    }

    pub(crate) fn attempt(&self, index: usize) -> Attempt {
        let item = &self.items[index];
        Attempt { event: Arc::clone(&item.event), attempt: item.tried + 1 }
    }

    /// Writes down what became of each: nothing for what simply succeeded, a place in the line for what was not tried.
    pub(crate) fn close(&mut self) {
        for item in &self.items {
            let row = match &item.verdict {
                Some(verdict) => verdict.row(&item.event, item.has_row),
                None if item.has_row => None,
                None => Some(DeliveryChange::waiting(&*item.event)),
            };
            self.settlement.deliveries.extend(row);
        }
    }

    /// The database refuses it for good: what it objects to is one of the deliveries, and must not keep the others.
    pub(crate) fn write_one_by_one(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.settlement.one_by_one, true) && !self.settlement.deliveries.is_empty()
        {
            tracing::error!(error = %error, code = UNWRITABLE, deliveries = self.settlement.deliveries.len(),
                "the database refuses what became of some events; each is written alone, and what is still refused is dead");
        }
    }

    /// The keys that it leaves open.
    pub(crate) fn open_keys(&self, on_dead: OnDead) -> HashSet<u64> {
        let open = |item: &&Item| item.verdict.is_none() || item.blocks(on_dead);
        self.items.iter().filter(open).map(|item| item.key).collect()
    }

    /// Whether it is a batch of which nothing was tried.
    pub(crate) fn is_untouched(&self) -> bool {
        self.settlement.deliveries.is_empty()
            && !self.items.is_empty()
            && self.items.iter().all(|item| (item.verdict.is_none() || item.unreadable) && !item.has_row)
    }

    /// Whether there is nothing to settle.
    pub(crate) fn is_empty(&self) -> bool {
        self.settlement.deliveries.is_empty() && self.next.is_none()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use postrider_core::{DeliveryFailure, Headers, Payload, ReadEvent, Uuid};

    use super::*;

    /// An event of an order.
    pub(crate) fn event(order: &str) -> Recorded {
        let now = OffsetDateTime::now_utc();
        Recorded {
            id: 1,
            event_id: Uuid::now_v7(),
            stream: "orders".into(),
            event_type: "OrderPaid".into(),
            aggregate_type: "Order".into(),
            aggregate_id: order.to_owned(),
            ordering_key: None,
            sequence: None,
            payload: Payload::Json("1".into()),
            headers: Headers::new(),
            occurred_at: now,
            recorded_at: now,
            max_attempts: None,
        }
    }

    /// The one after it of its key goes on, or waits for somebody to act.
    #[test]
    fn what_cannot_be_read_is_dead_and_never_tried() {
        let mut work = work("aab", "", &HashSet::new());
        let mut unreadable = work.items.remove(0);
        unreadable.verdict = Some(Verdict::unreadable(0, "its payload is not text".into()));
        unreadable.unreadable = true;
        work.items.insert(0, unreadable);
        assert!(work.is_untouched(), "nothing of it was tried");
        assert_eq!(work.ready(Order::Key, OnDead::Skip), [1, 2]);
        assert_eq!(work.ready(Order::Key, OnDead::Hold), [2]);
        assert!(work.ready(Order::Strict, OnDead::Hold).is_empty());
        work.close();
        let rows: Vec<_> = work.settlement.deliveries.iter().map(|row| (row.id, row.state)).collect();
        assert_eq!(rows[0], (1, postrider_core::DeliveryState::Dead));
    }

    fn work(orders: &str, held: &str, open: &HashSet<u64>) -> Work {
        let events = orders.chars().enumerate().map(|(index, order)| ReadEvent {
            event: Recorded { id: index as i64 + 1, ..event(&order.to_string()) },
            late: false,
            held: held.contains(order),
            unreadable: None,
        });
        let batch = Batch {
            from: Position::new("0"),
            next: Position::new("9"),
            events: events.collect(),
            scanned: 9,
            recalled: false,
            mark: String::new(),
        };
        Work::of_batch(batch, open, 10)
    }

    fn retry() -> Verdict {
        let failure = DeliveryFailure::new("refused", "not now");
        Verdict::Retry { attempts: 1, pause: std::time::Duration::ZERO, failure }
    }

    fn dead() -> Verdict {
        Verdict::Dead { attempts: 1, failure: DeliveryFailure::new("no", "never"), age: None }
    }

    #[test]
    fn a_failure_holds_its_key_or_its_lane_or_nothing() {
        let mut work = work("abab", "", &HashSet::new());
        assert_eq!(work.ready(Order::Key, OnDead::Skip), [0, 1, 2, 3]);
        work.items[0].verdict = Some(retry());
        assert_eq!(work.ready(Order::Key, OnDead::Skip), [1, 3]);
        assert!(work.ready(Order::Strict, OnDead::Skip).is_empty());
        assert_eq!(work.ready(Order::None, OnDead::Skip), [1, 2, 3]);
        work.items[0].verdict = Some(dead());
        assert_eq!(work.ready(Order::Key, OnDead::Skip), [1, 2, 3]);
        assert_eq!(work.ready(Order::Key, OnDead::Hold), [1, 3]);
    }

    #[test]
    fn a_key_that_is_open_elsewhere_waits() {
        let first = work("ac", "", &HashSet::new());
        let open: HashSet<u64> = [first.items[0].key].into();
        let mut second = work("abcb", "c", &open);
        assert_eq!(second.ready(Order::Key, OnDead::Skip), [1, 3], "a by the batch before, c by the store");
        assert_eq!(second.ready(Order::None, OnDead::Skip), [0, 1, 2, 3]);
        second.items[1].verdict = Some(Verdict::Delivered { attempts: 1, duplicate: false });
        second.close();
        let rows: Vec<_> = second.settlement.deliveries.iter().map(|row| row.id).collect();
        assert_eq!(rows, [1, 3, 4], "what was not tried has its place in the line");
        assert_eq!(second.open_keys(OnDead::Skip).len(), 3);
    }
}
