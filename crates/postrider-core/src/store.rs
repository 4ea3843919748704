//! The contract between the engine and a database.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Amend, AuditEntry, Batch, Bell, DueBatch, EventState, Figures, Lease, Position, RelayInfo, RelayReport,
    Result, Settlement, Standing, StateQuery, Subscription, Sweep, Swept, Uuid,
};

/// A log of events in a database, read by subscriptions in lanes.
///
/// `record` is not here: it takes the caller's own transaction, so it belongs to each store's outbox.
/// Every promise below is a named test in `postrider-conformance`, which runs against every store.
/// All times are the store's [`Clock`](crate::Clock); every method is one short transaction.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes sure that a subscription exists as asked for.
    ///
    /// *Guarantees*: `start` counts only the first time; a changed filter or policy holds from the next
    /// claim; another number of lanes begins a [`relane`](Store::relane). It says whether this call has made it. *Caller must*: nothing; many may
    /// call it at once. *On failure*: nothing changed.
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed>;

    /// Claims one free lane of a subscription, if there is one.
    ///
    /// *Guarantees*: a lane is held by one lease at a time; a claim makes every earlier lease of that lane
    /// stale; it waits for nobody. Who finds none free while another owner holds at least two more than itself
    /// is heard: that owner is told [`Recalled`](Standing::Recalled) for one of them and does not get it back at once, so
    /// that lanes end up shared evenly. *Caller must*: extend it before it runs out. *On failure*: nothing was
    /// claimed, or a lane stays claimed until its lease runs out.
    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>>;

    /// Prolongs a lease from now, and says how far its holder is reading and why its destination is away, if it is.
    ///
    /// *Guarantees*: [`away`](Lease::away) is kept with the time since when there is a reason, whichever it is, until an extension
    /// without one, a claim or a release. `Lost` once anybody else has claimed the lane, and when it does not stand where the lease
    /// says (the database was set back). *Caller must*: stop at `Lost`, release
    /// soon at `Recalled`. *On failure*: treat the lease as running out at its old time.
    async fn extend(&self, lease: &mut Lease, by: Duration, reading: Option<&Position>) -> Result<Standing>;

    /// Gives a lane back. *Guarantees*: a stale lease changes nothing. *Caller must*: have settled what it
    /// wants to keep. *On failure*: the lease runs out by itself.
    async fn release(&self, lease: Lease) -> Result<()>;

    /// Reads what follows a position: at most `limit` rows are scanned of the late and of the fresh each, and at most
    /// [`Lease::bytes`] of events are held, the one that exceeds them excluded; an event above them comes alone.
    ///
    /// *Guarantees*: following `next` from read to read gives every committed event of the lane that the
    /// subscription wants exactly once, whatever the transactions that wrote them do; events of a key come
    /// in the order of their ids. An idle read writes nothing. *Caller must*: start from the lease's
    /// position, and may read ahead from `next` before settling; `held` then does not know what the
    /// unsettled batches will leave open. *On failure*: nothing moved; read again from the same position, or,
    /// if the error says [`LeaseLost`](crate::ErrorKind::LeaseLost), claim anew: after a reconnect the lane
    /// did not stand where the lease says.
    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch>;

    /// The deliveries of the lane that are to be tried now, by id: at most `limit`, and as many as [`Lease::bytes`] allow, but
    /// one if there is one.
    ///
    /// *Guarantees*: under key and strict order an event comes only together with, and after, every open
    /// one before it; what is running under the lease's own epoch is in hand: it never comes, and holds up what is behind it;
    /// what is running under another epoch comes at once. It says when to look again. *Caller must*: deliver those of a key in order and stop at
    /// the first failure of it. *On failure*: nothing changed; [`LeaseLost`](crate::ErrorKind::LeaseLost) says
    /// that the lane was set back to be read again: claim anew.
    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch>;

    /// Writes what became of a batch: the new position, the settled batch, the deliveries; or nothing.
    ///
    /// *Guarantees*: all in one transaction, only under the lease's epoch and only if the lane still stands
    /// at `from`; otherwise `Lost` and nothing is written. *Caller must*: settle batches in the order they
    /// were read. *On failure*: it may or may not have been written: claim again and go by the lease's
    /// position.
    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<Standing>;

    /// A bell for one lane's reader to sleep on. See [`Bell`].
    fn bell(&self) -> Box<dyn Bell>;

    /// Changes the number of lanes while relays run, one step at a time.
    ///
    /// *Guarantees*: nothing is lost, repeated or reordered: holders are recalled, all lanes read up to one
    /// common position, and only then are the keys shared out anew. [`claim`](Store::claim) takes the steps
    /// as well. *Caller must*: keep relays running; call again to learn how far it is. *On failure*: the
    /// change stays under way.
    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane>;

    /// Requeues or discards dead deliveries and says how many.
    ///
    /// *Guarantees*: only dead ones change. *Caller must*: nothing. *On failure*: nothing changed.
    async fn amend(&self, amend: &Amend) -> Result<u64>;

    /// One round of retention.
    ///
    /// *Guarantees*: takes only what every lane of every subscription has read and settled for long
    /// enough; dead, waiting and retrying events stay, and so does everything while there is no
    /// subscription. An archived event is where it is filed in the same transaction that takes it out of the log, masked if so
    /// asked. A month of the archive goes only as a whole. *Caller must*: call again while `more`. *On failure*: nothing was
    /// taken in this round.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept>;

    /// Where events stand, for people. *Guarantees*: derived from the same rows that the engine uses.
    /// *Caller must*: page with `after`. *On failure*: nothing.
    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>>;

    /// How a subscription is doing, by stream. *Guarantees*: at most a million events that were not read yet are counted,
    /// whatever the backlog. *Caller must*: not call it for each batch: it costs what is undelivered. *On failure*: nothing.
    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>>;

    /// The same for who is in a hurry: of the events that were not read yet only the first `most` rows are looked at, wanted
    /// or not.
    ///
    /// *Guarantees*: as [`figures`](Store::figures), with that bound; what failed or died is counted whole. *Caller must*: take
    /// the pending ones for a sample where the log is further ahead than that. *On failure*: nothing.
    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>>;

    /// How many undelivered events of a subscription were recorded longer ago than `age`. *Guarantees*: as [`figures`](Store::figures)
    /// counts. *Caller must*: the same; while the oldest of the figures is no older than `age` the answer is 0. *On failure*: nothing.
    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64>;

    /// Makes a relay known, or says that it is still there.
    ///
    /// *Guarantees*: one short write; it returns every relay that is known, this one included, as [`Desk::relays`](crate::Desk::relays)
    /// shows them. Those that ended without a word are forgotten after a day. *Caller must*: report when something changes and every
    /// [`EVERY`](RelayInfo::EVERY) otherwise. *On failure*: it may or may not have been written.
    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>>;

    /// Says that a relay has ended. *Guarantees*: it is shown no longer. *Caller must*: nothing. *On failure*: it is taken for gone
    /// when it has not reported for [`GONE_AFTER`](RelayInfo::GONE_AFTER).
    async fn deregister(&self, relay: Uuid) -> Result<()>;

    /// Writes down what the engine did on its own, such as making a subscription: the same record as
    /// [`Desk::audit`](crate::Desk::audit).
    async fn record_audit(&self, entry: &AuditEntry) -> Result<()>;
}

/// What became of a [`subscribe`](Store::subscribe).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscribed {
    /// This call has made it.
    New,
    /// It was there.
    Known,
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
