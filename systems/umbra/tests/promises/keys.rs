//! Billing keys: whose they are, and what happens when one is deleted while somebody uses it.

use postrider::Uuid;
use postrider_testkit::until;
use serde_json::json;
use umbra::adapters::postgres::unit::UnitOfWork;
use umbra::billing::charging::Accounts;
use umbra::billing::{Refusal, Subscriptions, commands};

use crate::running::System;
use crate::world::World;

/// How many sessions wait for a lock of a row.
const WAITING: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'";

/// U9: whoever knows the id of a key can't pay with it; nobody but its user can. The answer does not say whether there is such a key.
#[tokio::test]
async fn a_key_pays_for_its_user_alone() {
    let system = System::new().await;
    let (_api, api) = system.start("api").await;
    let (key, user) = (Uuid::new_v4(), Uuid::new_v4());
    let order = |user: Uuid, key: Uuid| {
        json!({ "subscription_id": Uuid::new_v4(), "guild_id": Uuid::new_v4(), "user_id": user,
            "billing_key_id": key, "plan_code": "pro" })
    };
    let issue = json!({ "billing_key_id": key, "user_id": user });
    assert_eq!(system.post(format!("{api}/billing-keys"), issue).await, Some(200));
    let subscriptions = format!("{api}/subscriptions");
    let stranger = system.say(subscriptions.clone(), order(Uuid::new_v4(), key)).await;
    let unknown = system.say(subscriptions.clone(), order(user, Uuid::new_v4())).await;
    assert_eq!(stranger, unknown);
    assert_eq!(stranger.0, 422);
    assert!(stranger.1.contains("must be a key of this user"), "{}", stranger.1);
    assert_eq!(system.charges().await.requests, 0);
    assert_eq!(system.one::<i64>("select count(*) from billing.subscriptions").await, 0);
    assert_eq!(system.post(subscriptions, order(user, key)).await, Some(200));
    assert_eq!(system.charges().await.charges, 1);
}

/// U9: a key that is issued again is the same key: one event. Its id is not another user's, and does not come back once it was deleted.
#[tokio::test]
async fn a_key_that_is_issued_twice_has_one_event() {
    let world = World::asleep().await;
    let (key, user) = (Uuid::new_v4(), Uuid::new_v4());
    for _ in 0..2 {
        world.service.issue_key(key, user).await.expect("issued");
    }
    let taken = async |user: Uuid| {
        let fault = world.service.issue_key(key, user).await.expect_err("it is taken");
        assert_eq!(fault.downcast_ref(), Some(&Refusal::KeyIdTaken), "{fault}");
    };
    taken(Uuid::new_v4()).await;
    assert!(world.delete_key(key).await);
    taken(user).await;
    let issued = "select payload ->> 'user_id' from events.event where event_type = 'BillingKeyIssued'";
    assert_eq!(world.all::<String>(issued).await, [user.to_string()]);
}

/// U9: a key is deleted while its user subscribes with it. If the deletion comes first, there is no subscription; if it comes second, it
/// waits, and Billing sees the subscription and ends it. Nothing is left that is charged every month.
#[tokio::test]
async fn a_key_that_is_deleted_while_it_is_used_pays_for_nothing() {
    let world = World::new().await;
    let (key, user) = (Uuid::new_v4(), Uuid::new_v4());
    world.service.issue_key(key, user).await.expect("issued");
    let order = world.order(Uuid::new_v4(), Some(key)).await;

    let mut tx = world.db.begin().await.expect("a transaction");
    let unit = &mut UnitOfWork::Command(&world.outbox, &mut tx);
    unit.open(&order, Uuid::new_v4(), world.began).await.expect("opened");
    let service = world.service.clone();
    let deletion = tokio::spawn(async move { service.delete_key(key, user).await });
    until("the deletion waits, or has ended", async || {
        deletion.is_finished() || world.one::<i64>(WAITING).await == 1
    })
    .await;
    assert!(!deletion.is_finished(), "it must wait: Billing would see no subscription");
    tx.commit().await.expect("committed");
    assert!(deletion.await.expect("it ends").expect("deleted"));
    world.quiet().await;
    assert_eq!(world.subscription(order.subscription_id).await.0, "canceled");

    let key = Uuid::new_v4();
    world.service.issue_key(key, user).await.expect("issued");
    let order = world.order(Uuid::new_v4(), Some(key)).await;
    let mut tx = world.db.begin().await.expect("a transaction");
    let unit = &mut UnitOfWork::Command(&world.outbox, &mut tx);
    assert!(commands::delete_key(key, user, unit).await.expect("deleted"));
    let (service, began) = (world.service.clone(), world.began);
    let opening = tokio::spawn(async move { service.open(&order, Uuid::new_v4(), began).await });
    until("the opening waits, or has ended", async || {
        opening.is_finished() || world.one::<i64>(WAITING).await == 1
    })
    .await;
    tx.commit().await.expect("committed");
    let fault = opening.await.expect("it ends").expect_err("the key is gone");
    assert_eq!(fault.downcast_ref(), Some(&Refusal::NoSuchKey), "{fault}");
}
