//! What the engine needs of a log.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Batch, Bell, DueBatch, Lease, LeaseStatus, Position, Result, Settlement, Subscription};

/// A log of events in a database, as the engine uses it: read by subscriptions in lanes.
///
/// `record` is not here: it takes the caller's own transaction, so it belongs to each store's outbox.
/// All times are the store's [`Clock`](crate::Clock); every method is one short transaction.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Makes sure that a subscription exists as asked for.
    ///
    /// *Guarantees*: `start` counts only the first time; a changed filter or policy holds from the next
    /// claim; another number of lanes begins a [`relane`](crate::Operate::relane). It says whether this call has made it. *Caller must*: nothing; many may
    /// call it at once. *On failure*: nothing changed.
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed>;

    /// Claims one free lane of a subscription, if there is one.
    ///
    /// *Guarantees*: a lane is held by one lease at a time; a claim makes every earlier lease of that lane
    /// stale; it waits for nobody. Who finds none free while another owner holds at least two more than itself
    /// is heard: that owner is told [`Recalled`](LeaseStatus::Recalled) for one of them and does not get it back at once, so
    /// that lanes end up shared evenly. *Caller must*: extend it before it runs out. *On failure*: nothing was
    /// claimed, or a lane stays claimed until its lease runs out.
    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>>;

    /// Prolongs a lease from now, and says how far its holder is reading and why its destination is away, if it is.
    ///
    /// *Guarantees*: [`away`](Lease::away) is kept with the time since when there is a reason, whichever it is, until an extension
    /// without one, a claim or a release. `Lost` once anybody else has claimed the lane, and when it does not stand where the lease
    /// says (the database was set back). *Caller must*: stop at `Lost`, release
    /// soon at `Recalled`. *On failure*: treat the lease as running out at its old time.
    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus>;

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
    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus>;

    /// A bell for one lane's reader to sleep on. See [`Bell`].
    fn bell(&self) -> Box<dyn Bell>;
}

/// What became of a [`subscribe`](EventLog::subscribe).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscribed {
    /// This call has made it.
    New,
    /// It was there.
    Known,
}
