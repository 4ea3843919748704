//! Licensing: which guild may use which plan. It reacts to events of other contexts, and knows none of them.

use std::future::Future;

use crate::contracts::{
    Answer, BillingKeyDeleted, BotInstalled, BotKicked, Fact, GuildDeleted, GuildId, LicenseCanceled,
    LicenseDowngraded, LicenseExtended, LicenseGranted, LicenseId, LicenseSuspended, PaymentFailedFinal,
    PaymentSucceeded, PlanUpgraded, SubscriptionId, SubscriptionStarted, SubscriptionSuspended, Timestamp,
};

/// The plan that costs nothing.
pub const FREE: &str = "free";

/// The state of a licence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It may be used.
    Active,
    /// It may not be used until it is activated again.
    Suspended,
    /// It has ended.
    Canceled,
}

/// A licence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct License {
    /// Its id.
    pub id: LicenseId,
    /// Whose it is.
    pub guild_id: GuildId,
    /// The subscription that pays for it; nothing for the free plan.
    pub subscription_id: Option<SubscriptionId>,
    /// The plan.
    pub plan_code: String,
    /// Its state.
    pub status: Status,
    /// Until when it is paid.
    pub expires_at: Timestamp,
}

/// The licences that are not canceled, in one transaction with the events that are published.
pub trait Licenses: Send {
    /// The licence of a guild, locked.
    fn of_guild(&mut self, guild: GuildId) -> impl Future<Output = Answer<Option<License>>> + Send;
    /// The licence that a subscription pays for, locked.
    fn of_subscription(
        &mut self,
        subscription: SubscriptionId,
    ) -> impl Future<Output = Answer<Option<License>>> + Send;
    /// The subscriptions that a billing key pays for.
    fn paid_by(&mut self, key: uuid::Uuid) -> impl Future<Output = Answer<Vec<SubscriptionId>>> + Send;
    /// Writes a licence, new or changed. `expires_at` never goes back.
    fn save(&mut self, license: &License) -> impl Future<Output = Answer<()>> + Send;
    /// Publishes an event.
    fn publish(&mut self, event: impl Fact) -> impl Future<Output = Answer<()>> + Send;
}

/// A new guild gets a free licence; a guild that comes back gets its licence back.
pub async fn bot_installed(event: &BotInstalled, licenses: &mut impl Licenses) -> Answer<()> {
    grant(event.guild_id, None, FREE, licenses).await
}

/// A paid subscription creates the guild's licence, or puts its own on the plan.
pub async fn subscription_started(event: &SubscriptionStarted, licenses: &mut impl Licenses) -> Answer<()> {
    grant(event.guild_id, Some(event.subscription_id), &event.plan_code, licenses).await
}

async fn grant(
    guild_id: GuildId,
    subscription_id: Option<SubscriptionId>,
    plan: &str,
    licenses: &mut impl Licenses,
) -> Answer<()> {
    let found = licenses.of_guild(guild_id).await?;
    let mut license = found.clone().unwrap_or(License {
        id: uuid::Uuid::new_v4(),
        guild_id,
        subscription_id,
        plan_code: plan.to_owned(),
        status: Status::Active,
        expires_at: 0,
    });
    license.status = Status::Active;
    // An installation brings back the plan that was there.
    if subscription_id.is_some() {
        license.subscription_id = subscription_id;
        license.plan_code = plan.to_owned();
    }
    if found.as_ref() == Some(&license) {
        return Ok(());
    }
    licenses.save(&license).await?;
    let plan_code = license.plan_code;
    licenses.publish(LicenseGranted { license_id: license.id, guild_id, plan_code }).await
}

/// The licence lasts until the new end of the period, unless it lasts longer already.
pub async fn payment_succeeded(event: &PaymentSucceeded, licenses: &mut impl Licenses) -> Answer<()> {
    let Some(mut license) = licenses.of_subscription(event.subscription_id).await? else { return Ok(()) };
    if license.expires_at >= event.new_period_end {
        return Ok(());
    }
    license.expires_at = event.new_period_end;
    licenses.save(&license).await?;
    licenses.publish(LicenseExtended { license_id: license.id, new_expires_at: license.expires_at }).await
}

/// The licence falls back to the free plan.
pub async fn payment_failed_final(event: &PaymentFailedFinal, licenses: &mut impl Licenses) -> Answer<()> {
    change_plan(event.subscription_id, FREE, licenses).await
}

/// The new plan counts at once.
pub async fn plan_upgraded(event: &PlanUpgraded, licenses: &mut impl Licenses) -> Answer<()> {
    change_plan(event.subscription_id, &event.new_plan, licenses).await
}

async fn change_plan(subscription: SubscriptionId, plan: &str, licenses: &mut impl Licenses) -> Answer<()> {
    let Some(mut license) = licenses.of_subscription(subscription).await? else { return Ok(()) };
    if license.plan_code == plan {
        return Ok(());
    }
    let old_plan = std::mem::replace(&mut license.plan_code, plan.to_owned());
    licenses.save(&license).await?;
    if plan == FREE {
        let new_plan = plan.to_owned();
        licenses.publish(LicenseDowngraded { license_id: license.id, old_plan, new_plan }).await?;
    }
    Ok(())
}

/// The guild can't use the bot any more.
pub async fn bot_kicked(event: &BotKicked, licenses: &mut impl Licenses) -> Answer<()> {
    let license = licenses.of_guild(event.guild_id).await?;
    suspend(license, "bot kicked", licenses).await
}

/// The echo of a suspension that Licensing may have seen coming.
pub async fn subscription_suspended(
    event: &SubscriptionSuspended,
    licenses: &mut impl Licenses,
) -> Answer<()> {
    let license = licenses.of_subscription(event.subscription_id).await?;
    suspend(license, &event.reason, licenses).await
}

/// Nobody pays for the licences of these subscriptions any more.
pub async fn billing_key_deleted(event: &BillingKeyDeleted, licenses: &mut impl Licenses) -> Answer<()> {
    for subscription in licenses.paid_by(event.billing_key_id).await? {
        let license = licenses.of_subscription(subscription).await?;
        suspend(license, "billing key deleted", licenses).await?;
    }
    Ok(())
}

async fn suspend(license: Option<License>, reason: &str, licenses: &mut impl Licenses) -> Answer<()> {
    let Some(mut license) = license.filter(|license| license.status == Status::Active) else { return Ok(()) };
    license.status = Status::Suspended;
    licenses.save(&license).await?;
    licenses.publish(LicenseSuspended { license_id: license.id, reason: reason.to_owned() }).await
}

/// The guild is gone, and its licence with it.
pub async fn guild_deleted(event: &GuildDeleted, licenses: &mut impl Licenses) -> Answer<()> {
    let Some(mut license) = licenses.of_guild(event.guild_id).await? else { return Ok(()) };
    license.status = Status::Canceled;
    licenses.save(&license).await?;
    licenses.publish(LicenseCanceled { license_id: license.id }).await
}
