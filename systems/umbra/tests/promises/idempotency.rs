//! The three ways to be idempotent: each handler runs twice for one event, past the inbox that would keep the second run away.

use postrider::Uuid;
use umbra::adapters::postgres::unit::UnitOfWork;
use umbra::audit::{self, Entry};
use umbra::contracts::*;
use umbra::{billing, licensing};

use crate::world::World;

/// Runs a handler twice, each time in a transaction of its own.
macro_rules! twice {
    ($world:expr, $handler:path, $event:expr) => {
        let event = $event;
        for _ in 0..2 {
            let mut tx = $world.db.begin().await.expect("a transaction");
            let unit = &mut UnitOfWork::Command(&$world.outbox, &mut tx);
            $handler(&event, unit).await.expect("handled");
            tx.commit().await.expect("committed");
        }
    };
}

/// U5: a conditional update: the greater end stays, also when the newer event comes before the older one.
#[tokio::test]
async fn a_licence_is_extended_to_the_greater_end() {
    let world = World::asleep().await;
    let (subscription_id, guild_id) = (Uuid::new_v4(), Uuid::new_v4());
    let plan_code = "pro".to_owned();
    twice!(
        world,
        licensing::subscription_started,
        SubscriptionStarted { subscription_id, guild_id, plan_code }
    );
    let end_of = |paid| world.began + 2 * PERIOD + paid;
    let paid = |paid| {
        let new_period_end = end_of(paid);
        PaymentSucceeded { subscription_id, attempt_id: Uuid::new_v4(), new_period_end }
    };
    twice!(world, licensing::payment_succeeded, paid(900));
    twice!(world, licensing::payment_succeeded, paid(500));
    assert_eq!(world.one::<i64>("select expires_at from licensing.licenses").await, end_of(900));
    assert_eq!(world.count("LicenseGranted").await, 1);
    assert_eq!(world.count("LicenseExtended").await, 1);
    // The database keeps the greater one, whatever a handler has read.
    world.run("update licensing.licenses set expires_at = 1000").await;
    let mut tx = world.db.begin().await.expect("a transaction");
    let unit = &mut UnitOfWork::Command(&world.outbox, &mut tx);
    let found = licensing::Licenses::of_guild(unit, guild_id).await.expect("found").expect("a licence");
    let older = licensing::License { expires_at: 700, ..found };
    licensing::Licenses::save(unit, &older).await.expect("saved");
    tx.commit().await.expect("committed");
    assert_eq!(world.one::<i64>("select expires_at from licensing.licenses").await, 1000);
}

/// U5: deduplication by the event's id, under a unique constraint.
#[tokio::test]
async fn audit_keeps_an_event_once() {
    let world = World::asleep().await;
    let entry = Entry {
        event_id: Uuid::new_v4(),
        event_type: "BotKicked".to_owned(),
        aggregate: "guild:1".to_owned(),
        payload: "{}".to_owned(),
        occurred_at: 0.0,
    };
    twice!(world, audit::keep, entry);
    assert_eq!(world.one::<i64>("select count(*) from audit.events").await, 1);
    let again = "insert into audit.events select * from audit.events";
    let refused = sqlx::query(again).execute(&world.db).await.expect_err("the constraint refuses it");
    assert!(refused.to_string().contains("outbox_event_id"), "{refused}");
}

/// U5: natural no-ops: what is suspended or canceled stays so, and nothing is published again.
#[tokio::test]
async fn what_is_suspended_or_canceled_stays_so() {
    let world = World::asleep().await;
    let (guild_id, installer_user_id) = (Uuid::new_v4(), Uuid::new_v4());
    let plan_code = "pro".to_owned();
    twice!(world, licensing::bot_installed, BotInstalled { guild_id, installer_user_id });
    let subscription_id = {
        use umbra::billing::charging::Accounts;
        let (subscription_id, attempt) = (Uuid::new_v4(), Uuid::new_v4());
        let user_id = Uuid::new_v4();
        let order = billing::Order {
            subscription_id,
            guild_id,
            user_id,
            billing_key_id: None,
            plan_code: plan_code.clone(),
        };
        world.service.open(&order, attempt, 0).await.expect("opened");
        world.settle(attempt, true, 0).await;
        subscription_id
    };
    twice!(
        world,
        licensing::subscription_started,
        SubscriptionStarted { subscription_id, guild_id, plan_code }
    );
    twice!(world, licensing::bot_kicked, BotKicked { guild_id });
    twice!(world, billing::bot_kicked, BotKicked { guild_id });
    let reason = "bot kicked".to_owned();
    twice!(world, licensing::subscription_suspended, SubscriptionSuspended { subscription_id, reason });
    twice!(world, licensing::guild_deleted, GuildDeleted { guild_id });
    twice!(world, billing::guild_deleted, GuildDeleted { guild_id });
    for (name, count) in [
        ("LicenseGranted", 2), // of the free plan, and of the one that is paid for
        ("LicenseSuspended", 1),
        ("SubscriptionSuspended", 1),
        ("LicenseCanceled", 1),
        ("SubscriptionCanceled", 1),
    ] {
        assert_eq!(world.count(name).await, count, "{name}");
    }
}
