//! What people see of a log.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    ArchiveOptions, Audit, Chain, Check, Error, ErrorKind, EventPage, EventQuery, EventRef, EventState,
    Figures, OffsetDateTime, OpenDelivery, OpenDeliveryQuery, PastAttempts, RelayInfo, Result, StateQuery,
    SubscriptionInfo, Sweep, Sweepable, Uuid,
};

/// A log as people see it: subscriptions, relays, events, deliveries, figures. Nothing here changes anything.
#[async_trait]
pub trait Inspect: Send + Sync + 'static {
    /// All subscriptions with their lanes, by name.
    ///
    /// *Guarantees*: it costs what there are lanes, whatever the log. *Caller must*: nothing. *On failure*: nothing.
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>>;

    /// The relays that made themselves known, by name: those that are there, and for a day those that ended without a word.
    ///
    /// *Guarantees*: it costs what there are relays. *Caller must*: know that a relay that was killed counts as
    /// [live](RelayInfo::live) for up to [`GONE_AFTER`](RelayInfo::GONE_AFTER). *On failure*: nothing.
    async fn relays(&self) -> Result<Vec<RelayInfo>>;

    /// Where events stand, for people. *Guarantees*: derived from the same rows that the engine uses.
    /// *Caller must*: page with `after`. *On failure*: nothing.
    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>>;

    /// How a subscription is doing, by stream. *Guarantees*: at most a million events that were not read yet are counted,
    /// whatever the backlog. *Caller must*: not call it for each batch: it costs what is undelivered. *On failure*: nothing.
    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>>;

    /// The same for who is in a hurry: of the events that were not read yet only the first `most` rows are looked at, wanted
    /// or not.
    ///
    /// *Guarantees*: as [`figures`](crate::Inspect::figures), with that bound; what failed or died is counted whole. *Caller must*: take
    /// the pending ones for a sample where the log is further ahead than that. *On failure*: nothing.
    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>>;

    /// How many undelivered events of a subscription were recorded longer ago than `age`. *Guarantees*: as [`figures`](crate::Inspect::figures)
    /// counts. *Caller must*: the same; while the oldest of the figures is no older than `age` the answer is 0. *On failure*: nothing.
    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64>;

    /// Events of the log and of the archive.
    ///
    /// *Guarantees*: by an event id it is one look at an index; everything else walks the log by id, in short statements, and
    /// looks at no more rows than the query allows: [`EventPage`] says how far it got. There is no index over aggregates, types
    /// or times, because every publisher would pay for it. *Caller must*: go on from [`EventPage::reached`] where the answer is
    /// not complete. *On failure*: nothing.
    async fn events(&self, query: &EventQuery) -> Result<EventPage>;

    /// What caused an event, up to the first cause, and what followed from it.
    ///
    /// *Guarantees*: causes are looked up by their ids; what followed is found by one walk from the event on, over at most
    /// [`Chain::MOST_ROWS`] rows. *Caller must*: nothing. *On failure*: nothing; [`NotFound`](crate::ErrorKind::NotFound) if
    /// neither the log nor the archive has the event.
    async fn chain(&self, event_id: Uuid) -> Result<Chain> {
        let by_id = |id| EventQuery { event_id: Some(id), ..EventQuery::default() };
        let found = self.events(&by_id(event_id)).await?.events.pop();
        let mut chain = Chain::of(found.ok_or_else(|| Chain::unknown(event_id))?);
        let mut seen = HashSet::from([event_id]);
        while let Some(cause) = chain.next_cause().filter(|cause| seen.insert(*cause)) {
            if chain.causes.len() == Chain::MOST_CAUSES {
                chain.complete = false;
                break;
            }
            match self.events(&by_id(cause)).await?.events.pop() {
                Some(event) => chain.causes.insert(0, event),
                None => {
                    chain.lost_cause = Some(cause);
                    break;
                }
            }
        }
        // What follows from an event is recorded after it, so one walk finds what follows from what followed.
        let mut known = HashSet::from([event_id]);
        let mut query = EventQuery {
            after: Some(chain.event.event.id),
            oldest_first: true,
            caused: true,
            limit: 1000,
            rows: Chain::MOST_ROWS,
            ..EventQuery::default()
        };
        loop {
            let found = self.events(&query).await?;
            for event in found.events {
                let follows = event.event.headers.causation_id().is_some_and(|cause| known.contains(&cause));
                if follows && known.insert(event.event.event_id) {
                    chain.followed.push(event);
                }
            }
            let looked = u32::try_from(found.looked).unwrap_or(u32::MAX);
            chain.looked += found.looked;
            if found.complete {
                return Ok(chain);
            }
            query.rows = query.rows.saturating_sub(looked);
            let Some((reached, _)) = found.reached.filter(|_| query.rows > 0 && looked > 0) else {
                chain.complete = false;
                return Ok(chain);
            };
            query.after = Some(reached);
        }
    }

    /// Deliveries that did not simply succeed: the dead, or those that are to be tried again; by id, then subscription.
    ///
    /// *Guarantees*: found by an index over just these, whatever the log. *Caller must*: page with `after`. *On failure*:
    /// nothing.
    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>>;

    /// The last tries of an event that failed, for each subscription that has any on record.
    ///
    /// *Guarantees*: found by the primary key, once a subscription, whatever the log; by subscription. They are kept with the delivery:
    /// also when it was delivered in the end, requeued or discarded, until retention takes it or a replay forgets it. *Caller must*: show
    /// [answers](crate::Excerpt) only to who asks for that event. *On failure*: nothing.
    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>>;

    /// The newest of what was written down, newest first; 0 means 100.
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>>;

    /// How much a sweep would take now.
    ///
    /// *Guarantees*: it changes nothing and takes no lock; at most [`Sweepable::MOST`] rows are counted. *Caller must*: know that it
    /// may be another number by the time it sweeps. *On failure*: nothing.
    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        let _ = sweep;
        Err(Error::new(ErrorKind::Invalid, "sweep", "this store can't count the rows of a sweep"))
    }

    /// Whether events can be filed so: a table of the application is there, has the columns, takes the fields, and may be
    /// written to; an archive that is to be partitioned by month is, or can be.
    ///
    /// *Guarantees*: nothing is written. *Caller must*: ask before the first sweep, so that a mistake is found by day. *On
    /// failure*: the sentence says what is wrong with it.
    async fn check_archive(&self, archiving: &ArchiveOptions) -> Result<()> {
        match &archiving.target {
            None => Ok(()),
            Some(target) => {
                let message = format!(
                    "this store can't archive into {}; it supports only its own archive",
                    target.name()
                );
                Err(Error::new(ErrorKind::Invalid, "archive", message))
            }
        }
    }

    /// What is wrong or will be, as far as the database can tell; `now` is the time of the machine that asks.
    ///
    /// *Guarantees*: it changes nothing, and no check costs more than a few index lookups or a bounded scan. *Caller must*:
    /// not ask all the time. *On failure*: the database does not answer at all; a check that can't be made says so itself.
    async fn checks(&self, now: OffsetDateTime) -> Result<Vec<Check>>;
}
