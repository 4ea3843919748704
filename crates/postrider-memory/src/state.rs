//! The state of events, as operators see it.

use std::ops::Bound::{Excluded, Unbounded};

use postrider_core::{DeliveryState, EventState, Recorded, State, StateQuery};
use time::OffsetDateTime;

use crate::log::Log;
use crate::subscribe::SubscriptionData;

const LIMIT: u32 = 1_000;

/// The states that were asked for, by id and subscription.
pub(crate) fn states(log: &Log, query: &StateQuery) -> Vec<EventState> {
    let data = log.data();
    let now = log.now();
    let limit = if query.limit == 0 { LIMIT } else { query.limit };
    let events = data.places.range((Excluded(query.after), Unbounded)).filter_map(|(id, _)| data.event(*id));
    events
        .filter(|(_, event)| query.event_id.is_none_or(|wanted| wanted == event.event_id))
        .flat_map(|(place, event)| {
            let readers = data.readers.iter().filter(move |(_, reader)| reader.wants(place, event));
            readers.map(move |(name, reader)| shown(name, reader, place, event, now))
        })
        .filter(|state| query.subscription.as_ref().is_none_or(|wanted| *wanted == state.subscription))
        .filter(|state| query.state.is_none_or(|wanted| wanted == state.state))
        .take(limit as usize)
        .collect()
}

impl SubscriptionData {
    /// Where an event that it wants stands.
    pub(crate) fn state(&self, place: i64, event: &Recorded, now: OffsetDateTime) -> State {
        let lane = self.lane_of(event);
        match self.deliveries.get(&event.id).map(|delivery| delivery.state) {
            Some(DeliveryState::Running) => State::Processing,
            Some(DeliveryState::Waiting | DeliveryState::Retrying) => State::Retrying,
            Some(DeliveryState::Dead) => State::Dead,
            Some(DeliveryState::Discarded) => State::Discarded,
            Some(DeliveryState::Delivered) => State::Done,
            None if lane.is_some_and(|lane| place <= lane.place.number) => State::Done,
            None if lane.is_some_and(|lane| lane.holder(now).is_some() && place <= lane.reading) => {
                State::Processing
            }
            None => State::Pending,
        }
    }
}

fn shown(
    name: &str,
    reader: &SubscriptionData,
    place: i64,
    event: &Recorded,
    now: OffsetDateTime,
) -> EventState {
    let state = reader.state(place, event, now);
    let holder = reader.lane_of(event).and_then(|lane| lane.holder(now));
    let mut shown = EventState {
        id: event.id,
        event_id: event.event_id,
        subscription: name.to_owned(),
        state,
        attempts: 0,
        next_retry_at: None,
        last_attempt_at: None,
        delivered_at: None,
        delivered_by: None,
        lease_owner: holder.map(|(owner, _)| owner.to_owned()),
        lease_until: holder.map(|(_, until)| until),
        error_code: None,
        error_message: None,
    };
    if let Some(delivery) = reader.deliveries.get(&event.id) {
        shown.attempts = delivery.attempts;
        shown.next_retry_at = delivery.next_at.filter(|_| delivery.state == DeliveryState::Retrying);
        shown.last_attempt_at = delivery.last_attempt_at;
        shown.delivered_at = delivery.delivered_at;
        shown.delivered_by.clone_from(&delivery.delivered_by);
        shown.error_code.clone_from(&delivery.error_code);
        shown.error_message.clone_from(&delivery.error_message);
    }
    if let Some(settled) = reader.settled.iter().find(|settled| settled.has(place, event)) {
        shown.last_attempt_at.get_or_insert(settled.at);
        if !reader.deliveries.contains_key(&event.id) {
            (shown.attempts, shown.delivered_at) = (1, Some(settled.at));
            shown.delivered_by = Some(settled.by.clone());
        }
    }
    shown
}
