//! What people do with a log.

use async_trait::async_trait;

use crate::{AuditEntry, Pause, Replay, Replayed, ResolveDead, Result, Sweep, Swept};

/// A log as operators and retention change it. Nothing here writes an [`audit`](Operate::audit) by itself: the caller does.
#[async_trait]
pub trait Operate: Send + Sync + 'static {
    /// Pauses a subscription, or lets it go on where nothing is given.
    ///
    /// *Guarantees*: who, why and since when is kept until it goes on; nobody claims a lane of a paused one; holders are told
    /// [`Recalled`](crate::LeaseStatus::Recalled) at their next read, settle or extension, and finish what is in flight.
    /// Sleeping relays are rung. To say it twice is to say it once: the first who paused it stays. *Caller must*: nothing. *On failure*: nothing changed;
    /// [`NotFound`](crate::ErrorKind::NotFound) for an unknown name.
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()>;

    /// Changes the number of lanes while relays run, one step at a time.
    ///
    /// *Guarantees*: nothing is lost, repeated or reordered: holders are recalled, all lanes read up to one
    /// common position, and only then are the keys shared out anew. [`claim`](crate::EventLog::claim) takes the steps
    /// as well. *Caller must*: keep relays running; call again to learn how far it is. *On failure*: the
    /// change stays under way.
    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane>;

    /// Removes a subscription: its lanes, its deliveries and its history, in one transaction.
    ///
    /// *Guarantees*: retention waits for it no longer; a holder that was forced out can't settle. The inbox stays: a
    /// subscription that is made again under the name, or a consumer of a broker with it, must not repeat effects.
    /// *Caller must*: stop its relays first, or force it. *On failure*: nothing changed;
    /// [`Refused`](crate::ErrorKind::Refused) while a relay holds a lane, or a live one has the subscription, and `force` is not set.
    async fn remove(&self, subscription: &str, force: bool) -> Result<()>;

    /// Lets a subscription read again from an event or a time on.
    ///
    /// *Guarantees*: in one transaction every lane goes back to before that event, except one that has not got so far yet;
    /// every holder loses its lane, and can't settle; the deliveries of what comes again are forgotten, open ones before it
    /// stay. From then on every event from the point on that the subscription wants and that was recorded after its start
    /// comes (again), whatever the transactions that write meanwhile do, in order per key; and nothing that was owed before
    /// is lost. Events recorded just before the point may come along, where the store counts by commits. Sleeping relays are
    /// rung. A dry run counts and changes nothing. *Caller must*: [`pause`](crate::Operate::pause) first, and wait until no lane is
    /// held, if what holders have in flight must not arrive among what comes again. *On failure*: nothing changed;
    /// [`Refused`](crate::ErrorKind::Refused) if the subscription forbids replay, while its lanes are being changed, if
    /// retention has taken something from there on, and, unless effects may repeat, if the inbox has forgotten what was
    /// handled from there on.
    async fn replay(&self, replay: &Replay) -> Result<Replayed>;

    /// Requeues or discards dead deliveries and says how many.
    ///
    /// *Guarantees*: only dead ones change. *Caller must*: nothing. *On failure*: nothing changed.
    async fn resolve_dead(&self, action: &ResolveDead) -> Result<u64>;

    /// One round of retention.
    ///
    /// *Guarantees*: takes only what every lane of every subscription has read and settled for long
    /// enough; dead, waiting and retrying events stay, and so does everything while there is no
    /// subscription. An archived event is where it is filed in the same transaction that takes it out of the log, masked if so
    /// asked. A month of the archive goes only as a whole. *Caller must*: call again while `more`. *On failure*: nothing was
    /// taken in this round.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept>;

    /// Writes down who did what and why, for good: no row is ever changed or deleted.
    ///
    /// *Guarantees*: it is there when this returns. *Caller must*: give no payload and no secret. *On failure*: nothing was
    /// written.
    async fn audit(&self, entry: &AuditEntry) -> Result<()>;
}

/// How far a change of lanes is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relane {
    /// The subscription has the wanted number of lanes.
    Done,
    /// Holders are being recalled.
    Recalling,
    /// All lanes are being read up to their common position.
    Draining,
}
