//! Events by what they are, and by where they stand for a subscription.
//!
//! States have no index of their own, except for what failed or died: so these are found by it, and the others by looking
//! at events one after the other, no more of them than a person waits for.

use postrider::store::{EventQuery, EventState, LoggedEvent, OpenDeliveryQuery, State, StateQuery};
use postrider::{OffsetDateTime, Uuid};

use crate::Failure;
use crate::database::SharedStore;

/// So many events are asked for their state at most.
const MOST: usize = 2_000;
const PAGE: u32 = 500;

/// What is looked for.
pub(crate) struct Search<'a> {
    /// The log.
    pub(crate) log: &'a SharedStore,
    /// Which events.
    pub(crate) query: &'a EventQuery,
    /// Whose states.
    pub(crate) subscription: Option<&'a str>,
}

/// What was found.
pub(crate) struct EventPage {
    /// The events, with their states where they were asked for.
    pub(crate) events: Vec<(LoggedEvent, Option<State>)>,
    /// How many were looked at.
    pub(crate) looked: u64,
    /// Whether these are all.
    pub(crate) complete: bool,
    /// How far it was looked.
    pub(crate) reached: Option<(i64, OffsetDateTime)>,
    /// In which direction.
    pub(crate) oldest_first: bool,
}

impl Search<'_> {
    /// Finds them.
    pub(crate) async fn find(&self, state: Option<State>) -> Result<EventPage, Failure> {
        match state {
            None => self.all().await,
            Some(state @ (State::Dead | State::Retrying)) => self.open_deliveries(state).await,
            Some(state) => self.in_state(state).await,
        }
    }

    async fn all(&self) -> Result<EventPage, Failure> {
        let found = self.log.events(self.query).await?;
        let mut events = Vec::new();
        for logged in found.events {
            let state = self.state_of(logged.event.event_id).await?.map(|state| state.state);
            events.push((logged, state));
        }
        Ok(EventPage {
            events,
            looked: found.looked,
            complete: found.complete,
            reached: found.reached,
            oldest_first: self.query.oldest_first,
        })
    }

    /// What failed or died, by its index.
    async fn open_deliveries(&self, state: State) -> Result<EventPage, Failure> {
        let limit = self.query.limit as usize;
        let mut found =
            EventPage { events: Vec::new(), looked: 0, complete: false, reached: None, oldest_first: true };
        let mut query = OpenDeliveryQuery {
            retrying: state == State::Retrying,
            subscription: self.subscription.map(ToOwned::to_owned),
            event_type: self.query.event_type.clone(),
            after: self.query.after.map(|after| (after.saturating_add(1), String::new())),
            limit: PAGE,
            ..OpenDeliveryQuery::default()
        };
        loop {
            let page = self.log.open_deliveries(&query).await?;
            let last = page.len() < PAGE as usize;
            for delivery in page {
                let event = delivery.event;
                if self.query.before.is_some_and(|before| event.id >= before) {
                    found.complete = true;
                    return Ok(found);
                }
                if found.events.len() == limit {
                    return Ok(found);
                }
                found.looked += 1;
                found.reached = Some((event.id, event.recorded_at));
                query.after = Some((event.id, delivery.subscription));
                if self.query.wants(&event) {
                    found.events.push((LoggedEvent { event, archived: false }, Some(state)));
                }
            }
            if last {
                found.complete = true;
                return Ok(found);
            }
        }
    }

    /// The others, by asking event by event.
    async fn in_state(&self, state: State) -> Result<EventPage, Failure> {
        let limit = self.query.limit as usize;
        let mut query = EventQuery { limit: PAGE, ..self.query.clone() };
        if matches!(state, State::Done | State::Discarded) && !query.oldest_first {
            // What nobody has read yet can't be done.
            let read = self.read_up_to().await?;
            query.before = Some(query.before.map_or(read, |before| before.min(read)));
        }
        let mut found = EventPage {
            events: Vec::new(),
            looked: 0,
            complete: false,
            reached: None,
            oldest_first: query.oldest_first,
        };
        let mut asked = 0;
        loop {
            let page = self.log.events(&query).await?;
            found.looked += page.looked;
            for logged in page.events {
                if found.events.len() == limit || asked == MOST {
                    return Ok(found);
                }
                asked += 1;
                found.reached = Some((logged.event.id, logged.event.recorded_at));
                let stands = self.state_of(logged.event.event_id).await?;
                if stands.is_some_and(|stands| stands.state == state) {
                    found.events.push((logged, Some(state)));
                }
            }
            found.reached = page.reached.or(found.reached);
            found.complete = page.complete;
            let left = u64::from(self.query.rows).saturating_sub(found.looked);
            let Some((reached, _)) = page.reached.filter(|_| !page.complete && left > 0) else {
                return Ok(found);
            };
            query.rows = u32::try_from(left).unwrap_or(u32::MAX);
            if query.oldest_first {
                query.after = Some(reached);
            } else {
                query.before = Some(reached);
            }
        }
    }

    /// The id from which on no lane of the subscription has settled anything.
    async fn read_up_to(&self) -> Result<i64, Failure> {
        let all = self.log.subscriptions().await?;
        let named = all.iter().find(|info| Some(info.subscription.name.as_str()) == self.subscription);
        let reached = named.and_then(|info| info.lanes.iter().map(|lane| lane.reached).max());
        Ok(reached.unwrap_or(0).saturating_add(1))
    }

    async fn state_of(&self, event_id: Uuid) -> Result<Option<EventState>, Failure> {
        let Some(subscription) = self.subscription else { return Ok(None) };
        let query = StateQuery {
            subscription: Some(subscription.to_owned()),
            event_id: Some(event_id),
            limit: 1,
            ..StateQuery::default()
        };
        Ok(self.log.states(&query).await?.pop())
    }
}
