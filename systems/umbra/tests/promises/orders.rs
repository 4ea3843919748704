//! Orders of subscriptions: a guild has one at a time, an id means one order, and what is due is charged by several at once.

use postrider::Uuid;
use postrider_testkit::until;
use serde_json::{Value, json};
use umbra::adapters::sqlite;
use umbra::adapters::toss::Toss;
use umbra::billing::charging::{AT_ONCE, Accounts, charge_due};
use umbra::billing::{Order, Refusal};
use umbra::contracts::*;
use umbra::stubs;
use umbra::stubs::toss::Control;

use crate::running::System;
use crate::world::{World, serve};

fn body(guild: GuildId, user: UserId) -> Value {
    json!({ "subscription_id": Uuid::new_v4(), "guild_id": guild, "user_id": user, "plan_code": "pro" })
}

/// U9: a double click, with an id each, is one subscription and one charge; the other is told so. What has ended is in nobody's way.
#[tokio::test]
async fn two_orders_for_a_guild_at_once_are_one_charge() {
    let system = System::new().await;
    let (_api, api) = system.start("api").await;
    let subscriptions = format!("{api}/subscriptions");
    let (guild, user) = (Uuid::new_v4(), Uuid::new_v4());
    system.hold(&system.toss, true).await;
    let (one, other) = (body(guild, user), body(guild, user));
    let (mut clicks, ()) = tokio::join!(
        async {
            let clicks = tokio::join!(
                system.say(subscriptions.clone(), one.clone()),
                system.say(subscriptions.clone(), other.clone())
            );
            [clicks.0, clicks.1]
        },
        async {
            until("the gateway was asked", async || system.charges().await.requests > 0).await;
            system.hold(&system.toss, false).await;
        }
    );
    clicks.sort();
    assert_eq!((clicks[0].0, clicks[1].0), (200, 409), "{clicks:?}");
    assert!(clicks[1].1.contains("the guild has a subscription"), "{}", clicks[1].1);
    let charges = system.charges().await;
    assert_eq!((charges.charges, charges.requests), (1, 1));
    assert_eq!(system.one::<i64>("select count(*) from billing.subscriptions").await, 1);
    assert_eq!(system.one::<i64>("select count(*) from billing.billing_keys").await, 1);

    let id: Uuid = system.one("select id from billing.subscriptions").await;
    let later = json!({ "cancel_at_period_end": true });
    assert_eq!(system.post(format!("{subscriptions}/{id}/cancel"), later).await, Some(200));
    assert_eq!(
        system.post(subscriptions.clone(), body(guild, user)).await,
        Some(409),
        "it goes on until then"
    );
    let at_once = json!({ "cancel_at_period_end": false });
    assert_eq!(system.post(format!("{subscriptions}/{id}/cancel"), at_once).await, Some(200));
    assert_eq!(system.post(subscriptions, body(guild, user)).await, Some(200));
    assert_eq!(system.charges().await.charges, 2);
}

/// U9: the same on SQLite.
#[tokio::test]
async fn a_guild_has_one_subscription_in_a_file_too() {
    let folder = postrider_testkit::Folder::new();
    let url = format!("sqlite:{}", folder.path().join("umbra.db").display());
    let pool = sqlite::connect(&url).await.expect("a file");
    let outbox = sqlite::migrate(&pool).await.expect("tables");
    let service = sqlite::command_service::CommandService::new(&outbox);
    let (guild_id, user_id) = (Uuid::new_v4(), Uuid::new_v4());
    let order = || Order {
        subscription_id: Uuid::new_v4(),
        guild_id,
        user_id,
        billing_key_id: None,
        plan_code: "pro".to_owned(),
    };
    let first = order();
    for _ in 0..2 {
        service.open(&first, Uuid::new_v4(), 0).await.expect("opened, and known");
    }
    let fault = service.open(&order(), Uuid::new_v4(), 0).await.expect_err("it has one");
    assert_eq!(fault.downcast_ref(), Some(&Refusal::GuildSubscribed), "{fault}");
    assert!(service.cancel(first.subscription_id, false).await.expect("canceled"));
    service.open(&order(), Uuid::new_v4(), 0).await.expect("opened");
}

/// U9: an id means one order. Asked again, also twice at once, it is the same one; with another user, guild, plan or key it is refused.
#[tokio::test]
async fn a_known_id_with_another_order_is_refused() {
    let system = System::new().await;
    let (_api, api) = system.start("api").await;
    let subscriptions = format!("{api}/subscriptions");
    let mut order = body(Uuid::new_v4(), Uuid::new_v4());
    let key = Uuid::new_v4();
    let issue = json!({ "billing_key_id": key, "user_id": order["user_id"] });
    assert_eq!(system.post(format!("{api}/billing-keys"), issue).await, Some(200));
    order["billing_key_id"] = json!(key);
    let ask = |order: &Value| system.say(subscriptions.clone(), order.clone());
    let (one, other) = tokio::join!(ask(&order), ask(&order));
    assert_eq!((one.0, other.0), (200, 200), "{one:?} {other:?}");
    for (field, value) in [
        ("guild_id", json!(Uuid::new_v4())),
        ("user_id", json!(Uuid::new_v4())),
        ("billing_key_id", json!(Uuid::new_v4())),
        ("plan_code", json!("team")),
    ] {
        let mut changed = order.clone();
        changed[field] = value;
        let (status, text) = ask(&changed).await;
        assert_eq!(status, 409, "{field}: {text}");
        assert!(text.contains("subscription_id is taken by another order"), "{text}");
    }
    // What was ordered is what counts, also after the plan was changed.
    let id = order["subscription_id"].as_str().expect("an id").to_owned();
    let team = json!({ "plan_code": "team" });
    assert_eq!(system.post(format!("{subscriptions}/{id}/plan"), team).await, Some(200));
    assert_eq!(ask(&order).await.0, 200);
    assert_eq!(system.charges().await.charges, 1);
    assert_eq!(system.one::<i64>("select count(*) from billing.billing_keys").await, 1);
}

/// U9: asked twice at once without a key, an order has one key.
#[tokio::test]
async fn the_same_order_twice_at_once_has_one_key() {
    let world = World::asleep().await;
    let order = world.order(Uuid::new_v4(), None).await;
    let (one, other) = tokio::join!(
        world.service.open(&order, Uuid::new_v4(), world.began),
        world.service.open(&order, Uuid::new_v4(), world.began)
    );
    one.and(other).expect("opened once, and known");
    assert_eq!(world.one::<i64>("select count(*) from billing.billing_keys").await, 1);
    assert_eq!(world.one::<i64>("select count(*) from billing.payment_attempts").await, 1);
}

/// U9, U19: a gateway that hangs is asked for several charges at a time, and for no more than that; each is made once.
#[tokio::test]
async fn what_is_due_is_charged_by_several_at_once() {
    let world = World::asleep().await;
    let stub = stubs::toss::Toss::default();
    let toss = Toss::new(&serve(stub.clone().router()).await);
    let due = 3 * AT_ONCE as u64;
    for _ in 0..due {
        let order = world.order(Uuid::new_v4(), None).await;
        world.service.open(&order, Uuid::new_v4(), world.began).await.expect("opened");
    }
    stub.control(&Control { hold: Some(true), ..Control::default() });
    let (service, now) = (world.service.clone(), world.began + umbra::billing::charging::GRACE);
    let charging = tokio::spawn(async move { charge_due(now, &service, &toss).await });
    until("several are under way", async || stub.figures().charges == AT_ONCE as u64).await;
    stub.control(&Control { hold: Some(false), ..Control::default() });
    assert_eq!(charging.await.expect("it ends").expect("charged"), 3 * AT_ONCE);
    let figures = stub.figures();
    assert_eq!((figures.charges, figures.requests), (due, due), "each once");
    assert_eq!(figures.most_at_once, AT_ONCE as u64);
    assert_eq!(world.count("SubscriptionStarted").await, 3 * AT_ONCE as i64);
}

/// U9: who cancels at the end of the period twice is told once; and who cancels at once after that is told that.
#[tokio::test]
async fn a_cancellation_that_is_repeated_is_told_once() {
    let world = World::new().await;
    let subscription = world.subscribed(Uuid::new_v4()).await;
    for _ in 0..2 {
        assert!(world.service.cancel(subscription, true).await.expect("canceled"));
    }
    world.quiet().await;
    assert_eq!(world.count("SubscriptionCanceled").await, 1);
    assert_eq!(world.messages().await, ["Your subscription is canceled", "pro activated"]);
    assert!(world.service.cancel(subscription, false).await.expect("canceled"));
    assert_eq!(world.count("SubscriptionCanceled").await, 2);
}

/// U9: a paid subscription is not changed to the plan that costs nothing: it would be charged 0 every period.
#[tokio::test]
async fn the_free_plan_is_not_subscribed_to() {
    let world = World::new().await;
    let subscription = world.subscribed(Uuid::new_v4()).await;
    for plan in ["free", "gold", ""] {
        let fault = world.service.change_plan(subscription, plan).await.expect_err("refused");
        assert_eq!(fault.downcast_ref(), Some(&Refusal::NotPaidFor), "{plan}: {fault}");
    }
    assert_eq!(world.count("PlanDowngraded").await, 0);
}

/// U9: a key is deleted by its user alone. Anybody else hears what they hear of a key that does not exist.
#[tokio::test]
async fn a_key_is_deleted_by_its_user_alone() {
    let world = World::asleep().await;
    let stub = stubs::toss::Toss::default();
    let toss = Toss::new(&serve(stub.router()).await);
    let api = serve(umbra::adapters::postgres::api::router(&world.outbox, toss)).await;
    let (key, user) = (Uuid::new_v4(), Uuid::new_v4());
    world.service.issue_key(key, user).await.expect("issued");
    let client = story::process::client();
    let delete = async |key: Uuid, query: String| {
        let answer =
            client.delete(format!("{api}/billing-keys/{key}{query}")).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    };
    let stranger = delete(key, format!("?user_id={}", Uuid::new_v4())).await;
    assert_eq!(stranger, delete(Uuid::new_v4(), format!("?user_id={user}")).await);
    assert_eq!(stranger.0, 404);
    assert_eq!(delete(key, String::new()).await.0, 400, "nobody in particular");
    assert_eq!(world.count("BillingKeyDeleted").await, 0);
    assert_eq!(delete(key, format!("?user_id={user}")).await.0, 200);
    assert_eq!(world.count("BillingKeyDeleted").await, 1);
}
