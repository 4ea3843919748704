//! Open deliveries: due ones, and operations on dead ones.

use std::collections::HashSet;

use postrider_core::{
    ByteBudget, DeliveryChange, DeliveryState, Due, DueBatch, Error, ErrorKind, Lease, OnDead, Order,
    PastAttempt, Recorded, ResolveDead, Result,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::clock::{later, until};
use crate::hash::lane_of;
use crate::lane::stands;
use crate::log::Log;
use crate::position::Place;

/// The delivery of an event that did not simply succeed.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) event_id: Uuid,
    pub(crate) key: String,
    pub(crate) state: DeliveryState,
    /// Whether it keeps its key from going on.
    pub(crate) holds: bool,
    /// For a running one: the epoch of the lease it was begun under.
    pub(crate) epoch: Option<i64>,
    pub(crate) attempts: u32,
    pub(crate) next_at: Option<OffsetDateTime>,
    pub(crate) first_failed_at: Option<OffsetDateTime>,
    pub(crate) last_attempt_at: Option<OffsetDateTime>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    /// Its last tries that failed, the oldest first.
    pub(crate) past: Vec<PastAttempt>,
    pub(crate) delivered_at: Option<OffsetDateTime>,
    pub(crate) delivered_by: Option<String>,
}

impl Delivery {
    /// A delivery of which nothing is known yet.
    pub(crate) fn of(event: &Recorded) -> Self {
        Self {
            event_id: event.event_id,
            key: event.key().into_owned(),
            state: DeliveryState::Waiting,
            holds: false,
            epoch: None,
            attempts: 0,
            next_at: None,
            first_failed_at: None,
            last_attempt_at: None,
            error_code: None,
            error_message: None,
            past: Vec::new(),
            delivered_at: None,
            delivered_by: None,
        }
    }

    /// Takes what a settle says of it.
    pub(crate) fn change(&mut self, change: &DeliveryChange, now: OffsetDateTime, lease: &Lease) {
        use DeliveryState::{Dead, Delivered, Retrying, Running, Waiting};
        self.state = change.state;
        self.epoch = (change.state == Running).then_some(lease.epoch);
        self.attempts = change.attempts;
        self.next_at = (change.state == Retrying).then(|| later(now, change.retry_in));
        if matches!(change.state, Retrying | Dead) {
            self.first_failed_at.get_or_insert(now);
        }
        if change.state != Waiting {
            self.last_attempt_at = Some(now);
        }
        if let Some(failure) = &change.failure {
            self.error_code = Some(failure.code.clone());
            self.error_message = Some(failure.message.clone());
        }
        if let Some(past) = &change.past {
            // As it is kept elsewhere: bounded.
            self.past = PastAttempt::decode(&PastAttempt::encode(past));
        }
        self.delivered_at = (change.state == Delivered).then_some(now);
        self.delivered_by = (change.state == Delivered).then(|| lease.owner.clone());
    }

    /// Whether it is still to be delivered.
    pub(crate) fn is_undelivered(&self) -> bool {
        matches!(self.state, DeliveryState::Waiting | DeliveryState::Running | DeliveryState::Retrying)
    }

    /// Whether it is running in the hands of a lease's holder.
    fn is_in_hand_of(&self, lease: &Lease) -> bool {
        self.state == DeliveryState::Running && self.epoch == Some(lease.epoch)
    }

    /// Whether it is of a lease's lane.
    pub(crate) fn is_in(&self, lease: &Lease) -> bool {
        lane_of(&self.key, lease.lanes as usize) == lease.lane as usize
    }

    /// Whether its time has not come.
    fn is_early(&self, now: OffsetDateTime) -> bool {
        self.state == DeliveryState::Retrying && self.next_at.is_some_and(|next| next > now)
    }
}

/// Whether a delivery in a state keeps its key from going on.
pub(crate) fn holds(state: DeliveryState, order: Order, on_dead: OnDead) -> bool {
    let is_open = match state {
        DeliveryState::Waiting | DeliveryState::Running | DeliveryState::Retrying => true,
        DeliveryState::Dead => on_dead == OnDead::Hold,
        DeliveryState::Delivered | DeliveryState::Discarded => false,
    };
    is_open && order != Order::None
}

/// Refuses every step that the state machine does not have.
pub(crate) fn check_step(from: DeliveryState, to: DeliveryState, op: &'static str) -> Result<()> {
    use DeliveryState::{Dead, Delivered, Discarded, Retrying, Running, Waiting};
    let allowed = match from {
        Waiting | Running => to != Discarded,
        Retrying => matches!(to, Running | Retrying | Delivered | Dead),
        Dead => matches!(to, Retrying | Discarded),
        Delivered | Discarded => false,
    };
    if allowed {
        return Ok(());
    }
    let message = "a delivery must be waiting, then running or retrying, then delivered or dead; \
                   only a dead one can be requeued or discarded";
    Err(Error::new(ErrorKind::Invalid, op, message))
}

/// The deliveries of a lane that are to be tried now.
///
/// Under key order one is due unless it, or one of its key before it, is dead or retrying later; what waits behind comes
/// along. Under strict order the first such one of the lane stops all after it. Without order each stands for itself.
pub(crate) fn due(log: &Log, lease: &Lease, limit: u32) -> Result<DueBatch> {
    let data = log.data();
    let now = log.now();
    let reader = data.subscription(&lease.subscription, "due")?;
    stands(&data, lease, Place::of(&lease.position, "due")?, "due")?;
    let mut batch = DueBatch::default();
    let (mut fill, mut cut) = (ByteBudget::new(lease.bytes), false);
    let mut blocked: HashSet<&str> = HashSet::new();
    for (id, delivery) in reader.deliveries.iter().filter(|(_, delivery)| delivery.is_in(lease)) {
        batch.holds |= delivery.holds;
        let (is_early, is_dead) = (delivery.is_early(now), delivery.state == DeliveryState::Dead);
        let in_hand = delivery.is_in_hand_of(lease);
        let key = match lease.order {
            Order::None => None,
            Order::Strict => Some(""),
            Order::Key => Some(delivery.key.as_str()),
        };
        let is_behind = key.is_some_and(|key| blocked.contains(key));
        if let Some(next) = delivery.next_at.filter(|_| is_early && !is_behind) {
            let next_in = until(now, next);
            batch.next_in = Some(batch.next_in.map_or(next_in, |other| other.min(next_in)));
        }
        if delivery.holds && (is_early || is_dead || in_hand) {
            blocked.extend(key);
        }
        let is_due = delivery.is_undelivered() && !is_early && !in_hand && !is_behind;
        if !is_due || cut || batch.deliveries.len() >= limit as usize {
            continue;
        }
        if let Some((_, event)) = data.event(*id).filter(|(_, event)| event.event_id == delivery.event_id) {
            let past = PastAttempt::encode(&delivery.past).len() as u64;
            cut = !fill.takes(event.size() + past);
            if cut {
                continue;
            }
            batch.deliveries.push(Due {
                event: event.clone(),
                state: delivery.state,
                attempts: delivery.attempts,
                first_failed_at: delivery.first_failed_at,
                error_code: delivery.error_code.clone(),
                past: delivery.past.clone(),
                now,
                unreadable: None,
            });
        }
    }
    Ok(batch)
}

/// Requeues or discards dead deliveries.
pub(crate) fn resolve_dead(log: &Log, action: &ResolveDead) -> Result<u64> {
    let (subscription, events, requeue) = match action {
        ResolveDead::Requeue { subscription, events } => (subscription, events, true),
        ResolveDead::Discard { subscription, events } => (subscription, events, false),
    };
    let mut data = log.data();
    let now = log.now();
    let reader = data.reader(subscription, "resolve")?;
    let (order, on_dead) = (reader.order, reader.on_dead);
    let wanted: HashSet<Uuid> = events.iter().copied().collect();
    let mut changed = 0;
    for delivery in reader.deliveries.values_mut() {
        if delivery.state != DeliveryState::Dead
            || !(wanted.is_empty() || wanted.contains(&delivery.event_id))
        {
            continue;
        }
        if requeue {
            delivery.state = DeliveryState::Retrying;
            (delivery.attempts, delivery.next_at, delivery.first_failed_at) = (0, Some(now), None);
        } else {
            delivery.state = DeliveryState::Discarded;
            delivery.next_at = None;
        }
        delivery.holds = holds(delivery.state, order, on_dead);
        changed += 1;
    }
    Ok(changed)
}

/// Sets the state of an event's delivery, in every subscription that has one.
pub(crate) fn force(log: &Log, event_id: Uuid, state: &str) -> Result<()> {
    const OP: &str = "force";
    let state: DeliveryState = state.parse()?;
    let mut data = log.data();
    let deliveries = data.readers.values_mut().flat_map(|reader| reader.deliveries.values_mut());
    let mut found = false;
    for delivery in deliveries.filter(|delivery| delivery.event_id == event_id) {
        check_step(delivery.state, state, OP)?;
        delivery.state = state;
        found = true;
    }
    if found {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotFound, OP, format!("there is no delivery of the event {event_id}")))
}
