//! What people do with a log.

use async_trait::async_trait;

use crate::{AuditEntry, Pause, ReplaceDead, Replay, Replayed, ResolveDead, Result, Sweep, Swept};

/// Changes by operators and retention. The caller must write the [`audit`](Operate::audit) entry; only
/// [`replace_dead`](Operate::replace_dead) does so itself.
#[async_trait]
pub trait Operate: Send + Sync + 'static {
    /// Pauses a subscription, or resumes it if `pause` is `None`.
    ///
    /// *Guarantees*: who, why and since when is stored until it is resumed; lanes of a paused subscription can't be claimed; holders
    /// get [`Recalled`](crate::LeaseStatus::Recalled) at their next read, settle or extension, and finish deliveries in flight. Idle
    /// relays are woken. It is idempotent: the first pause is kept. *Caller must*: nothing. *On failure*: nothing changed;
    /// [`NotFound`](crate::ErrorKind::NotFound) for an unknown name.
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()>;

    /// Changes the number of lanes while relays run, one step at a time.
    ///
    /// *Guarantees*: nothing is lost, repeated or reordered: holders are recalled, all lanes read up to one common position, and only
    /// then are the keys distributed again. [`claim`](crate::EventLog::claim) performs the steps as well. *Caller must*: keep relays
    /// running; call again to see the progress. *On failure*: the change stays in progress.
    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane>;

    /// Removes a subscription: its lanes, its deliveries and its history, in one transaction.
    ///
    /// *Guarantees*: retention no longer waits for it; a holder that was forced out can't settle. The inbox stays: a subscription that
    /// is created again with this name, or a broker's consumer with this name, must not repeat effects. *Caller must*: stop its
    /// relays first, or force it. *On failure*: nothing changed; [`Refused`](crate::ErrorKind::Refused) while a relay holds a lane,
    /// or a live relay runs the subscription, and `force` is not set.
    async fn remove(&self, subscription: &str, force: bool) -> Result<()>;

    /// Replays a subscription from an event or a time on.
    ///
    /// *Guarantees*: in one transaction every lane goes back to before that event, unless it has not reached it yet; every holder loses
    /// its lane and can't settle; the deliveries of replayed events are deleted, open ones before them stay. From then on every
    /// event from that point on that the filter matches and that was recorded after the subscription's start is delivered
    /// (again), in order per key, whatever concurrent transactions do; and no event that was still undelivered before is lost. A
    /// store that orders by commits may also replay events that were recorded just before the point. Idle relays are woken. A dry
    /// run counts and changes nothing. *Caller must*: [`pause`](crate::Operate::pause) first and wait until no lane is held, if
    /// deliveries in flight must not mix with replayed events. *On failure*: nothing changed;
    /// [`Refused`](crate::ErrorKind::Refused) if the subscription forbids replay, while its lanes are being changed, if retention
    /// has removed events from there on, or, unless effects may repeat, if the inbox has forgotten events from there on.
    async fn replay(&self, replay: &Replay) -> Result<Replayed>;

    /// Requeues or discards dead deliveries; returns how many.
    ///
    /// *Guarantees*: only dead ones change. *Caller must*: nothing. *On failure*: nothing changed.
    async fn resolve_dead(&self, action: &ResolveDead) -> Result<u64>;

    /// Replaces a dead event by a corrected one; returns the subscriptions that it was dead for, by name.
    ///
    /// *Guarantees*: in one transaction the new event is recorded, every dead delivery of the old one is discarded, and an audit entry
    /// is written for each of these. The new event is an event like any other: every subscription whose filter matches gets it, in
    /// the place where it is recorded. The old event stays as it is. Idle relays are woken. *Caller must*: check that the event is
    /// the one that is meant. *On failure*: nothing changed; [`Refused`](crate::ErrorKind::Refused) if the old event is dead for no
    /// subscription, [`Invalid`](crate::ErrorKind::Invalid) or [`AlreadyRecorded`](crate::ErrorKind::AlreadyRecorded) if the new
    /// one can't be recorded.
    async fn replace_dead(&self, replacement: &ReplaceDead) -> Result<Vec<String>>;

    /// One round of retention.
    ///
    /// *Guarantees*: processes only events that every lane of every subscription has read and settled long enough ago. Dead, waiting
    /// and retrying events stay, and while there is no subscription everything stays. An event is archived, and masked if asked for,
    /// in the transaction that removes it from the log. A month of the archive is dropped only as a whole. *Caller must*: call
    /// again while `more`. *On failure*: this round changed nothing.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept>;

    /// Appends to the audit log who did what and why. Entries are never changed or deleted.
    ///
    /// *Guarantees*: the entry is stored when this returns. *Caller must*: pass no payload and no secret. *On failure*: nothing was
    /// written.
    async fn audit(&self, entry: &AuditEntry) -> Result<()>;
}

/// The progress of a change of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relane {
    /// The subscription has the wanted number of lanes.
    Done,
    /// Holders are being recalled.
    Recalling,
    /// All lanes are being read up to their common position.
    Draining,
}
