//! What a licence allows, and until when.

use postrider::Uuid;
use umbra::adapters::postgres::unit::UnitOfWork;
use umbra::billing::charging::Accounts;
use umbra::contracts::*;
use umbra::licensing;

use crate::world::{World, pair};

impl World {
    async fn installed(&self, guild_id: GuildId) {
        self.publish(BotInstalled { guild_id, installer_user_id: Uuid::new_v4() }).await;
        self.quiet().await;
    }

    async fn kicked(&self, guild_id: GuildId) {
        self.publish(BotKicked { guild_id }).await;
        self.quiet().await;
    }
}

/// U9: a bot that comes back within the period that was paid finds the plan that was paid; after that it finds the free plan, because
/// Billing charges a subscription that rests no more.
#[tokio::test]
async fn a_bot_that_comes_back_finds_its_plan_as_long_as_it_is_paid() {
    let world = World::new().await;
    let guild = Uuid::new_v4();
    world.subscribed(guild).await;
    world.kicked(guild).await;
    world.installed(guild).await;
    assert_eq!(world.license(guild).await, pair("pro", "active"), "it is paid for 30 days");
    assert_eq!(world.count("LicenseDowngraded").await, 0);
    world.kicked(guild).await;
    // The clock is turned past the end of the period.
    world
        .run("update licensing.licenses set expires_at = extract(epoch from clock_timestamp())::bigint - 1")
        .await;
    world.installed(guild).await;
    assert_eq!(world.license(guild).await, pair("free", "active"), "nobody pays any more");
    assert_eq!(world.count("LicenseDowngraded").await, 1);
    assert!(world.messages().await.contains(&"Your licence is now free".to_owned()));
    // Whoever subscribes again has the plan again.
    world.subscribed(guild).await;
    assert_eq!(world.license(guild).await, pair("pro", "active"));
}

/// U9: a billing key that was deleted pays for nothing: the bot comes back on the free plan, whether the key was deleted before the kick
/// or after it.
#[tokio::test]
async fn a_bot_that_comes_back_without_a_billing_key_has_the_free_plan() {
    for key_first in [true, false] {
        let world = World::new().await;
        let (guild, key) = (Uuid::new_v4(), Uuid::new_v4());
        world.service.issue_key(key, Uuid::new_v4()).await.expect("issued");
        let subscription = world.subscribed_with(guild, Some(key)).await;
        if !key_first {
            world.kicked(guild).await;
        }
        assert!(world.delete_key(key).await);
        world.quiet().await;
        if key_first {
            world.kicked(guild).await;
        }
        assert_eq!(world.license(guild).await, pair("pro", "suspended"));
        world.installed(guild).await;
        assert_eq!(world.license(guild).await, pair("free", "active"), "key first: {key_first}");
        assert_eq!(world.subscription(subscription).await.0, "suspended");
        assert_eq!(world.count("LicenseSuspended").await, 1);
    }
}

/// U9: a lower plan counts when its first payment is made, and not before: then the licence falls, once, and its owner is told.
#[tokio::test]
async fn a_lower_plan_counts_from_its_first_payment_on() {
    let world = World::new().await;
    let guild = Uuid::new_v4();
    let subscription = world.subscribed(guild).await;
    assert!(world.service.change_plan(subscription, "team").await.expect("changed"));
    assert!(world.service.change_plan(subscription, "pro").await.expect("changed"));
    world.quiet().await;
    assert_eq!(world.license(guild).await, pair("team", "active"), "until the end of the period");
    let due = world.began + PERIOD;
    let effective =
        "select (payload ->> 'effective_at')::bigint from events.event where event_type = 'PlanDowngraded'";
    assert_eq!(world.one::<i64>(effective).await, due);
    assert_eq!(world.service.open_due(due - 1).await.expect("due"), [], "not before");

    let opened = world.service.open_due(due).await.expect("due");
    assert_eq!(opened.iter().map(|each| each.plan_code.as_str()).collect::<Vec<_>>(), ["pro"]);
    let attempt = opened[0].id;
    world.settle(attempt, true, due).await;
    world.quiet().await;
    assert_eq!(world.license(guild).await, pair("pro", "active"));
    assert_eq!(world.count("LicenseDowngraded").await, 1);
    assert!(world.messages().await.contains(&"Your licence is now pro".to_owned()));

    // The payment comes again after the plan was raised: it changes nothing.
    assert!(world.service.change_plan(subscription, "team").await.expect("changed"));
    world.quiet().await;
    let mut tx = world.db.begin().await.expect("a transaction");
    let unit = &mut UnitOfWork::Command(&world.outbox, &mut tx);
    let again =
        PaymentSucceeded { subscription_id: subscription, attempt_id: attempt, new_period_end: due + PERIOD };
    licensing::payment_succeeded(&again, unit).await.expect("handled");
    tx.commit().await.expect("committed");
    assert_eq!(world.license(guild).await, pair("team", "active"));
    assert_eq!(world.count("LicenseDowngraded").await, 1);
}
