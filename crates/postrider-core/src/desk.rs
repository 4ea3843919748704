//! The contract between a database and the people at the controls.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Audit, AuditEntry, Chain, Check, Duty, Error, ErrorKind, EventQuery, EventRef, Filing, Found,
    OffsetDateTime, PastAttempts, Pause, RelayInfo, Replay, Replayed, Result, Stuck, StuckQuery,
    SubscriptionInfo, Sweep, Sweepable, Uuid,
};

/// A log in a database, as operators see and steer it. Relays use [`Store`](crate::Store).
///
/// Every promise below is a named test in `postrider-conformance`, which runs against every store. Nothing here writes an
/// [`audit`](Desk::audit) by itself: who acts says so.
#[async_trait]
pub trait Desk: Send + Sync + 'static {
    /// All subscriptions with their lanes, by name.
    ///
    /// *Guarantees*: it costs what there are lanes, whatever the log. *Caller must*: nothing. *On failure*: nothing.
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>>;

    /// The relays that made themselves known, by name: those that are there, and for a day those that ended without a word.
    ///
    /// *Guarantees*: it costs what there are relays. *Caller must*: know that a relay that was killed counts as
    /// [live](RelayInfo::live) for up to [`GONE_AFTER`](RelayInfo::GONE_AFTER). *On failure*: nothing.
    async fn relays(&self) -> Result<Vec<RelayInfo>>;

    /// Pauses a subscription, or lets it go on where nothing is given.
    ///
    /// *Guarantees*: who, why and since when is kept until it goes on; nobody claims a lane of a paused one; holders are told
    /// [`Recalled`](crate::Standing::Recalled) at their next read, settle or extension, and finish what is in flight.
    /// Sleeping relays are rung. To say it twice is to say it once: the first who paused it stays. *Caller must*: nothing. *On failure*: nothing changed;
    /// [`NotFound`](crate::ErrorKind::NotFound) for an unknown name.
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()>;

    /// Removes a subscription: its lanes, its deliveries and its history, in one transaction.
    ///
    /// *Guarantees*: retention waits for it no longer; a holder that was forced out can't settle. The inbox stays: a
    /// subscription that is made again under the name, or a consumer of a broker with it, must not repeat effects.
    /// *Caller must*: stop its relays first, or force it. *On failure*: nothing changed;
    /// [`Refused`](crate::ErrorKind::Refused) while a relay holds a lane, or a live one has the subscription, and `force` is not set.
    async fn remove(&self, subscription: &str, force: bool) -> Result<()>;

    /// Events of the log and of the archive.
    ///
    /// *Guarantees*: by an event id it is one look at an index; everything else walks the log by id, in short statements, and
    /// looks at no more rows than the query allows: [`Found`] says how far it got. There is no index over aggregates, types
    /// or times, because every publisher would pay for it. *Caller must*: go on from [`Found::reached`] where the answer is
    /// not complete. *On failure*: nothing.
    async fn events(&self, query: &EventQuery) -> Result<Found>;

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
    async fn stuck(&self, query: &StuckQuery) -> Result<Vec<Stuck>>;

    /// The last tries of an event that failed, for each subscription that has any on record.
    ///
    /// *Guarantees*: found by the primary key, once a subscription, whatever the log; by subscription. They are kept with the delivery:
    /// also when it was delivered in the end, requeued or discarded, until retention takes it or a replay forgets it. *Caller must*: show
    /// [answers](crate::Excerpt) only to who asks for that event. *On failure*: nothing.
    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>>;

    /// Lets a subscription read again from an event or a time on.
    ///
    /// *Guarantees*: in one transaction every lane goes back to before that event, except one that has not got so far yet;
    /// every holder loses its lane, and can't settle; the deliveries of what comes again are forgotten, open ones before it
    /// stay. From then on every event from the point on that the subscription wants and that was recorded after its start
    /// comes (again), whatever the transactions that write meanwhile do, in order per key; and nothing that was owed before
    /// is lost. Events recorded just before the point may come along, where the store counts by commits. Sleeping relays are
    /// rung. A dry run counts and changes nothing. *Caller must*: [`pause`](Desk::pause) first, and wait until no lane is
    /// held, if what holders have in flight must not arrive among what comes again. *On failure*: nothing changed;
    /// [`Refused`](crate::ErrorKind::Refused) if the subscription forbids replay, while its lanes are being changed, if
    /// retention has taken something from there on, and, unless effects may repeat, if the inbox has forgotten what was
    /// handled from there on.
    async fn replay(&self, replay: &Replay) -> Result<Replayed>;

    /// How much a sweep would take now.
    ///
    /// *Guarantees*: it changes nothing and takes no lock; at most [`Sweepable::MOST`] rows are counted. *Caller must*: know that it
    /// may be another number by the time it sweeps. *On failure*: nothing.
    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        let _ = sweep;
        Err(Error::new(ErrorKind::Invalid, "sweep", "this store can't count what a sweep would take"))
    }

    /// Whether events can be filed so: a table of the application is there, has the columns, takes the fields, and may be
    /// written to; an archive that is to be partitioned by month is, or can be.
    ///
    /// *Guarantees*: nothing is written. *Caller must*: ask before the first sweep, so that a mistake is found by day. *On
    /// failure*: the sentence says what is wrong with it.
    async fn check_filing(&self, filing: &Filing) -> Result<()> {
        match &filing.target {
            None => Ok(()),
            Some(target) => {
                let message = format!(
                    "this store can't archive into {}: it has an archive of its own only",
                    target.name()
                );
                Err(Error::new(ErrorKind::Invalid, "archive", message))
            }
        }
    }

    /// Writes down who did what and why, for good: no row is ever changed or deleted.
    ///
    /// *Guarantees*: it is there when this returns. *Caller must*: give no payload and no secret. *On failure*: nothing was
    /// written.
    async fn audit(&self, entry: &AuditEntry) -> Result<()>;

    /// The newest of what was written down, newest first; 0 means 100.
    async fn audits(&self, limit: u32) -> Result<Vec<Audit>>;

    /// Takes a duty that one process does for all, or prolongs it; nothing while another owner holds it.
    ///
    /// *Guarantees*: a duty is held by one owner at a time, by the store's clock; who takes it over reads what was last
    /// [noted](Desk::note_duty). *Caller must*: have a name that no other process has, and prolong it before it runs out. *On
    /// failure*: it may or may not be held until it runs out.
    async fn take_duty(&self, duty: &str, owner: &str, lease: Duration) -> Result<Option<Duty>>;

    /// Writes down what the next holder is to know, in place of what was there; whether the duty was still held.
    ///
    /// *Guarantees*: an owner that holds it no longer changes nothing. *Caller must*: stop where it is told `false`. *On
    /// failure*: it may or may not have been written.
    async fn note_duty(&self, duty: &str, owner: &str, note: &str) -> Result<bool>;

    /// Gives a duty back, so that another may take it at once. *Guarantees*: one that another holds stays there. *Caller
    /// must*: nothing. *On failure*: it runs out by itself.
    async fn leave_duty(&self, duty: &str, owner: &str) -> Result<()>;

    /// What is wrong or will be, as far as the database can tell; `now` is the time of the machine that asks.
    ///
    /// *Guarantees*: it changes nothing, and no check costs more than a few index lookups or a bounded scan. *Caller must*:
    /// not ask all the time. *On failure*: the database does not answer at all; a check that can't be made says so itself.
    async fn checks(&self, now: OffsetDateTime) -> Result<Vec<Check>>;
}
