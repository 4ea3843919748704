//! Queries for operators.

use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Audit, Check, DeliveryState, EventPage, EventQuery, EventRef, EventState, Figures, Headers, Inspect,
    LaneInfo, LoggedEvent, OffsetDateTime, OpenDelivery, OpenDeliveryQuery, PastAttempts, Payload, Recorded,
    RelayInfo, Result, Search, StateQuery, Subscription, SubscriptionInfo, Sweep, Sweepable,
};

use crate::delivery::Delivery;
use crate::log::Data;
use crate::store::MemoryStore;
use crate::subscribe::SubscriptionData;
use crate::{figures, relays, state, sweep};

#[async_trait]
impl Inspect for MemoryStore {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        let data = self.log.data();
        let now = self.log.now();
        Ok(data.readers.iter().map(|(name, reader)| info(&data, name, reader, now)).collect())
    }

    async fn relays(&self) -> Result<Vec<RelayInfo>> {
        let data = self.log.data();
        Ok(relays::known(&data, self.log.now()))
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        Ok(state::states(&self.log, query))
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        figures::figures(&self.log, subscription, figures::MOST_UNREAD)
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        figures::figures(&self.log, subscription, most)
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        figures::undelivered_over(&self.log, subscription, age)
    }

    async fn unread_since(&self, subscription: &str) -> Result<Option<OffsetDateTime>> {
        Ok(figures::unread_since(&self.log, subscription))
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        Ok(events(&self.log.data(), query))
    }

    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        Ok(open_deliveries(&self.log.data(), query))
    }

    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>> {
        Ok(attempts(&self.log.data(), event))
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        let limit = if limit == 0 { 100 } else { limit as usize };
        Ok(self.log.data().audits.iter().rev().take(limit).cloned().collect())
    }

    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        Ok(sweep::sweepable(&self.log, sweep))
    }

    async fn checks(&self, _now: OffsetDateTime) -> Result<Vec<Check>> {
        Ok(vec![Check::warn(
            "storage",
            "the log is in memory and is lost when this process ends",
            "use it in tests only",
        )])
    }
}

fn info(data: &Data, name: &str, reader: &SubscriptionData, now: OffsetDateTime) -> SubscriptionInfo {
    let last_settled = |number: usize| {
        let of_lane = |settled: &&crate::settle::Settled| {
            (settled.lane, settled.lanes) == (number, reader.lanes.len()) && !settled.by.is_empty()
        };
        reader.settled.iter().rev().find(of_lane).map(|settled| settled.at)
    };
    let lanes = reader.lanes.iter().enumerate().map(|(number, lane)| {
        let holder = lane.holder(now);
        LaneInfo {
            lane: u32::try_from(number).unwrap_or(u32::MAX),
            reached: lane.place.frontier,
            behind: u64::try_from(data.end.number - lane.place.number).unwrap_or(0),
            owner: holder.map(|(owner, _)| owner.to_owned()),
            lease_until: holder.map(|(_, until)| until),
            settled_at: last_settled(number),
            away: lane.away(now).map(|(reason, _)| reason.clone()),
            away_since: lane.away(now).map(|(_, since)| *since),
        }
    });
    let subscription = Subscription {
        name: name.to_owned(),
        filter: reader.filter.clone(),
        lanes: u32::try_from(reader.lanes.len()).unwrap_or(u32::MAX),
        start: match (reader.since, reader.start) {
            (Some(since), _) => postrider_core::Start::At(since),
            (None, 0) => postrider_core::Start::Beginning,
            (None, _) => postrider_core::Start::Now,
        },
        order: reader.order,
        on_dead: reader.on_dead,
        replay: reader.replay,
    };
    SubscriptionInfo {
        subscription,
        lanes_next: reader.lanes_next,
        paused: reader.paused.is_some(),
        pause: reader.paused.clone(),
        created_at: reader.created_at,
        lanes: lanes.collect(),
    }
}

fn events(data: &Data, query: &EventQuery) -> EventPage {
    let mut all: Vec<(&postrider_core::Recorded, bool)> =
        data.events.values().map(|event| (event, false)).collect();
    all.extend(data.archive.iter().map(|event| (event, true)));
    if query.event_id.is_some() {
        let matching = all.iter().filter(|(event, _)| query.wants(event));
        let events: Vec<LoggedEvent> = matching
            .map(|(event, archived)| LoggedEvent { event: (*event).clone(), archived: *archived })
            .collect();
        return EventPage { looked: events.len() as u64, events, reached: None, complete: true };
    }
    all.sort_by_key(|(event, _)| event.id);
    if !query.oldest_first {
        all.reverse();
    }
    let mut search = Search::new(query);
    while let Some((after, before, rows)) = search.page() {
        let page = all.iter().filter(|(event, _)| event.id > after && event.id < before).take(rows as usize);
        let page: Vec<_> = page.collect();
        let last = page.last().map(|(event, _)| (event.id, event.recorded_at));
        let looked = page.len() as u64;
        let wanted = page.into_iter().filter(|(event, _)| query.wants(event));
        let wanted =
            wanted.map(|(event, archived)| LoggedEvent { event: (*event).clone(), archived: *archived });
        search.take(wanted.collect(), looked, last, rows);
    }
    search.found()
}

fn open_deliveries(data: &Data, query: &OpenDeliveryQuery) -> Vec<OpenDelivery> {
    let wanted = data
        .readers
        .iter()
        .filter(|(name, _)| query.subscription.as_ref().is_none_or(|wanted| wanted == *name));
    let mut found: Vec<OpenDelivery> = wanted
        .flat_map(|(name, reader)| {
            let first = query.after.as_ref().map_or(0, |(id, _)| id - 1);
            reader
                .deliveries
                .range((Excluded(first), Unbounded))
                .map(move |(id, delivery)| (name, id, delivery))
        })
        .filter(|(name, id, delivery)| {
            let in_state = if query.retrying {
                delivery.is_undelivered()
            } else {
                delivery.state == DeliveryState::Dead
            };
            let tried = delivery.last_attempt_at;
            in_state
                && query.after.as_ref().is_none_or(|(after, behind)| (**id, name.as_str()) > (*after, behind))
                && (query.error_code.is_none() || query.error_code == delivery.error_code)
                && query.from.is_none_or(|from| tried.is_some_and(|tried| tried >= from))
                && query.until.is_none_or(|until| tried.is_some_and(|tried| tried < until))
        })
        .filter_map(|(name, id, delivery)| {
            let (_, event) = data.event(*id)?;
            let fits = query.event_type.as_ref().is_none_or(|wanted| wanted.matches(&event.event_type));
            fits.then(|| OpenDelivery {
                subscription: name.clone(),
                event: if query.bare { bare(event) } else { event.clone() },
                state: delivery.state,
                attempts: delivery.attempts,
                next_at: delivery.next_at.filter(|_| delivery.state == DeliveryState::Retrying),
                first_failed_at: delivery.first_failed_at,
                last_attempt_at: delivery.last_attempt_at,
                error_code: delivery.error_code.clone(),
                error_message: delivery.error_message.clone(),
            })
        })
        .collect();
    found.sort_by(|a, b| (a.event.id, &a.subscription).cmp(&(b.event.id, &b.subscription)));
    found.truncate(query.most() as usize);
    found
}

fn attempts(data: &Data, event: EventRef) -> Vec<PastAttempts> {
    let of = |(name, delivery): (&String, &Delivery)| {
        let is_it = delivery.event_id == event.event_id && !delivery.past.is_empty();
        is_it.then(|| PastAttempts { subscription: name.clone(), attempts: delivery.past.clone() })
    };
    let deliveries =
        data.readers.iter().filter_map(|(name, reader)| Some((name, reader.deliveries.get(&event.id)?)));
    let mut found: Vec<PastAttempts> = deliveries.filter_map(of).collect();
    found.sort_by(|a, b| a.subscription.cmp(&b.subscription));
    found
}

/// An event without its payload and headers.
fn bare(event: &Recorded) -> Recorded {
    Recorded { payload: Payload::Json("null".to_owned()), headers: Headers::new(), ..event.clone() }
}
