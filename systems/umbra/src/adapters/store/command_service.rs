//! Commands of users and of the cron, each in one transaction.

use serde_json::Value;
use uuid::Uuid;

use super::unit::UnitOfWork;
use super::{Outbox, begin, sql};
use crate::adapters::clock;
use crate::billing::charging::{Accounts, OpenAttempt};
use crate::billing::{self, Order, Subscriptions, commands};
use crate::contracts::*;
use crate::{guild, identity, member, recovery};

/// Takes commands.
#[derive(Debug, Clone)]
pub struct CommandService {
    outbox: Outbox,
}

/// Runs an expression over a unit in a transaction, and commits.
macro_rules! within {
    ($service:ident, |$unit:ident| $work:expr) => {{
        let mut transaction = begin(&$service.outbox).await?;
        let $unit = &mut UnitOfWork::Command(&$service.outbox, &mut transaction);
        let done = $work.await?;
        transaction.commit().await?;
        Ok(done)
    }};
}

/// The facts that a context reports without a state of its own.
macro_rules! reports {
    ($($context:ident: $($event:ident)+;)+) => {
        async fn publish(unit: &mut UnitOfWork<'_>, context: &str, name: &str, payload: Value) -> Answer<bool> {
            match (context, name) {
                $($((stringify!($context), stringify!($event)) => {
                    $context::publish(serde_json::from_value::<$event>(payload)?, unit).await?;
                })+)+
                _ => return Ok(false),
            }
            Ok(true)
        }
    };
}
reports! {
    guild: BotInstalled BotKicked GuildOwnerChanged GuildDeleted;
    recovery: SnapshotCreated SnapshotDeleted RestoreStarted RestoreCompleted RestoreFailed AntiNukeTriggered AntiNukeActioned;
    member: MemberJoinedViaWebJoin MemberRestored;
    identity: UserRegistered UserSessionCreated;
}

impl CommandService {
    /// One that records in this outbox.
    pub fn new(outbox: &Outbox) -> Self {
        Self { outbox: outbox.clone() }
    }

    /// The time of the application: the machine's, and by how much a test has turned it.
    pub async fn now(&self) -> Answer<Timestamp> {
        let text = "select max(seconds) from outside.clock";
        let turned: Option<i64> = sqlx::query_scalar(sql(text)).fetch_one(self.outbox.pool()).await?;
        Ok(clock::machine() + turned.unwrap_or(0))
    }

    /// Publishes a fact of a context; whether the context has such a fact.
    pub async fn report(&self, context: &str, name: &str, payload: Value) -> Answer<bool> {
        within!(self, |unit| publish(unit, context, name, payload))
    }

    /// Writes a new billing key.
    pub async fn issue_key(&self, key: Uuid, user: UserId) -> Answer<()> {
        within!(self, |unit| commands::issue_key(key, user, unit))
    }

    /// Deletes a billing key of a user; whether there was one.
    pub async fn delete_key(&self, key: Uuid, user: UserId) -> Answer<bool> {
        within!(self, |unit| commands::delete_key(key, user, unit))
    }

    /// Cancels a subscription; whether there was one to cancel.
    pub async fn cancel(&self, id: SubscriptionId, at_period_end: bool) -> Answer<bool> {
        within!(self, |unit| commands::cancel(id, at_period_end, unit))
    }

    /// Changes the plan of a subscription; whether it changed.
    pub async fn change_plan(&self, id: SubscriptionId, plan: &str) -> Answer<bool> {
        within!(self, |unit| commands::change_plan(id, plan, unit))
    }
}

impl Accounts for CommandService {
    async fn open(&self, order: &Order, attempt: AttemptId, now: Timestamp) -> Answer<()> {
        within!(self, |unit| unit.open(order, attempt, now))
    }

    async fn open_due(&self, now: Timestamp) -> Answer<Vec<OpenAttempt>> {
        within!(self, |unit| commands::open_due(now, unit))
    }

    async fn open_attempts(&self, before: Timestamp) -> Answer<Vec<OpenAttempt>> {
        within!(self, |unit| unit.open_attempts(before))
    }

    async fn open_attempt_of(&self, id: SubscriptionId) -> Answer<Option<OpenAttempt>> {
        within!(self, |unit| unit.open_attempt_of(id))
    }

    async fn settle(&self, attempt: AttemptId, succeeded: bool, now: Timestamp) -> Answer<bool> {
        within!(self, |unit| billing::settle(attempt, succeeded, now, unit))
    }

    async fn taken_back(&self, attempt: AttemptId, refunded: bool) -> Answer<()> {
        let done: Answer<()> = within!(self, |unit| billing::taken_back(attempt, refunded, unit));
        tracing::info!(%attempt, refunded, "the gateway took back the attempt of a subscription that has ended");
        done
    }

    async fn status(&self, id: SubscriptionId) -> Answer<Option<String>> {
        let found = within!(self, |unit| unit.find(id));
        found.map(|found: Option<billing::Subscription>| found.map(|subscription| subscription.status))
    }
}
