//! How the processes on one log know of each other.

use std::time::Duration;

use async_trait::async_trait;

use crate::{LeaderLease, RelayInfo, RelayReport, Result, Uuid};

/// What relays tell each other through the log: who is there, and who leads in what only one of them does.
#[async_trait]
pub trait Coordinate: Send + Sync + 'static {
    /// Makes a relay known, or says that it is still there.
    ///
    /// *Guarantees*: one short write; it returns every relay that is known, this one included, as [`Inspect::relays`](crate::Inspect::relays)
    /// shows them. Those that ended without a word are forgotten after a day. *Caller must*: report when something changes and every
    /// [`EVERY`](RelayInfo::EVERY) otherwise. *On failure*: it may or may not have been written.
    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>>;

    /// Says that a relay has ended. *Guarantees*: it is shown no longer. *Caller must*: nothing. *On failure*: it is taken for gone
    /// when it has not reported for [`GONE_AFTER`](RelayInfo::GONE_AFTER).
    async fn deregister(&self, relay: Uuid) -> Result<()>;

    /// Takes a duty that one process does for all, or prolongs it; nothing while another owner holds it.
    ///
    /// *Guarantees*: a duty is held by one owner at a time, by the store's clock; who takes it over reads what was last
    /// [noted](crate::Coordinate::save_leader_note). *Caller must*: have a name that no other process has, and prolong it before it runs out. *On
    /// failure*: it may or may not be held until it runs out.
    async fn acquire_leader_lease(
        &self,
        duty: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<LeaderLease>>;

    /// Writes down what the next holder is to know, in place of what was there; whether the duty was still held.
    ///
    /// *Guarantees*: an owner that holds it no longer changes nothing. *Caller must*: stop where it is told `false`. *On
    /// failure*: it may or may not have been written.
    async fn save_leader_note(&self, duty: &str, owner: &str, note: &str) -> Result<bool>;

    /// Gives a duty back, so that another may take it at once. *Guarantees*: one that another holds stays there. *Caller
    /// must*: nothing. *On failure*: it runs out by itself.
    async fn release_leader_lease(&self, duty: &str, owner: &str) -> Result<()>;
}
