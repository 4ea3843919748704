//! The events that a lane is working on, from read (or due) to settled.

use std::collections::HashSet;
use std::sync::Arc;

use postrider_core::{
    Attempt, Batch, DeliveryChange, DeliveryState, Due, Error, ErrorKind, EventRef, OffsetDateTime, OnDead,
    Order, PastAttempt, Position, Recorded, Settlement, UNWRITABLE,
};

use crate::engine::flight::Flight;
use crate::engine::retry_policy::{Case, Decision};
use crate::engine::suspect::SUSPECT;

/// Events in a lane's hands, and what will be settled of them.
pub(crate) struct Work {
    pub(crate) items: Vec<Item>,
    pub(crate) settlement: Settlement,
    /// Where the lane stands afterwards, if it moves.
    pub(crate) next: Option<Position>,
    /// Whether the read was cut off by its rows or its bytes, so that there is more to read.
    pub(crate) full: bool,
    /// What of it is still under way. It belongs to the lane once its rows are written.
    pub(crate) flights: Vec<Flight>,
}

/// Whether an event has a delivery row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    /// It has none.
    Missing,
    /// It has one because it failed, or waited.
    Open,
    /// It has one only because its first try is running.
    Running,
}

/// Whether a try of an event outlives its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptState {
    /// No.
    Idle,
    /// It is under way.
    Running,
    /// It was, and was cut short.
    Cut,
}

/// One of them.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) event: Arc<Recorded>,
    pub(crate) key: u64,
    pub(crate) tried: u32,
    pub(crate) first_failed_at: Option<OffsetDateTime>,
    /// The code of its last failure.
    pub(crate) code: Option<String>,
    /// Its last tries that failed, the oldest first.
    pub(crate) past: Vec<PastAttempt>,
    /// Whether they differ from what is on record.
    pub(crate) noted: bool,
    pub(crate) row: Row,
    pub(crate) attempt_state: AttemptState,
    /// Whether an earlier event of its key is open elsewhere.
    pub(crate) held: bool,
    /// Whether its row can't be read: it is dead without having been tried.
    unreadable: bool,
    pub(crate) decision: Option<Decision>,
}

impl Item {
    pub(crate) fn case(&self, now: OffsetDateTime) -> Case<'_> {
        Case { event: &self.event, tried: self.tried, first_failed_at: self.first_failed_at, now }
    }

    /// What it is in line with: its key; nothing but itself, without order.
    pub(crate) fn line(&self, order: Order) -> u64 {
        if order == Order::None { self.event.id.cast_unsigned() } else { self.key }
    }

    /// Whether what became of it keeps later events of its key from going on.
    fn blocks(&self, on_dead: OnDead) -> bool {
        match &self.decision {
            Some(Decision::Retry { .. }) => true,
            Some(Decision::Dead { .. }) => on_dead == OnDead::Hold,
            Some(Decision::Delivered { .. }) => false,
            None => self.held || self.attempt_state == AttemptState::Running,
        }
    }

    /// The same event in the hands of a flight: its try has a row, or soon will.
    pub(crate) fn in_flight(&self) -> Self {
        let row = if self.row == Row::Missing { Row::Running } else { self.row };
        Self { row, ..self.clone() }
    }

    /// Notes a try that failed.
    pub(crate) fn note(&mut self, attempt: PastAttempt) {
        self.past = PastAttempt::with(std::mem::take(&mut self.past), attempt);
        self.noted = true;
    }

    /// The row that a decision leaves, with what was noted.
    pub(crate) fn row(&self, decision: &Decision) -> Option<DeliveryChange> {
        let row = decision.row(&self.event, self.has_row())?;
        Some(if self.noted { row.past(self.past.clone()) } else { row })
    }

    fn has_row(&self) -> bool {
        self.row != Row::Missing
    }
}

impl Work {
    /// A batch that was read. `open` are the keys that the batch before it has left open.
    pub(crate) fn of_batch(batch: Batch, open: &HashSet<u64>) -> Self {
        let (settlement, full) = (Settlement::of(&batch), batch.more);
        let items = batch.events.into_iter().map(|read| {
            let key = read.event.key_hash();
            Item {
                key,
                tried: 0,
                first_failed_at: None,
                code: None,
                past: Vec::new(),
                noted: false,
                row: Row::Missing,
                attempt_state: AttemptState::Idle,
                held: read.held || open.contains(&key),
                unreadable: read.unreadable.is_some(),
                decision: read.unreadable.map(|reason| Decision::unreadable(0, reason)),
                event: Arc::new(read.event),
            }
        });
        Self { items: items.collect(), settlement, next: Some(batch.next), full, flights: Vec::new() }
    }

    /// Nothing but what is to be settled where the lane stands.
    pub(crate) fn of_rows(settlement: Settlement) -> Self {
        Self::of_landed(Vec::new(), settlement)
    }

    /// Events that were running, with what became of them.
    pub(crate) fn of_landed(items: Vec<Item>, settlement: Settlement) -> Self {
        Self { items, settlement, next: None, full: false, flights: Vec::new() }
    }

    /// Deliveries that are due.
    pub(crate) fn of_due(due: Vec<Due>, position: &Position) -> Self {
        let items = due.into_iter().map(|due| {
            // Its holder is gone, and perhaps because of it. The try that nobody saw the end of does not count.
            let left_running = due.state == DeliveryState::Running;
            let tried = due.attempts.saturating_sub(u32::from(left_running));
            Item {
                key: due.event.key_hash(),
                tried,
                first_failed_at: due.first_failed_at,
                code: if left_running { Some(SUSPECT.to_owned()) } else { due.error_code },
                past: due.past,
                noted: false,
                row: Row::Open,
                attempt_state: AttemptState::Idle,
                held: false,
                unreadable: due.unreadable.is_some(),
                decision: due.unreadable.map(|reason| Decision::unreadable(tried, reason)),
                event: Arc::new(due.event),
            }
        });
        Self::of_landed(items.collect(), Settlement::at(position.clone()))
    }

    /// What can be tried now, in order: what has no decision and nothing open in front of it.
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
            if item.decision.is_none() && item.attempt_state == AttemptState::Idle {
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
            let row = match (&item.decision, item.attempt_state) {
                (Some(Decision::Delivered { .. }), _) if item.row == Row::Running => {
                    self.settlement.succeeded.push(EventRef::from(&*item.event));
                    None
                }
                (Some(decision), _) => item.row(decision),
                (None, AttemptState::Running) => Some(DeliveryChange::running(&*item.event, item.tried + 1)),
                (None, AttemptState::Cut) => Some(DeliveryChange::given_back(&*item.event, item.tried)),
                (None, AttemptState::Idle) if item.has_row() => None,
                (None, AttemptState::Idle) => Some(DeliveryChange::waiting(&*item.event)),
            };
            self.settlement.deliveries.extend(row);
        }
    }

    /// The database refuses it for good: what it objects to is one of the deliveries, and must not keep the others.
    pub(crate) fn write_one_by_one(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.settlement.one_by_one, true) && !self.settlement.deliveries.is_empty()
        {
            tracing::error!(error = %error, code = UNWRITABLE, deliveries = self.settlement.deliveries.len(),
                "the database rejects the outcome of some events; writing each alone, and those that are still rejected become dead");
        }
    }

    /// The keys that it leaves open.
    pub(crate) fn open_keys(&self, on_dead: OnDead) -> HashSet<u64> {
        let open = |item: &&Item| item.decision.is_none() || item.blocks(on_dead);
        self.items.iter().filter(open).map(|item| item.key).collect()
    }

    /// Whether it is a batch of which nothing was tried.
    pub(crate) fn is_untouched(&self) -> bool {
        self.settlement.deliveries.is_empty()
            && !self.items.is_empty()
            && self.items.iter().all(|item| {
                (item.decision.is_none() || item.unreadable)
                    && !item.has_row()
                    && item.attempt_state == AttemptState::Idle
            })
    }

    /// Whether there is nothing to settle.
    pub(crate) fn is_empty(&self) -> bool {
        self.settlement.deliveries.is_empty() && self.settlement.succeeded.is_empty() && self.next.is_none()
    }
}

/// Whether the database may object to one of the deliveries in a settle. Somebody in the way, a schema that is being migrated and a
/// right that is missing are no event's fault.
pub(crate) fn may_be_of_an_event(error: &Error) -> bool {
    let of_the_store = [ErrorKind::NotMigrated, ErrorKind::SchemaTooNew, ErrorKind::Denied];
    !error.is_retryable() && !of_the_store.contains(&error.kind())
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
        unreadable.decision = Some(Decision::unreadable(0, "its payload is not text".into()));
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
            more: false,
            recalled: false,
            witness: None,
        };
        Work::of_batch(batch, open)
    }

    fn retry() -> Decision {
        let failure = DeliveryFailure::new("refused", "not now");
        Decision::Retry { attempts: 1, pause: std::time::Duration::ZERO, failure }
    }

    fn dead() -> Decision {
        Decision::Dead { attempts: 1, failure: DeliveryFailure::new("no", "never"), age: None }
    }

    #[test]
    fn a_failure_holds_its_key_or_its_lane_or_nothing() {
        let mut work = work("abab", "", &HashSet::new());
        assert_eq!(work.ready(Order::Key, OnDead::Skip), [0, 1, 2, 3]);
        work.items[0].decision = Some(retry());
        assert_eq!(work.ready(Order::Key, OnDead::Skip), [1, 3]);
        assert!(work.ready(Order::Strict, OnDead::Skip).is_empty());
        assert_eq!(work.ready(Order::None, OnDead::Skip), [1, 2, 3]);
        work.items[0].decision = Some(dead());
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
        second.items[1].decision = Some(Decision::Delivered { attempts: 1, duplicate: false });
        second.close();
        let rows: Vec<_> = second.settlement.deliveries.iter().map(|row| row.id).collect();
        assert_eq!(rows, [1, 3, 4], "what was not tried has its place in the line");
        assert_eq!(second.open_keys(OnDead::Skip).len(), 3);
    }

    #[test]
    fn what_is_wrong_with_the_database_is_no_events_fault() {
        for kind in [ErrorKind::NotMigrated, ErrorKind::Denied, ErrorKind::Unreachable, ErrorKind::Conflict] {
            assert!(!may_be_of_an_event(&Error::new(kind, "settle", "not now")), "{kind:?}");
        }
        for kind in [ErrorKind::Invalid, ErrorKind::Database] {
            assert!(may_be_of_an_event(&Error::new(kind, "settle", "never")), "{kind:?}");
        }
    }
}
