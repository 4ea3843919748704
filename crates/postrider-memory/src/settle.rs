//! Writing what became of a batch, all of it or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use postrider_core::{
    DeliveryChange, DeliveryFailure, DeliveryState, ErrorKind, Lease, LeaseStatus, Recorded, Result,
    Settlement, UNWRITABLE, Uuid,
};
use time::OffsetDateTime;

use crate::delivery::{Delivery, check_step, holds};
use crate::hash::lane_of;
use crate::lane::{held, refresh};
use crate::log::{Data, Log};
use crate::position::Place;

const OP: &str = "settle";

/// A settled batch: which places, when, by whom. Each lane begins with one of nothing.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) lane: usize,
    pub(crate) lanes: usize,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) at: OffsetDateTime,
    pub(crate) by: String,
}

impl Settled {
    /// The batch of nothing that a lane begins with, so that retention knows every generation of lanes.
    pub(crate) fn base(lane: usize, lanes: usize, place: i64, now: OffsetDateTime) -> Self {
        Self { lane, lanes, first: place + 1, last: place, at: now, by: String::new() }
    }

    /// Whether an event at a place was in it.
    pub(crate) fn has(&self, place: i64, event: &Recorded) -> bool {
        self.first <= place && place <= self.last && lane_of(&event.key(), self.lanes) == self.lane
    }
}

/// Settles a batch under its lease.
pub(crate) fn settle(log: &Log, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
    let (from, to) = (Place::of(&settlement.from, OP)?, Place::of(&settlement.to, OP)?);
    let reading = settlement.reading.as_ref().map(|reading| Place::of(reading, OP)).transpose()?;
    let mut data = log.data();
    let now = log.now();
    if held(&mut data, lease).is_none_or(|lane| lane.place != from) {
        return Ok(LeaseStatus::Lost);
    }
    let consumer: Arc<str> = lease.subscription.as_str().into();
    let is_marked = |event: &Uuid| data.inbox.contains_key(&(Arc::clone(&consumer), *event));
    if !settlement.effects.iter().all(is_marked) {
        return Ok(LeaseStatus::Lost);
    }
    let changed = if settlement.one_by_one {
        let mut changed = BTreeMap::new();
        for change in &settlement.deliveries {
            changed.extend(alone(&data, lease, change, now)?);
        }
        changed
    } else {
        changed(&data, lease, &settlement.deliveries, now)?
    };
    if let Some(lane) = held(&mut data, lease) {
        lane.place = to;
        lane.reading = reading.unwrap_or_default().number.max(to.number);
        lane.claims = 1;
    }
    let reader = data.reader(&lease.subscription, OP)?;
    if from != to {
        reader.settled.push(Settled {
            lane: lease.lane as usize,
            lanes: reader.lanes.len(),
            first: from.number + 1,
            last: to.number,
            at: now,
            by: lease.owner.clone(),
        });
    }
    reader.deliveries.extend(changed);
    for event in &settlement.succeeded {
        let is_running = |delivery: &Delivery| {
            delivery.event_id == event.event_id
                && delivery.state == DeliveryState::Running
                && delivery.epoch == Some(lease.epoch)
        };
        if reader.deliveries.get(&event.id).is_some_and(is_running) {
            reader.deliveries.remove(&event.id);
        }
    }
    lease.position = settlement.to.clone();
    Ok(refresh(&data, lease, now))
}

/// One delivery as its change leaves it; one whose step is refused, as a dead one.
fn alone(
    data: &Data,
    lease: &Lease,
    change: &DeliveryChange,
    now: OffsetDateTime,
) -> Result<BTreeMap<i64, Delivery>> {
    match changed(data, lease, std::slice::from_ref(change), now) {
        Err(error) if error.kind() == ErrorKind::Invalid => {}
        changed => return changed,
    }
    let (Some(reader), Some((_, event))) = (data.readers.get(&lease.subscription), data.event(change.id))
    else {
        return Ok(BTreeMap::new());
    };
    let mut dead = Delivery::of(event);
    let failure = DeliveryFailure::new(UNWRITABLE, "");
    dead.change(&DeliveryChange::dead(event, change.attempts, failure), now, lease);
    dead.error_message = None;
    dead.holds = holds(dead.state, reader.order, reader.on_dead);
    Ok(BTreeMap::from([(change.id, dead)]))
}

/// The deliveries as the changes leave them, if every step is one of the state machine. What is no longer in the log is
/// left out.
fn changed(
    data: &Data,
    lease: &Lease,
    changes: &[DeliveryChange],
    now: OffsetDateTime,
) -> Result<BTreeMap<i64, Delivery>> {
    let mut changed: BTreeMap<i64, Delivery> = BTreeMap::new();
    let Some(reader) = data.readers.get(&lease.subscription) else { return Ok(changed) };
    for change in changes {
        let event = data.event(change.id).filter(|(_, event)| event.event_id == change.event_id);
        let Some((_, event)) = event else { continue };
        let before = changed.get(&change.id).or_else(|| reader.deliveries.get(&change.id));
        if let Some(before) = before {
            check_step(before.state, change.state, OP)?;
        }
        let mut delivery = before.cloned().unwrap_or_else(|| Delivery::of(event));
        delivery.change(change, now, lease);
        delivery.holds = holds(change.state, reader.order, reader.on_dead);
        changed.insert(change.id, delivery);
    }
    Ok(changed)
}
