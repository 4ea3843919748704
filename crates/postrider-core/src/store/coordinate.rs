//! Coordination of the relays on one log: heartbeats and leader leases.

use std::time::Duration;

use async_trait::async_trait;

use crate::{LeaderLease, RelayInfo, RelayReport, Result, Uuid};

/// How relays coordinate through the log: which relays are running, and which one leads a task that only one may do.
#[async_trait]
pub trait Coordinate: Send + Sync + 'static {
    /// Registers a relay, or reports that it is still running.
    ///
    /// *Guarantees*: one short write; it returns every known relay, this one included, as
    /// [`Inspect::relays`](crate::Inspect::relays) does. Relays that disappeared are forgotten after a day. *Caller must*: report when
    /// something changes, and every [`EVERY`](RelayInfo::EVERY) otherwise. *On failure*: it may or may not have been written.
    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>>;

    /// Removes a relay that stops. *Guarantees*: it is no longer listed. *Caller must*: nothing. *On failure*: it counts as gone once
    /// it has not reported for [`GONE_AFTER`](RelayInfo::GONE_AFTER).
    async fn deregister(&self, relay: Uuid) -> Result<()>;

    /// Acquires or extends the leader lease of a task that one process does for all; `None` while another owner holds it.
    ///
    /// *Guarantees*: one owner at a time holds a lease, by the store's clock; the next owner gets the last
    /// [note](crate::Coordinate::save_leader_note). *Caller must*: use an owner name that no other process has, and extend the lease
    /// before it expires. *On failure*: it may or may not be held until it expires.
    async fn acquire_leader_lease(
        &self,
        task: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<LeaderLease>>;

    /// Replaces the note for the next holder; returns whether the lease was still held.
    ///
    /// *Guarantees*: an owner that no longer holds the lease changes nothing. *Caller must*: stop on `false`. *On failure*: it may or
    /// may not have been written.
    async fn save_leader_note(&self, task: &str, owner: &str, note: &str) -> Result<bool>;

    /// Releases the lease, so that another owner can acquire it at once. *Guarantees*: the lease of another owner is not affected.
    /// *Caller must*: nothing. *On failure*: it expires.
    async fn release_leader_lease(&self, task: &str, owner: &str) -> Result<()>;
}
