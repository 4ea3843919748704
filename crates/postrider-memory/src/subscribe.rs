//! Subscriptions, and the lanes that they begin with.

use std::collections::BTreeMap;

use postrider_core::{Filter, OnDead, Order, Paused, Recorded, Result, Start, Subscribed, Subscription};
use time::OffsetDateTime;

use crate::clock::to_micros;
use crate::delivery::{Delivery, holds};
use crate::hash::lane_of;
use crate::lane::Lane;
use crate::log::{Data, Log};
use crate::position::Place;
use crate::relane;
use crate::settle::Settled;
use crate::share::Wanted;

/// A subscription, with everything that is known of its events.
pub(crate) struct SubscriptionData {
    pub(crate) filter: Filter,
    pub(crate) order: Order,
    pub(crate) on_dead: OnDead,
    /// Whether an operator may let it read again what it has read.
    pub(crate) replay: bool,
    /// Whether an operator has stopped it.
    pub(crate) paused: Option<Paused>,
    pub(crate) created_at: OffsetDateTime,
    /// Nothing up to this place belongs to it.
    pub(crate) start: i64,
    /// Nothing recorded before this belongs to it.
    pub(crate) since: Option<OffsetDateTime>,
    pub(crate) lanes: Vec<Lane>,
    /// How many lanes it is to have, while they change.
    pub(crate) lanes_next: Option<u32>,
    /// Where all lanes have to arrive before they change, once that is known.
    pub(crate) target: Option<Place>,
    /// Whether somebody wants a lane.
    pub(crate) wanted: Option<Wanted>,
    /// What was settled, in the order in which it was.
    pub(crate) settled: Vec<Settled>,
    /// What did not simply succeed, by the ids of the events.
    pub(crate) deliveries: BTreeMap<i64, Delivery>,
}

impl SubscriptionData {
    /// Makes its lanes, all at one place, and the settled batch of nothing that each begins with.
    pub(crate) fn make_lanes(&mut self, lanes: u32, place: Place, epoch: i64, now: OffsetDateTime) {
        self.lanes = (0..lanes).map(|_| Lane::new(place, epoch)).collect();
        let base = (0..self.lanes.len()).map(|lane| Settled::base(lane, self.lanes.len(), place.number, now));
        self.settled.extend(base);
    }

    /// Whether an event at a place belongs to it.
    pub(crate) fn wants(&self, place: i64, event: &Recorded) -> bool {
        place > self.start
            && self.since.is_none_or(|since| event.recorded_at >= since)
            && self.filter.wants(&event.stream, &event.event_type)
    }

    /// The lane of an event.
    pub(crate) fn lane_of(&self, event: &Recorded) -> Option<&Lane> {
        self.lanes.get(lane_of(&event.key(), self.lanes.len()))
    }

    /// Whether anything is open: to be tried again, waiting, or holding its key.
    pub(crate) fn is_open(&self) -> bool {
        self.deliveries.values().any(|delivery| delivery.is_undelivered() || delivery.holds)
    }
}

/// Creates a subscription, or gives it its new filter, policies and number of lanes.
pub(crate) fn subscribe(log: &Log, wanted: &Subscription) -> Result<Subscribed> {
    wanted.check()?;
    let mut data = log.data();
    let now = log.now();
    if let Some(reader) = data.readers.get_mut(&wanted.name) {
        reader.filter = wanted.filter.clone();
        (reader.order, reader.on_dead, reader.replay) = (wanted.order, wanted.on_dead, wanted.replay);
        for delivery in reader.deliveries.values_mut() {
            delivery.holds = holds(delivery.state, reader.order, reader.on_dead);
        }
        relane::want(reader, wanted.lanes);
        return Ok(Subscribed::Known);
    }
    let (place, since) = start(&data, wanted.start);
    let mut reader = SubscriptionData {
        filter: wanted.filter.clone(),
        order: wanted.order,
        on_dead: wanted.on_dead,
        replay: wanted.replay,
        paused: None,
        created_at: now,
        start: place.number,
        since,
        lanes: Vec::new(),
        lanes_next: None,
        target: None,
        wanted: None,
        settled: Vec::new(),
        deliveries: BTreeMap::new(),
    };
    reader.make_lanes(wanted.lanes, place, 0, now);
    data.readers.insert(wanted.name.clone(), reader);
    Ok(Subscribed::New)
}

/// Where a new subscription starts.
fn start(data: &Data, start: Start) -> (Place, Option<OffsetDateTime>) {
    match start {
        Start::Beginning => (Place::default(), None),
        Start::Now => (data.end, None),
        Start::At(time) => {
            let since = to_micros(time);
            let mut place = Place::default();
            for (number, event) in &data.events {
                if event.recorded_at >= since {
                    return (place, Some(since));
                }
                place = place.passing(*number, event.id);
            }
            (data.end, Some(since))
        }
    }
}
