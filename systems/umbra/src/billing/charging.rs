//! Charging: what a subscription costs is taken once, although any process may die at any step.
//!
//! The attempt is committed before its charge, and its id is the gateway's key of the charge. Whoever finds an attempt without a
//! result charges again with the same key, and the gateway answers as it did before. If the subscription has ended by then, nobody
//! knows whether it was charged: the gateway takes the attempt back by its key, and the attempt gets its result only after that.

use std::future::Future;

use futures_util::StreamExt as _;
use futures_util::stream;
use uuid::Uuid;

use crate::billing::{Order, paid_for, price};
use crate::contracts::{Answer, AttemptId, SubscriptionId, Timestamp};

/// How long an attempt stays with the process that wrote it, in seconds. After that the worker takes it over.
pub const GRACE: Timestamp = 60;
/// How many charges of a tick are made at once, so that a gateway that hangs does not hold up the next one for as long as all of them take.
pub const AT_ONCE: usize = 8;

/// An attempt without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    /// Its id.
    pub id: AttemptId,
    /// The subscription.
    pub subscription_id: SubscriptionId,
    /// The plan that is charged. It stays that of the first request, because the gateway knows the attempt by its key.
    pub plan_code: String,
    /// Whether its subscription has ended, so that it must not be charged.
    pub is_over: bool,
}

/// The payment gateway.
pub trait Gateway: Sync {
    /// Takes an amount, once for each attempt; whether it could be taken.
    fn charge(&self, attempt: AttemptId, amount: i64) -> impl Future<Output = Answer<bool>> + Send;
    /// Gives back what was taken for an attempt, and takes nothing for it from now on; whether something was given back. Asked again, it
    /// answers the same.
    fn void(&self, attempt: AttemptId) -> impl Future<Output = Answer<bool>> + Send;
}

/// The accounts. Each call is one transaction.
pub trait Accounts: Sync {
    /// Opens a subscription with its first attempt, unless it exists. Refuses one that is known otherwise, a guild that has a subscription
    /// already, and a key that the user does not have.
    fn open(
        &self,
        order: &Order,
        attempt: AttemptId,
        now: Timestamp,
    ) -> impl Future<Output = Answer<()>> + Send;
    /// Opens an attempt for each subscription whose charge is due and that has none open; ends those that end with their period.
    fn open_due(&self, now: Timestamp) -> impl Future<Output = Answer<Vec<OpenAttempt>>> + Send;
    /// The attempts without a result that were opened at this time or before.
    fn open_attempts(&self, before: Timestamp) -> impl Future<Output = Answer<Vec<OpenAttempt>>> + Send;
    /// The attempt of a subscription without a result.
    fn open_attempt_of(&self, id: SubscriptionId)
    -> impl Future<Output = Answer<Option<OpenAttempt>>> + Send;
    /// Takes the result of an attempt. False if the subscription has ended and the money must be given back.
    fn settle(
        &self,
        attempt: AttemptId,
        succeeded: bool,
        now: Timestamp,
    ) -> impl Future<Output = Answer<bool>> + Send;
    /// Takes that an attempt was taken back at the gateway.
    fn taken_back(&self, attempt: AttemptId, refunded: bool) -> impl Future<Output = Answer<()>> + Send;
    /// The status of a subscription.
    fn status(&self, id: SubscriptionId) -> impl Future<Output = Answer<Option<String>>> + Send;
}

/// Starts a subscription: writes it, charges it, activates it; returns its status. Asked again, it goes on where it stopped.
pub async fn subscribe(
    order: &Order,
    now: Timestamp,
    accounts: &impl Accounts,
    gateway: &impl Gateway,
) -> Answer<String> {
    let id = order.subscription_id;
    paid_for(&order.plan_code)?;
    accounts.open(order, Uuid::new_v4(), now).await?;
    if let Some(attempt) = accounts.open_attempt_of(id).await? {
        charge(attempt, now, accounts, gateway).await?;
    }
    accounts.status(id).await?.ok_or_else(|| "the subscription is gone".into())
}

/// What the worker does at each tick: charges what is due, and what another process has left behind. Returns how many.
pub async fn charge_due(now: Timestamp, accounts: &impl Accounts, gateway: &impl Gateway) -> Answer<usize> {
    let mut open = accounts.open_attempts(now - GRACE).await?;
    open.extend(accounts.open_due(now).await?);
    let count = open.len();
    let charges = open.into_iter().map(|attempt| charge(attempt, now, accounts, gateway));
    let mut charged = stream::iter(charges).buffer_unordered(AT_ONCE);
    let mut failed = None;
    while let Some(done) = charged.next().await {
        // One that can't be charged now stays open, and stops no other.
        failed = done.err().or(failed);
    }
    failed.map_or(Ok(count), Err)
}

async fn charge(
    attempt: OpenAttempt,
    now: Timestamp,
    accounts: &impl Accounts,
    gateway: &impl Gateway,
) -> Answer<()> {
    if !attempt.is_over {
        let amount = price(&attempt.plan_code).ok_or("the plan has no price")?;
        let succeeded = gateway.charge(attempt.id, amount).await?;
        if accounts.settle(attempt.id, succeeded, now).await? {
            return Ok(());
        }
    }
    // An attempt that another process charges at this moment is refused, or given back.
    let refunded = gateway.void(attempt.id).await?;
    accounts.taken_back(attempt.id, refunded).await
}
