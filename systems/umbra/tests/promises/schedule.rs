//! When a failed event is tried again, and the values of the document.

use std::path::Path;
use std::time::Duration;

use postrider::Uuid;
use postrider::store::Inspect;
use postrider_testkit::{Folder, until};
use serde_json::json;
use umbra::adapters::delivery::Delivery;
use umbra::adapters::discord::Discord;
use umbra::adapters::postgres::relay::relay;
use umbra::contracts::*;

use crate::running::System;
use crate::world::{World, pair};

/// U11, U12: after 1, 5 and 15 minutes, then every hour; dead after ten attempts, and only an operator brings it back.
#[tokio::test]
async fn ten_attempts_by_the_schedule_then_dead_until_requeued() {
    let world = World::new().await;
    world.plant("licensing.licenses", "true").await;
    let guild_id = Uuid::new_v4();
    let event = world.publish(BotInstalled { guild_id, installer_user_id: Uuid::new_v4() }).await;
    let mut pauses = Vec::new();
    for attempt in 1..=9 {
        let failed = format!(
            "select coalesce(max(retry_count), 0) = {attempt} from events.outbox
             where event_type = 'BotInstalled' and last_error like '%planted%' and published_at is null"
        );
        until("the attempt has failed", async || world.one(&failed).await).await;
        let pause =
            "select round(extract(epoch from next_at - last_attempt_at) / 60)::bigint from events.delivery";
        pauses.push(world.one::<i64>(pause).await);
        world.make_due().await;
    }
    assert_eq!(pauses, [1, 5, 15, 60, 60, 60, 60, 60, 60], "in minutes");
    until("it is dead", async || world.state(event, "licensing").await == "dead").await;
    let row =
        "select retry_count || ' ' || (published_at is null)::text || ' ' || (next_retry_at is null)::text
        from events.outbox where event_type = 'BotInstalled'";
    assert_eq!(world.one::<String>(row).await, "10 true true");

    world.unplant("licensing.licenses").await;
    let list = world.postrider_json(&["dead", "list"]);
    assert!(list.to_string().contains(&event.to_string()), "{list}");
    let requeue =
        ["dead", "requeue", &event.to_string(), "--yes", "--who", "ada", "--why", "the table is back"];
    assert_eq!(world.postrider(&requeue).0, Some(0));
    world.quiet().await;
    assert_eq!(world.state(event, "licensing").await, "done");
    assert_eq!(world.license(guild_id).await, pair("free", "active"));
    assert!(world.postrider(&["audit"]).1.contains("the table is back"));
}

/// U12: an operator may also discard a dead event; then its key goes on without it.
#[tokio::test]
async fn a_dead_event_stays_until_it_is_discarded() {
    let world = World::new().await;
    let broken = world.one::<Uuid>(
        "select events.record('billing', 'PlanUpgraded', 'subscription', gen_random_uuid()::text, '{}')",
    );
    let event = broken.await;
    until("it is dead", async || world.state(event, "licensing").await == "dead").await;
    world.run("update events.settled_batch set settled_at = settled_at - interval '90 days'").await;
    world.run("update events.delivery set last_attempt_at = last_attempt_at - interval '90 days'").await;
    assert_eq!(world.postrider(&["archive", "--yes"]).0, Some(0));
    assert_eq!(world.state(event, "licensing").await, "dead", "retention does not take it");
    let discard = ["dead", "discard", &event.to_string(), "--yes", "--why", "the plan is gone"];
    assert_eq!(world.postrider(&discard).0, Some(0));
    assert_eq!(world.state(event, "licensing").await, "discarded");
}

/// U3, U11: polling every 2 s, batches of 50, one handler at a time, one lane, order by aggregate: by the file of the worker.
#[tokio::test]
async fn the_relay_has_the_values_of_the_document() {
    let world = World::new().await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("worker.toml");
    let delivery = Delivery::read(Some(&file)).expect("the file");
    assert_eq!((delivery.poll_interval, delivery.batch), (Duration::from_secs(2), 50));
    let store = world.outbox.store().await.expect("a store");
    until("the relay is known", async || !store.relays().await.expect("relays").is_empty()).await;
    let relays = store.relays().await.expect("relays");
    for subscription in ["licensing", "billing", "notification", "audit"] {
        let run = relays[0].run(subscription).expect("it runs");
        let setting = |name: &str| run.settings.get(name).map(String::as_str).unwrap_or_default();
        let found = ["batch", "concurrency", "lanes", "order"].map(setting);
        assert_eq!(found, ["50", "1", "1", "key"], "{subscription}");
        assert_eq!(setting("retry"), "after 60s, 300s, 900s, 3600s, 10 attempts", "{subscription}");
    }
    // An idle relay has itself woken until its next poll: never for longer than the interval.
    let left =
        "select last_value - (extract(epoch from clock_timestamp()) * 1000000)::bigint from events.bell";
    until("the relay sleeps", async || world.one::<i64>(left).await > 0).await;
    let left = world.one::<i64>(left).await;
    assert!(left <= 2_100_000, "it sleeps for {left} µs");
}

/// The sizes of the batches in which a subscription was delivered, in order.
async fn batches(world: &World, subscription: &str) -> String {
    let sizes = format!(
        "select string_agg(count::text, ' ' order by last_id) from events.settled_batch
         where count > 0 and subscription = '{subscription}'"
    );
    world.one(&sizes).await
}

/// U3: 120 events that wait are taken fifty at a time.
#[tokio::test]
async fn events_are_taken_fifty_at_a_time() {
    let mut world = World::asleep().await;
    world.run(
        "select events.record('member', 'MemberRestored', 'member', gen_random_uuid()::text, '{}') from generate_series(1, 120)",
    )
    .await;
    world.wake().await;
    let audited = "select count(*) from audit.events";
    until("they are delivered", async || world.one::<i64>(audited).await == 120).await;
    world.quiet().await;
    assert_eq!(batches(&world, "audit").await, "50 50 20");
}

/// U3: all of these are settings: another file makes another relay.
#[tokio::test]
async fn another_file_makes_another_relay() {
    let world = World::asleep().await;
    let folder = Folder::new();
    let usual = include_str!("../../worker.toml");
    let other = usual.replace("batch = 50", "batch = 7").replace("concurrency = 1", "concurrency = 3");
    let other = other.replace("\"2s\"", "\"9s\"").replace("max_attempts = 10", "max_attempts = 2");
    let delivery = Delivery::read(Some(&folder.file("worker.toml", &other))).expect("the file");
    assert_eq!(delivery.poll_interval, Duration::from_secs(9));
    let relay = relay(&world.outbox, Discord::new("http://127.0.0.1:9"), &delivery).expect("settings");
    world.run(
        "select events.record('member', 'MemberRestored', 'member', gen_random_uuid()::text, '{}') from generate_series(1, 20)",
    )
    .await;
    let running = relay.start().await.expect("a relay");
    until("they are delivered", async || world.one::<i64>("select count(*) from audit.events").await == 20)
        .await;
    world.quiet().await;
    assert_eq!(batches(&world, "audit").await, "7 7 6");
    let store = world.outbox.store().await.expect("a store");
    until("the relay is known", async || !store.relays().await.expect("relays").is_empty()).await;
    let relays = store.relays().await.expect("relays");
    for subscription in ["licensing", "billing", "notification", "audit"] {
        let run = relays[0].run(subscription).expect("it runs");
        let found = ["batch", "concurrency", "retry"].map(|name| run.settings.get(name).cloned());
        let wanted = ["7", "3", "after 60s, 300s, 900s, 3600s, 2 attempts"].map(|text| Some(text.to_owned()));
        assert_eq!(found, wanted, "{subscription}");
    }
    running.stop().await.expect("stopped");
}

/// U3: `bell = false` with `poll_interval = "2s"` is the document to the letter: the worker listens to nobody, and finds events by looking.
/// With the bell it listens.
#[tokio::test]
async fn without_the_bell_there_is_polling_alone() {
    let system = System::new().await;
    let folder = Folder::new();
    let usual = include_str!("../../worker.toml");
    assert!(usual.contains("bell = true") && usual.contains("poll_interval = \"2s\""), "{usual}");
    let quiet = folder.file("worker.toml", &usual.replace("bell = true", "bell = false"));
    let quiet = quiet.display().to_string();
    let (_bot, bot) = system.start("bot").await;
    let installed = json!({ "guild_id": Uuid::new_v4(), "installer_user_id": Uuid::new_v4() });
    let installed = json!({ "t": "GUILD_CREATE", "d": installed });
    let listening = "select count(*) from pg_stat_activity
        where datname = current_database() and query ilike 'listen %'";
    let (worker, _) = system.start_with("worker", &[("UMBRA_WORKER", quiet.as_str())]).await;
    for _ in 0..2 {
        assert_eq!(system.post(format!("{bot}/gateway"), installed.clone()).await, Some(200));
        system.quiet().await;
    }
    assert_eq!(system.one::<i64>(listening).await, 0, "nobody is woken");
    assert_eq!(worker.stop().await, Some(0));
    let (_worker, _) = system.start("worker").await;
    until("it listens", async || system.one::<i64>(listening).await == 1).await;
}
