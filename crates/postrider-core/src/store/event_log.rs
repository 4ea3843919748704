//! What the engine needs of a log.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Batch, Bell, DueBatch, Lease, LeaseStatus, Position, Result, Settlement, Subscription};

/// A log of events in a database, as the engine uses it: subscriptions read it in lanes.
///
/// `record` is not here: it takes the caller's own transaction, so it belongs to each store's outbox. All times are those of
/// the store's [`Clock`](crate::Clock). Every method is one short transaction.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Creates or updates a subscription.
    ///
    /// *Guarantees*: `start` counts only for a new subscription; a changed filter or policy applies from the next claim; another
    /// number of lanes starts a [`relane`](crate::Operate::relane). It returns whether this call created it. *Caller must*: nothing;
    /// concurrent calls are fine. *On failure*: nothing changed.
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed>;

    /// Claims one free lane of a subscription, if there is one.
    ///
    /// *Guarantees*: one lease at a time holds a lane; a claim makes every earlier lease of that lane stale; it never waits. If no
    /// lane is free and another owner holds at least two more than the caller, that owner gets
    /// [`Recalled`](LeaseStatus::Recalled) for one of them and can't claim it again at once, so that lanes end up shared evenly.
    /// *Caller must*: extend the lease before it expires. *On failure*: nothing was claimed, or a lane stays claimed until its
    /// lease expires.
    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>>;

    /// Extends a lease from now, and stores how far its holder is reading and why its destination is unavailable, if it is.
    ///
    /// *Guarantees*: [`away`](Lease::away) is stored with the time of its first reason, until an extension without a reason, a claim
    /// or a release. It returns `Lost` once another owner has claimed the lane, or if the lane's position is not the lease's (the
    /// database went back in time). *Caller must*: stop on `Lost`, release soon on `Recalled`. *On failure*: treat the lease as
    /// expiring at its old time.
    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus>;

    /// Releases a lane. *Guarantees*: a stale lease changes nothing. *Caller must*: settle first what it wants to keep. *On failure*:
    /// the lease expires.
    async fn release(&self, lease: Lease) -> Result<()>;

    /// Reads the events after a position: scans at most `limit` late and `limit` new rows, and returns at most [`Lease::bytes`] of
    /// events. An event that is larger than that comes alone.
    ///
    /// *Guarantees*: following `next` from read to read returns every committed event of the lane that the filter matches exactly
    /// once, whatever the writing transactions do; events of a key come in the order of their ids. An idle read writes nothing.
    /// *Caller must*: start from the lease's position. It may read ahead from `next` before it settles; `held` then does not
    /// include what the unsettled batches will leave open. *On failure*: nothing moved; read again from the same position, or,
    /// on [`LeaseLost`](crate::ErrorKind::LeaseLost), claim again: the lane's position was not the lease's.
    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch>;

    /// The deliveries of the lane that are due now, by id: at most `limit` and at most [`Lease::bytes`], but always one if there is
    /// one.
    ///
    /// *Guarantees*: under key and strict order an event comes only together with, and after, every open one before it. What runs
    /// under the lease's own epoch is in progress: it never comes, and blocks what follows it. What runs under another epoch comes
    /// at once. The result says when to ask again. *Caller must*: deliver the events of a key in order and stop at the key's first
    /// failure. *On failure*: nothing changed; on [`LeaseLost`](crate::ErrorKind::LeaseLost) the lane was reset for a replay:
    /// claim again.
    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch>;

    /// Writes the outcome of a batch: the new position, the settled batch and the deliveries, or nothing.
    ///
    /// *Guarantees*: one transaction, only under the lease's epoch and only if the lane is still at `from`; otherwise `Lost`, and
    /// nothing is written. *Caller must*: settle batches in the order in which they were read. *On failure*: it may or may not have
    /// been written: claim again and use the position of the new lease.
    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus>;

    /// A bell that wakes the reader of one lane. See [`Bell`].
    fn bell(&self) -> Box<dyn Bell>;
}

/// The result of a [`subscribe`](EventLog::subscribe).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscribed {
    /// This call created it.
    New,
    /// It already existed.
    Known,
}
