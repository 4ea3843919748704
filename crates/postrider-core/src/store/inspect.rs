//! What people see of a log.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    ArchiveOptions, Audit, Chain, Check, Error, ErrorKind, EventPage, EventQuery, EventRef, EventState,
    Figures, OffsetDateTime, OpenDelivery, OpenDeliveryQuery, PastAttempts, RelayInfo, Result, StateQuery,
    SubscriptionInfo, Sweep, Sweepable, Uuid,
};

/// Read-only queries for operators: subscriptions, relays, events, deliveries, figures.
#[async_trait]
pub trait Inspect: Send + Sync + 'static {
    /// All subscriptions with their lanes, by name.
    ///
    /// *Guarantees*: the cost depends on the number of lanes, not on the log. *Caller must*: nothing. *On failure*: nothing.
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>>;

    /// The relays that have registered, by name: those that are running, and for a day those that disappeared.
    ///
    /// *Guarantees*: the cost depends on the number of relays. *Caller must*: know that a relay that was killed counts as
    /// [live](RelayInfo::live) for up to [`GONE_AFTER`](RelayInfo::GONE_AFTER). *On failure*: nothing.
    async fn relays(&self) -> Result<Vec<RelayInfo>>;

    /// The states of events. *Guarantees*: derived from the same rows that the engine uses.
    /// *Caller must*: page with `after`. *On failure*: nothing.
    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>>;

    /// Counts of a subscription, by stream. *Guarantees*: at most a million events that were not read yet are counted. *Caller
    /// must*: not call it for each batch, because the cost grows with the backlog. *On failure*: nothing.
    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>>;

    /// Like [`figures`](crate::Inspect::figures), but faster: of the events that were not read yet it scans only the first `most`
    /// rows, whether they match or not.
    ///
    /// *Guarantees*: as [`figures`](crate::Inspect::figures), with that bound; failed and dead events are counted in full. *Caller
    /// must*: treat the pending count as a sample if the backlog is longer. *On failure*: nothing.
    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>>;

    /// The number of undelivered events of a subscription that are older than `age`. *Guarantees*: counted as in
    /// [`figures`](crate::Inspect::figures). *Caller must*: as there; it is 0 while the oldest event of the figures is not older than
    /// `age`. *On failure*: nothing.
    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64>;

    /// When the first event was recorded that some lane of a subscription has not passed, whether its filter matches that event or
    /// not; `None` if all its lanes are at the end of the log, or there is no such subscription. Retention keeps this event and all
    /// later ones. Events of transactions that committed late are not looked for.
    ///
    /// *Guarantees*: it reads the lanes of the subscription and the first event behind them by primary keys, however long the log is.
    /// *Caller must*: nothing. *On failure*: nothing.
    async fn unread_since(&self, subscription: &str) -> Result<Option<OffsetDateTime>>;

    /// Events of the log and of the archive.
    ///
    /// *Guarantees*: a query by event id is one index lookup. Every other query scans the log by id, in short statements, and reads no
    /// more rows than it allows; [`EventPage`] says how far it got. There is no index over aggregates, types or times, because it
    /// would slow down every publisher. *Caller must*: continue from [`EventPage::reached`] if the result is not complete. *On
    /// failure*: nothing.
    async fn events(&self, query: &EventQuery) -> Result<EventPage>;

    /// The causes of an event, up to the first one, and its effects.
    ///
    /// *Guarantees*: causes are looked up by id; effects are found by one scan from the event on, over at most
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

    /// Open deliveries: the dead ones, or those that will be retried; by id, then subscription.
    ///
    /// *Guarantees*: found by an index over these only. *Caller must*: page with `after`. *On failure*:
    /// nothing.
    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>>;

    /// The last failed attempts of an event, for each subscription that has any.
    ///
    /// *Guarantees*: found by primary key, once per subscription; sorted by subscription. They are kept with the delivery, also when it
    /// was delivered after all, requeued or discarded, until retention or a replay deletes it. *Caller must*: show
    /// [responses](crate::Excerpt) only on request for that event. *On failure*: nothing.
    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>>;

    /// The newest audit entries, newest first; a limit of 0 means 100.
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>>;

    /// How many rows a sweep would process now.
    ///
    /// *Guarantees*: it changes nothing and takes no lock; at most [`Sweepable::MOST`] rows are counted. *Caller must*: know that the
    /// number may change before the sweep. *On failure*: nothing.
    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        let _ = sweep;
        Err(Error::new(ErrorKind::Invalid, "sweep", "this store can't count the rows of a sweep"))
    }

    /// Checks that events can be archived this way: the table of the application exists, has the columns, accepts the fields and may
    /// be written to; the archive is or can be partitioned by month.
    ///
    /// *Guarantees*: nothing is written. *Caller must*: check before the first sweep, so that a mistake shows early. *On failure*: the
    /// message says what is wrong.
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

    /// Checks the database for present and future problems; `now` is the time of the calling machine.
    ///
    /// *Guarantees*: it changes nothing, and no check costs more than a few index lookups or a bounded scan. *Caller must*: not call
    /// it all the time. *On failure*: the database does not answer; a check that can't run reports that itself.
    async fn checks(&self, now: OffsetDateTime) -> Result<Vec<Check>>;
}
