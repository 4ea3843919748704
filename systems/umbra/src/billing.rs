//! Billing: who pays for what. An attempt is written before its charge, and takes its result once. Whoever has ended pays nothing more.

pub mod charging;
pub mod commands;

use std::fmt;
use std::future::Future;

use uuid::Uuid;

use self::charging::OpenAttempt;
use crate::contracts::{
    Answer, AttemptId, BillingKeyDeleted, BotKicked, Fact, GuildDeleted, GuildId, PERIOD, PLANS,
    PaymentFailed, PaymentFailedFinal, PaymentSucceeded, SubscriptionCanceled, SubscriptionId,
    SubscriptionStarted, SubscriptionSuspended, Timestamp, UserId,
};

/// The failure that ends a subscription.
pub const LAST_FAILURE: i32 = 4;
/// What a period of each plan costs, in won.
const PRICES: [i64; 3] = [0, 9_900, 29_900];

/// What a period of a plan costs; nothing if there is no such plan.
pub fn price(plan: &str) -> Option<i64> {
    PLANS.iter().zip(PRICES).find(|(name, _)| **name == plan).map(|(_, price)| price)
}

/// Refuses a plan that nobody pays for: a subscription to it would be charged 0 every period.
pub fn paid_for(plan: &str) -> Result<(), Refusal> {
    if price(plan).is_some_and(|price| price > 0) { Ok(()) } else { Err(Refusal::NotPaidFor) }
}

/// Why Billing refuses what a user asks for. Asked again, it answers the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The user has no such key. Whether somebody else has it is not said.
    NoSuchKey,
    /// The id of the key is somebody else's, or was deleted.
    KeyIdTaken,
    /// The plan is not one that is paid for.
    NotPaidFor,
    /// The subscription is known, and was ordered otherwise.
    OrderedOtherwise,
    /// The guild has a subscription that has not ended.
    GuildSubscribed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchKey => "billing_key_id must be a key of this user that was not deleted",
            Self::KeyIdTaken => "billing_key_id is taken; a new key must have a new id",
            Self::NotPaidFor => {
                "plan_code must be a plan that is paid for; to pay no more, cancel the subscription"
            }
            Self::OrderedOtherwise => {
                "subscription_id is taken by another order; a new subscription must have a new id"
            }
            Self::GuildSubscribed => {
                "the guild has a subscription; it must have ended before another one begins"
            }
        })
    }
}

impl std::error::Error for Refusal {}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The money was taken.
    Succeeded,
    /// The gateway refused.
    Failed,
    /// The money was taken and given back, because the subscription had ended.
    Refunded,
    /// No money was taken, and none can be: the subscription had ended.
    Void,
}

/// Whether a subscription with an open attempt must not be charged: it rests, it has ended, or it was to end with the period that is
/// over. What has come to that stays so.
pub fn is_over(status: &str, cancel_at_period_end: bool) -> bool {
    ["suspended", "canceled"].contains(&status) || (cancel_at_period_end && status != "pending")
}

/// A subscription, as a charge needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its id.
    pub id: SubscriptionId,
    /// Whose it is.
    pub guild_id: GuildId,
    /// The plan.
    pub plan_code: String,
    /// `pending`, `active`, `past_due`, `suspended` or `canceled`.
    pub status: String,
    /// Until when it is paid.
    pub period_end: Timestamp,
    /// How many payments failed since the last one that succeeded.
    pub retry_count: i32,
    /// Whether it ends with the period.
    pub cancel_at_period_end: bool,
}

/// What a user asks for.
#[derive(Debug, Clone)]
pub struct Order {
    /// The subscription's id, chosen by the caller.
    pub subscription_id: SubscriptionId,
    /// For whom.
    pub guild_id: GuildId,
    /// Who pays.
    pub user_id: UserId,
    /// With which key; a new one if there is none.
    pub billing_key_id: Option<Uuid>,
    /// The plan.
    pub plan_code: String,
}

/// The subscriptions, in one transaction with the events that are published.
pub trait Subscriptions: Send {
    /// Writes a key of a user. False if the id is taken.
    fn add_key(&mut self, key: Uuid, user: UserId) -> impl Future<Output = Answer<bool>> + Send;
    /// Whether a user has this key, and it was not deleted.
    fn has_key(&mut self, key: Uuid, user: UserId) -> impl Future<Output = Answer<bool>> + Send;
    /// Marks a key of a user as deleted. False if the user has no such key, or it was deleted before.
    fn delete_key(&mut self, key: Uuid, user: UserId) -> impl Future<Output = Answer<bool>> + Send;
    /// Writes the key, the pending subscription and its open attempt. Skips a subscription that exists, and refuses it if it was ordered
    /// otherwise; refuses a second one for a guild whose first has not ended. The key stays as it is until the transaction ends; one that
    /// the user does not have is refused.
    fn open(
        &mut self,
        order: &Order,
        attempt: AttemptId,
        now: Timestamp,
    ) -> impl Future<Output = Answer<()>> + Send;
    /// Writes an open attempt to charge a plan, unless the subscription has one; returns whether it did.
    fn attempt(
        &mut self,
        subscription: SubscriptionId,
        attempt: AttemptId,
        plan: &str,
        now: Timestamp,
    ) -> impl Future<Output = Answer<bool>> + Send;
    /// The open attempts that were written at this time or before.
    fn open_attempts(&mut self, before: Timestamp) -> impl Future<Output = Answer<Vec<OpenAttempt>>> + Send;
    /// The open attempt of a subscription.
    fn open_attempt_of(
        &mut self,
        id: SubscriptionId,
    ) -> impl Future<Output = Answer<Option<OpenAttempt>>> + Send;
    /// The subscriptions whose next charge is due: at the end of the period, and a day after each failure.
    fn due(&mut self, now: Timestamp) -> impl Future<Output = Answer<Vec<SubscriptionId>>> + Send;
    /// Whether the next charge of this subscription is due, as it is now.
    fn is_due(&mut self, id: SubscriptionId, now: Timestamp) -> impl Future<Output = Answer<bool>> + Send;
    /// A subscription, locked.
    fn find(&mut self, id: SubscriptionId) -> impl Future<Output = Answer<Option<Subscription>>> + Send;
    /// The subscription of an open attempt, locked, and the plan that the attempt charges; nothing if it has a result.
    fn of_attempt(
        &mut self,
        attempt: AttemptId,
    ) -> impl Future<Output = Answer<Option<(Subscription, String)>>> + Send;
    /// Writes the result of an open attempt, and the plan that it grants.
    fn close(
        &mut self,
        attempt: AttemptId,
        outcome: Outcome,
        grants: Option<&str>,
    ) -> impl Future<Output = Answer<()>> + Send;
    /// The plan that a payment granted; nothing if there is no such payment.
    fn granted_by(&mut self, attempt: AttemptId) -> impl Future<Output = Answer<Option<String>>> + Send;
    /// The subscriptions of a guild, locked.
    fn of_guild(&mut self, guild: GuildId) -> impl Future<Output = Answer<Vec<Subscription>>> + Send;
    /// The ids of the subscriptions that a key pays for.
    fn paid_by(&mut self, key: Uuid) -> impl Future<Output = Answer<Vec<SubscriptionId>>> + Send;
    /// The subscriptions that a key pays for, locked.
    fn of_key(&mut self, key: Uuid) -> impl Future<Output = Answer<Vec<Subscription>>> + Send;
    /// Writes plan, status, period, failures and whether it ends with the period.
    fn save(&mut self, subscription: &Subscription) -> impl Future<Output = Answer<()>> + Send;
    /// Publishes an event.
    fn publish(&mut self, event: impl Fact) -> impl Future<Output = Answer<()>> + Send;
}

/// Takes the result of a charge: the subscription's new state and its event. False if the subscription has ended meanwhile and money was
/// taken: then the attempt stays open until the money is given back ([`taken_back`]).
pub async fn settle(
    attempt: AttemptId,
    succeeded: bool,
    now: Timestamp,
    all: &mut impl Subscriptions,
) -> Answer<bool> {
    let Some((mut subscription, charged)) = all.of_attempt(attempt).await? else { return Ok(true) };
    let over = is_over(&subscription.status, subscription.cancel_at_period_end);
    if over && succeeded {
        return Ok(false);
    }
    // A plan that was raised while the attempt was open counts; one that was lowered counts from the next charge on.
    let raised = price(&subscription.plan_code) > price(&charged);
    let grants = if raised { subscription.plan_code.clone() } else { charged };
    let outcome = if succeeded { Outcome::Succeeded } else { Outcome::Failed };
    all.close(attempt, outcome, succeeded.then_some(grants.as_str())).await?;
    let first = subscription.status == "pending";
    let subscription_id = subscription.id;
    match (first, succeeded) {
        _ if over => end(subscription, all).await?,
        (true, true) => {
            "active".clone_into(&mut subscription.status);
            subscription.period_end = now + PERIOD;
            all.save(&subscription).await?;
            let Subscription { guild_id, plan_code, .. } = subscription;
            all.publish(SubscriptionStarted { subscription_id, guild_id, plan_code }).await?;
        }
        (true, false) => end(subscription, all).await?,
        (false, true) => {
            "active".clone_into(&mut subscription.status);
            subscription.period_end = now + PERIOD;
            subscription.retry_count = 0;
            all.save(&subscription).await?;
            let new_period_end = subscription.period_end;
            all.publish(PaymentSucceeded { subscription_id, attempt_id: attempt, new_period_end }).await?;
        }
        (false, false) => failed(subscription, attempt, all).await?,
    }
    Ok(true)
}

/// Takes that the gateway charges nothing for an attempt any more, because its subscription has ended: what it had taken was given back.
pub async fn taken_back(attempt: AttemptId, refunded: bool, all: &mut impl Subscriptions) -> Answer<()> {
    let Some((subscription, _)) = all.of_attempt(attempt).await? else { return Ok(()) };
    let outcome = if refunded { Outcome::Refunded } else { Outcome::Void };
    all.close(attempt, outcome, None).await?;
    end(subscription, all).await
}

/// Ends a subscription without a word, unless it rests: its user knows, or never had it.
async fn end(mut subscription: Subscription, all: &mut impl Subscriptions) -> Answer<()> {
    if ["suspended", "canceled"].contains(&subscription.status.as_str()) {
        return Ok(());
    }
    "canceled".clone_into(&mut subscription.status);
    all.save(&subscription).await
}

async fn failed(
    mut subscription: Subscription,
    attempt: AttemptId,
    all: &mut impl Subscriptions,
) -> Answer<()> {
    let subscription_id = subscription.id;
    subscription.retry_count += 1;
    let last = subscription.retry_count >= LAST_FAILURE;
    if last { "canceled" } else { "past_due" }.clone_into(&mut subscription.status);
    all.save(&subscription).await?;
    if last {
        return all.publish(PaymentFailedFinal { subscription_id }).await;
    }
    let retry_count = subscription.retry_count;
    all.publish(PaymentFailed { subscription_id, attempt_id: attempt, retry_count }).await
}

/// The guild has no bot: its subscriptions rest.
pub async fn bot_kicked(event: &BotKicked, all: &mut impl Subscriptions) -> Answer<()> {
    let found = all.of_guild(event.guild_id).await?;
    suspend(found, "bot kicked", all).await
}

/// Nobody pays for these any more.
pub async fn billing_key_deleted(event: &BillingKeyDeleted, all: &mut impl Subscriptions) -> Answer<()> {
    let found = all.of_key(event.billing_key_id).await?;
    suspend(found, "billing key deleted", all).await
}

async fn suspend(found: Vec<Subscription>, reason: &str, all: &mut impl Subscriptions) -> Answer<()> {
    for mut subscription in found {
        match subscription.status.as_str() {
            "active" | "past_due" => {}
            // It has not begun, and there is nothing to rest.
            "pending" => {
                cancel(subscription, all).await?;
                continue;
            }
            _ => continue,
        }
        "suspended".clone_into(&mut subscription.status);
        all.save(&subscription).await?;
        let event = SubscriptionSuspended { subscription_id: subscription.id, reason: reason.to_owned() };
        all.publish(event).await?;
    }
    Ok(())
}

/// The guild is gone: its subscriptions end at once.
pub async fn guild_deleted(event: &GuildDeleted, all: &mut impl Subscriptions) -> Answer<()> {
    for subscription in all.of_guild(event.guild_id).await? {
        if subscription.status != "canceled" {
            cancel(subscription, all).await?;
        }
    }
    Ok(())
}

/// Ends a subscription at once, and says so.
async fn cancel(mut subscription: Subscription, all: &mut impl Subscriptions) -> Answer<()> {
    "canceled".clone_into(&mut subscription.status);
    all.save(&subscription).await?;
    let subscription_id = subscription.id;
    all.publish(SubscriptionCanceled { subscription_id, cancel_at_period_end: false }).await
}
