//! How events are delivered: to whom, in which order, and what a failure holds up.

use postrider::Uuid;
use postrider_testkit::until;
use umbra::adapters::postgres::unit::{UnitOfWork, event_of};
use umbra::billing::{self, Order, Subscriptions};
use umbra::contracts::*;
use umbra::stubs::discord::Control;

use crate::world::{World, pair};

/// U1: the subscription is active and its event is there, or neither.
#[tokio::test]
async fn a_rollback_leaves_neither_the_change_nor_its_event() {
    let world = World::asleep().await;
    let (subscription_id, attempt) = (Uuid::new_v4(), Uuid::new_v4());
    let (guild_id, user_id) = (Uuid::new_v4(), Uuid::new_v4());
    let order = Order { subscription_id, guild_id, user_id, billing_key_id: None, plan_code: "pro".into() };
    let mut tx = world.db.begin().await.expect("a transaction");
    UnitOfWork::Command(&world.outbox, &mut tx).open(&order, attempt, 0).await.expect("opened");
    tx.commit().await.expect("committed");

    let mut tx = world.db.begin().await.expect("a transaction");
    let unit = &mut UnitOfWork::Command(&world.outbox, &mut tx);
    billing::settle(attempt, true, 0, unit).await.expect("settled");
    tx.rollback().await.expect("rolled back");
    assert_eq!(world.subscription(subscription_id).await.0, "pending");
    assert_eq!(world.count("SubscriptionStarted").await, 0);

    // The other way round: an event that can't be recorded takes the change with it.
    world.plant("events.event", "new.event_type = 'SubscriptionStarted'").await;
    use umbra::billing::charging::Accounts;
    world.service.settle(attempt, true, 0).await.expect_err("the event is refused");
    assert_eq!(world.subscription(subscription_id).await.0, "pending");
    world.unplant("events.event").await;

    world.settle(attempt, true, 0).await;
    assert_eq!(world.subscription(subscription_id).await.0, "active");
    assert_eq!(world.count("SubscriptionStarted").await, 1);
}

/// U16: what a subscriber publishes is in the outbox with its change, or not at all; and it says what caused it.
#[tokio::test]
async fn a_follow_up_is_recorded_with_the_change_of_its_handler() {
    let world = World::new().await;
    world.plant("events.event", "new.event_type = 'LicenseGranted'").await;
    let guild_id = Uuid::new_v4();
    let installed = world.publish(BotInstalled { guild_id, installer_user_id: Uuid::new_v4() }).await;
    until("the handler has failed", async || world.state(installed, "licensing").await == "retrying").await;
    assert_eq!(world.one::<i64>("select count(*) from licensing.licenses").await, 0, "rolled back with it");
    world.unplant("events.event").await;
    world.make_due().await;
    world.quiet().await;
    assert_eq!(world.license(guild_id).await, pair("free", "active"));
    let cause: String = world
        .one("select headers ->> 'causation_id' from events.event where event_type = 'LicenseGranted'")
        .await;
    assert_eq!(cause, installed.to_string());
}

/// U6: the events of an aggregate arrive in their order, also when one of them fails; others pass it.
#[tokio::test]
async fn a_failing_event_holds_its_aggregate_and_nobody_else() {
    let world = World::new().await;
    let (failing, other) = (Uuid::new_v4(), Uuid::new_v4());
    world.plant("licensing.licenses", &format!("new.guild_id = '{failing}'")).await;
    let install = |guild_id| BotInstalled { guild_id, installer_user_id: Uuid::new_v4() };
    let first = world.publish(install(failing)).await;
    until("it has failed", async || world.state(first, "licensing").await == "retrying").await;
    let second = world.publish(BotKicked { guild_id: failing }).await;
    let passing = world.publish(install(other)).await;
    until("the other one has passed", async || world.state(passing, "licensing").await == "done").await;
    let waits = world.state(second, "licensing").await;
    assert!(waits != "done", "it is {waits}, and must wait for the first");
    world.unplant("licensing.licenses").await;
    world.make_due().await;
    world.quiet().await;
    // A kick that came first would have found no licence, and the installation would have the last word.
    assert_eq!(world.license(failing).await, pair("free", "suspended"));
    assert_eq!(world.license(other).await, pair("free", "active"));
}

/// U3, U6: with one worker the whole order holds, because one handler runs at a time.
#[tokio::test]
async fn one_worker_keeps_the_whole_order() {
    let mut world = World::asleep().await;
    world.discord.control(&Control { delay: Some(2), ..Control::default() });
    let guilds: Vec<Uuid> = (0..12).map(|_| Uuid::new_v4()).collect();
    let mut told = Vec::new();
    let mut tx = world.db.begin().await.expect("a transaction");
    for number in 0..120 {
        let (guild_id, detected_pattern) = (guilds[number % guilds.len()], format!("{number}"));
        told.push(format!("URGENT: attack detected: {detected_pattern}"));
        let fact = AntiNukeTriggered { guild_id, detected_pattern, suspects: Vec::new() };
        world.outbox.record(&mut tx, &event_of(&fact).expect("JSON")).await.expect("recorded");
    }
    tx.commit().await.expect("committed");
    world.wake().await;
    world.quiet().await;
    let figures = world.discord.figures();
    let came: Vec<String> = figures.messages.into_iter().map(|message| message.text).collect();
    assert_eq!(came, told);
    assert_eq!(figures.most_at_once, 1, "one handler at a time");
}

/// U2: while the endpoint of Notification is down, the others go on; when it is back, no other handler runs again.
#[tokio::test]
async fn a_messenger_that_is_down_stops_nobody_else() {
    let world = World::new().await;
    world.discord.control(&Control { down: Some(true), ..Control::default() });
    let guild_id = Uuid::new_v4();
    let (subscription_id, plan_code) = (Uuid::new_v4(), "pro".to_owned());
    let started = world.publish(SubscriptionStarted { subscription_id, guild_id, plan_code }).await;
    for subscription in ["licensing", "audit"] {
        until("the others are done", async || world.state(started, subscription).await == "done").await;
    }
    until("it was tried again", async || world.discord.figures().requests >= 2).await;
    // What comes while it waits passes it, too.
    let other =
        world.publish(BotInstalled { guild_id: Uuid::new_v4(), installer_user_id: Uuid::new_v4() }).await;
    for subscription in ["licensing", "audit"] {
        until("the others go on", async || world.state(other, subscription).await == "done").await;
    }
    assert_ne!(world.state(started, "notification").await, "done");
    assert_eq!(world.messages().await, [""; 0]);
    let attempts =
        "select coalesce(max(attempts), 0) from events.delivery where subscription = 'notification'";
    assert_eq!(world.one::<i32>(attempts).await, 0, "an outage costs no attempt");
    let handled = |subscription: &str| {
        format!("select count(*) from events.delivery where subscription = '{subscription}'")
    };
    world.discord.control(&Control { down: Some(false), ..Control::default() });
    world.run("select events.ring()").await;
    world.quiet().await;
    assert_eq!(world.messages().await, ["pro activated"]);
    for subscription in ["licensing", "audit"] {
        assert_eq!(world.one::<i64>(&handled(subscription)).await, 0, "{subscription} was handled once");
    }
    assert_eq!(world.count("LicenseGranted").await, 2);
}

/// U2, U11: Audit is down for an hour, tries by the schedule, and then has everything; nobody else noticed.
#[tokio::test]
async fn audit_catches_up_after_an_hour() {
    let world = World::new().await;
    world.plant("audit.events", "true").await;
    let guilds: Vec<Uuid> = (0..5).map(|_| Uuid::new_v4()).collect();
    for guild_id in &guilds {
        world.publish(BotInstalled { guild_id: *guild_id, installer_user_id: Uuid::new_v4() }).await;
    }
    // 1 and 5 and 15 minutes, and the first of the hours.
    for attempts in 1..=4 {
        let waiting = format!(
            "select count(*) = 10 from events.delivery where subscription = 'audit' and attempts = {attempts}"
        );
        until("all have failed again", async || world.one(&waiting).await).await;
        if attempts < 4 {
            world.make_due().await;
        }
    }
    assert_eq!(world.one::<i64>("select count(*) from licensing.licenses").await, 5);
    world.unplant("audit.events").await;
    world.make_due().await;
    world.quiet().await;
    assert_eq!(world.one::<i64>("select count(*) from audit.events").await, 10);
    assert_eq!(world.count("LicenseGranted").await, 5, "nobody else ran again");
}

/// U7, X1: the outbox has an event from its commit on, although no worker has ever run.
#[tokio::test]
async fn an_event_is_in_the_outbox_before_any_worker_exists() {
    let world = World::asleep().await;
    world.publish(BotKicked { guild_id: Uuid::new_v4() }).await;
    assert_eq!(
        world.one::<i64>("select count(*) from events.subscription").await,
        0,
        "no worker has been here"
    );
    let rows = "select concat_ws(' ', event_type, retry_count, published_at is null, payload ? 'guild_id') from events.outbox";
    assert_eq!(world.all::<String>(rows).await, ["BotKicked 0 t t"]);
}

/// U7, X1: the envelope of the document, one row per event.
#[tokio::test]
async fn the_outbox_has_the_columns_of_the_document() {
    let world = World::new().await;
    let subscription = world.subscribed(Uuid::new_v4()).await;
    let columns = "select string_agg(column_name || ' ' || data_type, ', ' order by ordinal_position)
        from information_schema.columns where table_schema = 'events' and table_name = 'outbox'";
    assert_eq!(
        world.one::<String>(columns).await,
        "id bigint, aggregate_type text, aggregate_id text, event_type text, payload jsonb, \
         occurred_at timestamp with time zone, published_at timestamp with time zone, retry_count integer, \
         last_error text, next_retry_at timestamp with time zone"
    );
    let row = "select concat_ws(' ', aggregate_type, aggregate_id, event_type, payload ->> 'plan_code', retry_count,
            published_at >= occurred_at)
        from events.outbox where event_type = 'SubscriptionStarted'";
    let wanted = format!("subscription {subscription} SubscriptionStarted pro 0 t");
    assert_eq!(world.one::<String>(row).await, wanted);
    let ids: Vec<i64> = world.all("select id from events.outbox order by id").await;
    assert_eq!(ids.len(), 2, "one row per event, in the order of recording");
}
