//! The three flows, end to end, with the relay of the worker.

use postrider::Uuid;
use umbra::adapters::postgres::unit::UnitOfWork;
use umbra::billing::Subscriptions;
use umbra::contracts::*;

use crate::world::{World, pair};

/// U9: the first flow, and X1: the document's table. The licence lasts for the period that the first payment is for.
#[tokio::test]
async fn a_first_subscription_grants_a_licence_and_tells_its_owner() {
    let world = World::new().await;
    let guild = Uuid::new_v4();
    world.subscribed(guild).await;
    assert_eq!(world.types().await, ["LicenseGranted", "SubscriptionStarted"]);
    assert_eq!(world.messages().await, ["pro activated"]);
    assert_eq!(world.license(guild).await, pair("pro", "active"));
    let started = world.one::<i64>(
        "select extract(epoch from occurred_at)::bigint from audit.events where event_type = 'SubscriptionStarted'",
    );
    let (started, end) = (started.await, world.one::<i64>("select expires_at from licensing.licenses").await);
    assert!((started + PERIOD - 1..=started + PERIOD).contains(&end), "{started} and a period: {end}");
    let sql =
        "select event_type from events.outbox where published_at is not null and retry_count = 0 order by id";
    let published: Vec<String> = sqlx::query_scalar(sql).fetch_all(&world.db).await.expect("rows");
    assert_eq!(published, ["SubscriptionStarted", "LicenseGranted"], "X1: the document's table");
}

/// U9: the second flow, with the clock turned a day after each failure.
#[tokio::test]
async fn the_fourth_failure_ends_the_subscription_and_a_charge_is_due_daily() {
    let world = World::new().await;
    let guild = Uuid::new_v4();
    let subscription = world.subscribed(guild).await;
    for failure in 1..=4_i32 {
        let due = world.began + PERIOD + Timestamp::from(failure - 1) * DAY;
        let mut tx = world.db.begin().await.expect("a transaction");
        let mut unit = UnitOfWork::Command(&world.outbox, &mut tx);
        assert!(unit.due(due - 1).await.expect("an answer").is_empty(), "not before a day has passed");
        assert_eq!(unit.due(due).await.expect("an answer"), [subscription]);
        let attempt = Uuid::new_v4();
        unit.attempt(subscription, attempt, "pro", due).await.expect("opened");
        tx.commit().await.expect("committed");
        world.settle(attempt, false, due).await;
        let status = if failure < 4 { "past_due" } else { "canceled" };
        assert_eq!(world.subscription(subscription).await, (status.to_owned(), failure));
    }
    world.quiet().await;
    let told = world.messages().await;
    assert_eq!(told.iter().filter(|text| text.contains("try again in 24 hours")).count(), 3);
    assert_eq!(told.len(), 6, "{told:?}");
    assert_eq!(world.license(guild).await, pair("free", "active"));
    let types = world.types().await;
    assert_eq!(types.iter().filter(|name| *name == "PaymentFailedFinal").count(), 1);
    assert_eq!(types.iter().filter(|name| *name == "LicenseDowngraded").count(), 1);
}

/// U9: the third flow; a second kick and the echo change nothing.
#[tokio::test]
async fn a_kicked_bot_suspends_both_once() {
    let world = World::new().await;
    let guild_id = Uuid::new_v4();
    let subscription = world.subscribed(guild_id).await;
    for _ in 0..2 {
        world.publish(BotKicked { guild_id }).await;
        world.quiet().await;
    }
    assert_eq!(world.license(guild_id).await, pair("pro", "suspended"));
    assert_eq!(world.subscription(subscription).await.0, "suspended");
    let types = world.types().await;
    for name in ["LicenseSuspended", "SubscriptionSuspended"] {
        assert_eq!(types.iter().filter(|each| *each == name).count(), 1, "{types:?}");
    }
    assert_eq!(world.messages().await.len(), 2);
    world.publish(BotInstalled { guild_id, installer_user_id: Uuid::new_v4() }).await;
    world.quiet().await;
    assert_eq!(world.license(guild_id).await, pair("pro", "active"), "reinstalled");
}

/// U5: the conditional update: the greater end stays, also when the older event comes later.
#[tokio::test]
async fn an_older_payment_does_not_shorten_a_licence() {
    let world = World::new().await;
    let subscription_id = world.subscribed(Uuid::new_v4()).await;
    let end_of = |paid| world.began + 2 * PERIOD + paid;
    for new_period_end in [900, 900, 500].map(end_of) {
        world.publish(PaymentSucceeded { subscription_id, attempt_id: Uuid::new_v4(), new_period_end }).await;
    }
    world.quiet().await;
    let sql = "select expires_at from licensing.licenses";
    let end: i64 = sqlx::query_scalar(sql).fetch_one(&world.db).await.expect("a licence");
    assert_eq!(end, end_of(900));
    assert_eq!(world.types().await.iter().filter(|name| *name == "LicenseExtended").count(), 1);
}

/// An attempt takes its result once, so one charge starts one subscription.
#[tokio::test]
async fn a_result_that_is_told_twice_counts_once() {
    let world = World::new().await;
    let id = world.subscribed(Uuid::new_v4()).await;
    let sql = "select id from billing.payment_attempts where subscription_id = $1";
    let attempt: Uuid = sqlx::query_scalar(sql).bind(id).fetch_one(&world.db).await.expect("an attempt");
    world.settle(attempt, true, 0).await;
    world.quiet().await;
    assert_eq!(world.types().await, ["LicenseGranted", "SubscriptionStarted"]);
}

/// U17: what is secret is masked in the trail; the log has it for those who need it.
#[tokio::test]
async fn the_trail_has_no_session_id() {
    let world = World::new().await;
    let user_id = Uuid::new_v4();
    world.publish(UserSessionCreated { user_id, session_id: "s3cret".into() }).await;
    world.publish(UserRegistered { user_id, discord_user_id: "s3cret".into() }).await;
    world.quiet().await;
    let sql = "select coalesce(payload ->> 'session_id', payload ->> 'discord_user_id') from audit.events";
    assert_eq!(world.all::<String>(sql).await, ["***", "***"]);
    let recorded = "select count(*) from events.event where payload::text like '%s3cret%'";
    assert_eq!(world.one::<i64>(recorded).await, 2);
}
