//! Licensing: which guild may use which plan, and until when. It reacts to events of other contexts, and knows none of them.

use std::future::Future;

use crate::contracts::{
    Answer, AttemptId, BillingKeyDeleted, BotInstalled, BotKicked, Fact, GuildDeleted, GuildId,
    LicenseCanceled, LicenseDowngraded, LicenseExtended, LicenseGranted, LicenseId, LicenseSuspended, PERIOD,
    PLANS, PaymentFailedFinal, PaymentSucceeded, PlanUpgraded, SubscriptionId, SubscriptionStarted,
    SubscriptionSuspended, Timestamp,
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
    /// Whether the billing key that paid for it was deleted.
    pub payer_gone: bool,
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
    /// The plan that a payment granted; nothing if that is not known.
    fn granted_by(&mut self, payment: AttemptId) -> impl Future<Output = Answer<Option<String>>> + Send;
    /// When the event that is handled happened.
    fn time(&self) -> Timestamp;
    /// Writes a licence, new or changed. `expires_at` never goes back.
    fn save(&mut self, license: &License) -> impl Future<Output = Answer<()>> + Send;
    /// Publishes an event.
    fn publish(&mut self, event: impl Fact) -> impl Future<Output = Answer<()>> + Send;
}

/// A new guild gets a free licence. A guild that comes back gets its licence back: on its plan as long as that is paid, and on the free
/// plan otherwise.
pub async fn bot_installed(event: &BotInstalled, licenses: &mut impl Licenses) -> Answer<()> {
    let guild_id = event.guild_id;
    let Some(mut license) = licenses.of_guild(guild_id).await? else {
        return grant(new(guild_id), licenses).await;
    };
    if license.status == Status::Active {
        return Ok(());
    }
    license.status = Status::Active;
    let is_paid = !license.payer_gone && license.expires_at > licenses.time();
    let old_plan = license.plan_code.clone();
    if !is_paid {
        license.subscription_id = None;
        FREE.clone_into(&mut license.plan_code);
    }
    if license.plan_code != old_plan {
        let (license_id, new_plan) = (license.id, license.plan_code.clone());
        licenses.publish(LicenseDowngraded { license_id, old_plan, new_plan }).await?;
    }
    grant(license, licenses).await
}

/// A paid subscription creates the guild's licence, or puts its own on the plan, for the period that the first payment is for.
pub async fn subscription_started(event: &SubscriptionStarted, licenses: &mut impl Licenses) -> Answer<()> {
    let found = licenses.of_guild(event.guild_id).await?;
    let is_same = |license: &License| {
        license.subscription_id == Some(event.subscription_id) && license.plan_code == event.plan_code
    };
    if found.as_ref().is_some_and(|license| license.status == Status::Active && is_same(license)) {
        return Ok(());
    }
    let mut license = found.unwrap_or_else(|| new(event.guild_id));
    license.status = Status::Active;
    license.subscription_id = Some(event.subscription_id);
    license.plan_code.clone_from(&event.plan_code);
    license.expires_at = license.expires_at.max(licenses.time() + PERIOD);
    license.payer_gone = false;
    grant(license, licenses).await
}

/// A free licence.
fn new(guild_id: GuildId) -> License {
    License {
        id: uuid::Uuid::new_v4(),
        guild_id,
        subscription_id: None,
        plan_code: FREE.to_owned(),
        status: Status::Active,
        expires_at: 0,
        payer_gone: false,
    }
}

async fn grant(license: License, licenses: &mut impl Licenses) -> Answer<()> {
    licenses.save(&license).await?;
    let License { id: license_id, guild_id, plan_code, .. } = license;
    licenses.publish(LicenseGranted { license_id, guild_id, plan_code }).await
}

/// The licence lasts until the new end of the period, unless it lasts longer already, on the plan that was paid: a lower plan counts from
/// its first payment on.
pub async fn payment_succeeded(event: &PaymentSucceeded, licenses: &mut impl Licenses) -> Answer<()> {
    let Some(mut license) = licenses.of_subscription(event.subscription_id).await? else { return Ok(()) };
    if license.expires_at >= event.new_period_end {
        return Ok(());
    }
    license.expires_at = event.new_period_end;
    let old_plan = license.plan_code.clone();
    if let Some(plan) = licenses.granted_by(event.attempt_id).await? {
        license.plan_code = plan;
    }
    licenses.save(&license).await?;
    let (license_id, new_expires_at) = (license.id, license.expires_at);
    licenses.publish(LicenseExtended { license_id, new_expires_at }).await?;
    if rank(&license.plan_code) < rank(&old_plan) {
        let new_plan = license.plan_code;
        licenses.publish(LicenseDowngraded { license_id, old_plan, new_plan }).await?;
    }
    Ok(())
}

/// The place of a plan among the others.
fn rank(plan: &str) -> Option<usize> {
    PLANS.iter().position(|each| *each == plan)
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
        let Some(mut license) = licenses.of_subscription(subscription).await? else { continue };
        license.payer_gone = true;
        // One that is suspended already, because the bot was kicked, must not come back with the bot.
        licenses.save(&license).await?;
        suspend(Some(license), "billing key deleted", licenses).await?;
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
