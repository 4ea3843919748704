//! How a subscription is doing, in numbers.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

use postrider_core::{DeliveryState, Figures, Order, Recorded, Result, State};
use time::OffsetDateTime;

use crate::delivery::Delivery;
use crate::hash::lane_of;
use crate::log::{Data, Log};
use crate::subscribe::SubscriptionData;

/// At most this many events that were not read yet are looked at unless fewer will do.
pub(crate) const MOST_UNREAD: u32 = 1_000_000;

/// How many events of a subscription are where, by stream; streams of which nothing is open are left out.
pub(crate) fn figures(log: &Log, subscription: &str, most: u32) -> Result<Vec<Figures>> {
    let data = log.data();
    let now = log.now();
    let reader = data.subscription(subscription, "figures")?;
    let mut streams: BTreeMap<&str, Stream> = BTreeMap::new();
    for (event, state, attempts) in open(&data, reader, now, most) {
        streams.entry(&event.stream).or_default().count(event, state, attempts);
    }
    let mut in_front = InFront::default();
    for (id, delivery) in &reader.deliveries {
        let is_first = in_front.is_first(reader, delivery);
        let Some((_, event)) = data.event(*id) else { continue };
        let Some(stream) = streams.get_mut(&*event.stream) else { continue };
        match delivery.state {
            DeliveryState::Waiting => {
                stream.figures.waiting += 1;
                stream.figures.due += u64::from(is_first);
            }
            DeliveryState::Retrying => {
                let retry_in = delivery.next_at.map(|next_at| (next_at - now).as_seconds_f64());
                let known = stream.figures.retry_in;
                stream.figures.retry_in = known.into_iter().chain(retry_in).reduce(f64::min);
            }
            _ => {}
        }
    }
    let age = |oldest: Option<OffsetDateTime>| {
        oldest.map_or(0.0, |oldest| (now - oldest).as_seconds_f64().max(0.0))
    };
    let figures = streams.into_iter().map(|(name, stream)| Figures {
        subscription: subscription.to_owned(),
        stream: name.to_owned(),
        oldest_seconds: age(stream.oldest),
        oldest_pending_seconds: age(stream.oldest_pending),
        ..stream.figures
    });
    Ok(figures.collect())
}

/// What holds a key or a lane, among the deliveries so far.
#[derive(Default)]
struct InFront<'a> {
    keys: HashSet<&'a str>,
    lanes: HashSet<usize>,
}

impl<'a> InFront<'a> {
    /// Whether nothing is in front of a delivery, which comes after the others by its id.
    fn is_first(&mut self, reader: &SubscriptionData, delivery: &'a Delivery) -> bool {
        if !delivery.holds {
            return true;
        }
        match reader.order {
            Order::None => true,
            Order::Key => self.keys.insert(&delivery.key),
            Order::Strict => self.lanes.insert(lane_of(&delivery.key, reader.lanes.len())),
        }
    }
}

/// How many undelivered events of a subscription were recorded longer ago than that.
pub(crate) fn undelivered_over(log: &Log, subscription: &str, age: Duration) -> Result<u64> {
    let data = log.data();
    let now = log.now();
    let reader = data.subscription(subscription, "undelivered_over")?;
    let over = open(&data, reader, now, MOST_UNREAD)
        .filter(|(event, state, _)| *state != State::Dead && now - event.recorded_at > age);
    Ok(over.count() as u64)
}

/// When the first event was recorded that some lane of a subscription has not passed.
pub(crate) fn unread_since(log: &Log, subscription: &str) -> Option<OffsetDateTime> {
    let data = log.data();
    let lowest = data.readers.get(subscription)?.lanes.iter().map(|lane| lane.place.number).min()?;
    data.events.range((Excluded(lowest), Unbounded)).next().map(|(_, event)| event.recorded_at)
}

/// What is not delivered, the dead included, and how often it was tried.
fn open<'a>(
    data: &'a Data,
    reader: &'a SubscriptionData,
    now: OffsetDateTime,
    most: u32,
) -> impl Iterator<Item = (&'a Recorded, State, u32)> {
    let unread = unread(data, reader, now, most as usize).map(|(event, state)| (event, state, 0));
    let read = reader.deliveries.iter().filter_map(|(id, delivery)| {
        let state = match delivery.state {
            DeliveryState::Running => State::Processing,
            DeliveryState::Waiting | DeliveryState::Retrying => State::Retrying,
            DeliveryState::Dead => State::Dead,
            DeliveryState::Delivered | DeliveryState::Discarded => return None,
        };
        data.event(*id).map(|(_, event)| (event, state, delivery.attempts))
    });
    unread.chain(read)
}

/// What no lane has settled yet, from the lane that is furthest behind on.
fn unread<'a>(
    data: &'a Data,
    reader: &'a SubscriptionData,
    now: OffsetDateTime,
    most: usize,
) -> impl Iterator<Item = (&'a Recorded, State)> {
    let behind = reader.lanes.iter().map(|lane| lane.place.number).min().unwrap_or(0);
    let events = data.events.range((Excluded(behind), Unbounded)).take(most);
    // What has a delivery is counted by that.
    let wanted = events
        .filter(|(place, event)| reader.wants(**place, event) && !reader.deliveries.contains_key(&event.id));
    let states = wanted.map(move |(place, event)| (event, reader.state(*place, event, now)));
    states.filter(|(_, state)| matches!(state, State::Pending | State::Processing))
}

/// The figures of one stream as they are being counted.
#[derive(Default)]
struct Stream {
    figures: Figures,
    oldest: Option<OffsetDateTime>,
    oldest_pending: Option<OffsetDateTime>,
}

impl Stream {
    fn count(&mut self, event: &Recorded, state: State, attempts: u32) {
        match state {
            State::Pending => self.figures.pending += 1,
            State::Processing => self.figures.processing += 1,
            State::Retrying => self.figures.retrying += 1,
            State::Dead => self.figures.dead += 1,
            State::Done | State::Discarded => {}
        }
        if state != State::Dead {
            self.figures.attempts += u64::from(attempts);
            let earlier = |known: Option<OffsetDateTime>| {
                Some(known.map_or(event.recorded_at, |known| known.min(event.recorded_at)))
            };
            self.oldest = earlier(self.oldest);
            if state == State::Pending {
                self.oldest_pending = earlier(self.oldest_pending);
            }
        }
    }
}
