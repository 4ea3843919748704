//! The consumer's inbox on MariaDB or MySQL: effects that happen once, or not at all, on a real broker and a real database.

#[path = "support/database_mysql.rs"]
mod database;
mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use database::{Database, apply};
use postrider::mysql::{Outbox, Tx};
use postrider::{Failure, Received};
use postrider_kafka::Consumer;
use support::{Feed, brisk, committed, process_of_test, records, topics, until};

/// A version that a doomed consumer never gets beyond.
const STUCK: i64 = -1;
/// Versions that fail after they were applied: the first once, the second always.
const CLUMSY: i64 = 3;
const POISON: i64 = 5;

/// A consumer whose handler writes its effect in its transaction.
fn applying(database: &Database, brokers: &str, topic: &str, doomed: bool) -> Consumer<Outbox> {
    brisk(Consumer::new(&database.outbox, brokers, topic).topics([topic])).on_type(
        "Counted",
        move |event: Received<i64>, mut tx: Tx| async move {
            if doomed && *event == STUCK {
                std::future::pending::<()>().await;
            }
            apply(&event, &mut tx).await
        },
    )
}

/// Every version of every key, once and in order.
fn assert_once_in_order(effects: &[(String, i64)], keys: usize, versions: i64) {
    let mut by_key: HashMap<&str, Vec<i64>> = HashMap::new();
    for (key, version) in effects {
        by_key.entry(key).or_default().push(*version);
    }
    assert_eq!(by_key.len(), keys);
    for (key, seen) in by_key {
        assert_eq!(seen, (1..=versions).collect::<Vec<i64>>(), "{key}");
    }
}

/// The process that is killed: not a test of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is started by the test that kills it"]
async fn the_consumer_that_is_killed() {
    let Ok(task) = std::env::var("POSTRIDER_TEST_KILLED") else { return };
    let (brokers, name) = task.split_once(' ').expect("brokers and database");
    let database = Database::of(name).await;
    let _running = applying(&database, brokers, "killed", true).start().await.expect("started");
    std::future::pending::<()>().await;
}

/// U4, C11: what was handled and not committed comes again, as does what was sent twice; its effect does not.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_again_after_a_kill_or_twice_has_its_effect_once() {
    let brokers = topics(&[("killed", 1)]);
    let database = Database::new().await;
    let mut feed = Feed::new(&brokers, "killed");
    // The doomed process never gets beyond the first: nothing behind it can be committed.
    feed.event("stuck", STUCK);
    for _ in 0..2 {
        for version in 1..=10 {
            for key in 0..5 {
                feed.event(&format!("key-{key}"), version);
            }
        }
    }
    feed.flush();
    let task = format!("{brokers} {}", database.name);
    let mut child = process_of_test("the_consumer_that_is_killed", "POSTRIDER_TEST_KILLED", &task);
    until("all others are applied", async || database.effects().await.len() == 50).await;
    child.kill();
    assert_eq!(committed(&brokers, "killed", "killed", 1), [-1], "nothing is committed");
    let running = applying(&database, &brokers, "killed", false).start().await.expect("started");
    until("all is committed", async || committed(&brokers, "killed", "killed", 1) == [101]).await;
    running.stop().await.expect("stopped");
    let mut effects = database.effects().await;
    effects.retain(|(key, _)| key != "stuck");
    assert_once_in_order(&effects, 5, 10);
    assert_eq!(database.count("effect").await, 51, "each once");
    assert_eq!(database.count("postrider_inbox").await, 51);
}

/// A handler that fails has changed nothing: neither what it wrote, nor what it recorded, nor its mark stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_fails_leaves_neither_its_effect_nor_its_mark() {
    let brokers = topics(&[("clumsy", 1)]);
    let database = Database::new().await;
    let tries = Arc::new(AtomicU32::new(0));
    let mut feed = Feed::new(&brokers, "clumsy");
    for version in 1..=6 {
        feed.event("a", version);
    }
    feed.flush();
    let consumer = brisk(Consumer::new(&database.outbox, &brokers, "clumsy").topics(["clumsy"]));
    let running = consumer.on_type("Counted", move |event: Received<i64>, mut tx: Tx| {
        let tries = Arc::clone(&tries);
        async move {
            apply(&event, &mut tx).await?;
            tx.record(&postrider::NewEvent::of("follow-ups", "Applied", "A", "a", &*event)?).await?;
            match *event {
                CLUMSY if tries.fetch_add(1, Ordering::SeqCst) == 0 => Err(Failure::retry("once")),
                POISON => Err(Failure::retry("always")),
                _ => Ok(()),
            }
        }
    });
    let running = running.start().await.expect("started");
    let letters = records(&brokers, "clumsy.DLT", 1);
    until("all is committed", async || committed(&brokers, "clumsy", "clumsy", 1) == [6]).await;
    running.stop().await.expect("stopped");
    assert_eq!((letters.len(), letters[0].value.as_str()), (1, "5"));
    let applied: Vec<i64> = database.effects().await.into_iter().map(|(_, version)| version).collect();
    assert_eq!(applied, [1, 2, 3, 4, 6], "in order, each once, and nothing of what failed");
    assert_eq!(database.count("postrider_inbox").await, 5);
    assert_eq!(database.count("postrider_event").await, 5, "what follows is recorded with the effect");
}

/// T9: many effects share a commit, until one of them fails; then each has its own.
#[tokio::test(flavor = "multi_thread")]
async fn effects_share_a_commit_until_one_of_them_fails() {
    let brokers = topics(&[("together", 1)]);
    let database = Database::new().await;
    let mut feed = Feed::new(&brokers, "together");
    for version in 1..=200 {
        feed.event("a", version);
    }
    feed.flush();
    let consumer = brisk(Consumer::new(&database.outbox, &brokers, "together").topics(["together"]));
    let running =
        consumer.max_tx_batch(50).on_type("Counted", |event: Received<i64>, mut tx: Tx| async move {
            apply(&event, &mut tx).await?;
            if *event == POISON { Err(Failure::reject("never")) } else { Ok(()) }
        });
    let running = running.start().await.expect("started");
    until("all is committed", async || committed(&brokers, "together", "together", 1) == [200]).await;
    running.stop().await.expect("stopped");
    let applied: Vec<i64> = database.effects().await.into_iter().map(|(_, version)| version).collect();
    let wanted: Vec<i64> = (1..=200).filter(|version| *version != POISON).collect();
    assert_eq!(applied, wanted, "in order, each once, and nothing of what failed");
    assert_eq!(records(&brokers, "together.DLT", 1).len(), 1);
    assert_eq!(database.count("postrider_inbox").await, 199);
    // What one statement has marked has one time.
    let marked = database.count("(select distinct handled_at from postrider_inbox) as marked").await;
    assert!(marked < 120, "{marked} transactions for 199 effects");
}
