//! A desk whose every call ends: whoever typed a command is told when the database does not answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider::{
    Audit, AuditEntry, Check, Desk, Duty, Error, ErrorKind, EventQuery, EventRef, Filing, Found,
    OffsetDateTime, PastAttempts, Pause, RelayInfo, Replay, Replayed, Result, Stuck, StuckQuery,
    SubscriptionInfo, Sweep, Sweepable,
};

use crate::Failure;

/// How long a database may take to be opened.
pub(crate) const OPEN: Duration = Duration::from_secs(10);
/// How long a database may take to answer what costs it little. With [`OPEN`] it makes the half minute that the documents name.
pub(crate) const ANSWER: Duration = Duration::from_secs(20);
/// How long what goes through many rows in one transaction may take.
const LONG: Duration = Duration::from_secs(600);

/// A desk whose every call ends, well or with [`Unreachable`](ErrorKind::Unreachable).
pub(crate) struct Bounded(Arc<dyn Desk>);

impl Bounded {
    /// The same desk with calls that end.
    pub(crate) fn new(desk: Arc<dyn Desk>) -> Self {
        Self(desk)
    }
}

fn silent(op: &'static str, limit: Duration) -> Error {
    let message = format!(
        "the database did not answer within {limit:?}; check that it runs, and what is between it and here"
    );
    Error::new(ErrorKind::Unreachable, op, message)
}

/// What is answered within a time.
async fn within<T>(limit: Duration, op: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| Err(silent(op, limit)))
}

/// What is done with a database that may not answer while it is opened.
pub(crate) async fn opened<T>(
    limit: Duration,
    place: impl FnOnce() -> String,
    opening: impl Future<Output = std::result::Result<T, Failure>>,
) -> std::result::Result<T, Failure> {
    let opened = tokio::time::timeout(limit, opening).await;
    opened.unwrap_or_else(|_| Err(silent("connect", limit).at(place()).into()))
}

#[async_trait]
impl Desk for Bounded {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        within(ANSWER, "subscriptions", self.0.subscriptions()).await
    }

    async fn relays(&self) -> Result<Vec<RelayInfo>> {
        within(ANSWER, "relays", self.0.relays()).await
    }

    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()> {
        within(ANSWER, "pause", self.0.pause(subscription, pause)).await
    }

    async fn remove(&self, subscription: &str, force: bool) -> Result<()> {
        within(LONG, "remove", self.0.remove(subscription, force)).await
    }

    async fn events(&self, query: &EventQuery) -> Result<Found> {
        within(ANSWER, "events", self.0.events(query)).await
    }

    async fn stuck(&self, query: &StuckQuery) -> Result<Vec<Stuck>> {
        within(ANSWER, "dead", self.0.stuck(query)).await
    }

    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>> {
        within(ANSWER, "attempts", self.0.attempts(event)).await
    }

    async fn replay(&self, replay: &Replay) -> Result<Replayed> {
        within(LONG, "replay", self.0.replay(replay)).await
    }

    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        within(LONG, "sweep", self.0.sweepable(sweep)).await
    }

    async fn check_filing(&self, filing: &Filing) -> Result<()> {
        within(ANSWER, "archive", self.0.check_filing(filing)).await
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        within(ANSWER, "audit", self.0.audit(entry)).await
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        within(ANSWER, "audit", self.0.audits(limit)).await
    }

    async fn take_duty(&self, duty: &str, owner: &str, lease: Duration) -> Result<Option<Duty>> {
        within(ANSWER, "duty", self.0.take_duty(duty, owner, lease)).await
    }

    async fn note_duty(&self, duty: &str, owner: &str, note: &str) -> Result<bool> {
        within(ANSWER, "duty", self.0.note_duty(duty, owner, note)).await
    }

    async fn leave_duty(&self, duty: &str, owner: &str) -> Result<()> {
        within(ANSWER, "duty", self.0.leave_duty(duty, owner)).await
    }

    async fn checks(&self, now: OffsetDateTime) -> Result<Vec<Check>> {
        within(ANSWER, "doctor", self.0.checks(now)).await
    }
}
