//! What may also happen.

use postrider::Uuid;
use umbra::billing::charging::Accounts;
use umbra::contracts::*;

use crate::world::{World, pair};

/// U9: a guild without a licence is kicked: nothing to suspend, nobody to tell.
#[tokio::test]
async fn a_guild_without_a_licence_is_kicked() {
    let world = World::new().await;
    world.publish(BotKicked { guild_id: Uuid::new_v4() }).await;
    world.quiet().await;
    assert_eq!(world.types().await, ["BotKicked"]);
    assert_eq!(world.messages().await, [""; 0]);
}

/// U9: the guild is gone: both end at once, and a payment that comes after that changes nothing.
#[tokio::test]
async fn a_payment_after_the_end_changes_nothing() {
    let world = World::new().await;
    let guild_id = Uuid::new_v4();
    let subscription_id = world.subscribed(guild_id).await;
    for _ in 0..2 {
        world.publish(GuildDeleted { guild_id }).await;
    }
    world.quiet().await;
    assert_eq!(world.license(guild_id).await, pair("pro", "canceled"));
    assert_eq!(world.subscription(subscription_id).await.0, "canceled");
    for name in ["LicenseCanceled", "SubscriptionCanceled"] {
        assert_eq!(world.count(name).await, 1, "{name}");
    }
    let attempt_id = Uuid::new_v4();
    let new_period_end = world.began + 9 * PERIOD;
    world.publish(PaymentSucceeded { subscription_id, attempt_id, new_period_end }).await;
    world.quiet().await;
    assert_eq!(world.license(guild_id).await, pair("pro", "canceled"));
    assert_eq!(world.count("LicenseExtended").await, 0);
}

/// U5, U9: the last failure comes twice, and the licence falls once.
#[tokio::test]
async fn a_last_failure_that_comes_twice_counts_once() {
    let world = World::new().await;
    let guild_id = Uuid::new_v4();
    let subscription_id = world.subscribed(guild_id).await;
    for _ in 0..2 {
        world.publish(PaymentFailedFinal { subscription_id }).await;
    }
    world.quiet().await;
    assert_eq!(world.license(guild_id).await, pair("free", "active"));
    assert_eq!(world.count("LicenseDowngraded").await, 1);
}

/// U9: a key that pays for two subscriptions is deleted: both rest, and so do their licences, each once.
#[tokio::test]
async fn a_deleted_key_suspends_both_of_its_subscriptions() {
    let world = World::new().await;
    let key = Uuid::new_v4();
    world.service.issue_key(key, Uuid::new_v4()).await.expect("issued");
    let guilds = [Uuid::new_v4(), Uuid::new_v4()];
    let mut subscriptions = Vec::new();
    for guild in guilds {
        subscriptions.push(world.subscribed_with(guild, Some(key)).await);
    }
    let untouched = Uuid::new_v4();
    world.subscribed(untouched).await;
    assert!(world.delete_key(key).await);
    assert!(!world.delete_key(key).await, "it is gone");
    world.quiet().await;
    for (guild, subscription) in guilds.into_iter().zip(subscriptions) {
        assert_eq!(world.license(guild).await, pair("pro", "suspended"));
        assert_eq!(world.subscription(subscription).await.0, "suspended");
    }
    assert_eq!(world.license(untouched).await, pair("pro", "active"));
    for (name, count) in [("LicenseSuspended", 2), ("SubscriptionSuspended", 2), ("BillingKeyDeleted", 1)] {
        assert_eq!(world.count(name).await, count, "{name}");
    }
}

/// U9: a payment that succeeds after two failures makes the subscription active again, and the licence lasts longer.
#[tokio::test]
async fn a_success_between_failures_starts_anew() {
    let world = World::new().await;
    let guild_id = Uuid::new_v4();
    let subscription = world.subscribed(guild_id).await;
    for (failures, succeeded) in [(1, false), (2, false), (0, true)] {
        let now = world.began + PERIOD + i64::from(failures) * DAY + if succeeded { 3 * DAY } else { 0 };
        let opened = world.service.open_due(now).await.expect("opened");
        assert_eq!(opened.len(), 1);
        world.settle(opened[0].id, succeeded, now).await;
        let status = if succeeded { "active" } else { "past_due" };
        assert_eq!(world.subscription(subscription).await, (status.to_owned(), failures));
    }
    world.quiet().await;
    assert_eq!(world.count("PaymentSucceeded").await, 1);
    let end: i64 = world.one("select expires_at from licensing.licenses").await;
    assert_eq!(end, world.began + PERIOD + 3 * DAY + PERIOD);
}

/// U9: plans go up at once and down later; a cancellation at the end of the period is not charged.
#[tokio::test]
async fn plans_change_and_a_cancellation_waits_for_the_end_of_the_period() {
    let world = World::new().await;
    let guild = Uuid::new_v4();
    let subscription = world.subscribed(guild).await;
    assert!(world.service.change_plan(subscription, "team").await.expect("changed"));
    world.quiet().await;
    assert_eq!(world.license(guild).await, pair("team", "active"));
    assert!(world.service.change_plan(subscription, "pro").await.expect("changed"));
    assert!(!world.service.change_plan(subscription, "pro").await.expect("the same plan"));
    world.quiet().await;
    assert_eq!(world.license(guild).await, pair("team", "active"), "until the next payment");
    assert!(world.service.cancel(subscription, true).await.expect("canceled"));
    assert_eq!(world.subscription(subscription).await.0, "active");
    let due = world.service.open_due(world.began + PERIOD).await.expect("due");
    assert_eq!(due, [], "nothing is charged");
    assert_eq!(world.subscription(subscription).await.0, "canceled");
    world.quiet().await;
    for name in ["PlanUpgraded", "PlanDowngraded", "SubscriptionCanceled"] {
        assert_eq!(world.count(name).await, 1, "{name}");
    }
    let told = world.messages().await;
    assert_eq!(
        told,
        ["Upgraded to team", "You will be on pro", "Your subscription is canceled", "pro activated"]
    );
}
