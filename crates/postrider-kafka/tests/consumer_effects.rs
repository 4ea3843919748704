//! Effects that happen once, on a real broker and a real database: inbox, kills, rebalances.

#[path = "support/database.rs"]
mod database;
mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use database::{Database, apply};
use postrider::postgres::{Outbox, Tx};
use postrider::testing;
use postrider::{Failure, Received};
use postrider_kafka::{Consumer, DeadLetters, RunningConsumer};
use support::{
    Feed, Positions, Seen, brisk, committed, consumer, process_of_test, records, topics, until, until_holding,
};
use tokio::task::JoinHandle;

/// A version that a doomed consumer never gets beyond, and one that takes it a while.
const STUCK: i64 = -1;
const SLOW: i64 = -2;

/// A consumer whose handler writes its effect in its transaction.
fn applying(database: &Database, brokers: &str, group: &str, topic: &str, doomed: bool) -> Consumer<Outbox> {
    let schema = database.schema.clone();
    brisk(Consumer::new(&database.outbox, brokers, group).topics([topic])).on_type(
        "Counted",
        move |event: Received<i64>, mut tx: Tx| {
            let schema = schema.clone();
            async move {
                match *event {
                    STUCK if doomed => std::future::pending().await,
                    SLOW if doomed => tokio::time::sleep(Duration::from_secs(1)).await,
                    _ => {}
                }
                apply(&schema, &event, &mut tx).await
            }
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

/// C17.
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_that_refuses_is_tried_again_and_then_a_dead_letter() {
    let brokers = topics(&[("inbox", 1)]);
    let database = Database::new().await;
    let poison = postrider::CloudEvents::event_id("/feed", "a/2");
    let refuse = format!(
        "create function {{schema}}.refuse_one() returns trigger language plpgsql as $$
         begin
             if new.event_id = '{poison}' then raise exception 'the inbox is broken'; end if;
             return new;
         end $$;
         create trigger refuse before insert on {{schema}}.inbox for each row execute function {{schema}}.refuse_one()"
    );
    database.run(&refuse).await;
    let mut feed = Feed::new(&brokers, "inbox");
    for version in 1..=3 {
        feed.event("a", version);
    }
    feed.event("b", 1);
    feed.flush();
    let running = applying(&database, &brokers, "inbox", "inbox", false).start().await.expect("started");
    let letters = records(&brokers, "inbox.DLT", 1);
    until("the others are handled", async || database.effects().await.len() == 3).await;
    assert_eq!((letters.len(), letters[0].value.as_str()), (1, "2"));
    let header = |name: &str| letters[0].headers.get(name).cloned().unwrap_or_default();
    assert_eq!(
        (header("postrider_attempts").as_str(), header("postrider_error_code").as_str()),
        ("4", "database")
    );
    assert!(header("postrider_error").contains("the inbox is broken"), "{}", header("postrider_error"));
    until("the partition goes on", async || committed(&brokers, "inbox", "inbox", 1) == [4]).await;
    database.run("drop trigger refuse on {schema}.inbox").await;
    let put_back = DeadLetters::new(&brokers, "inbox").requeue("inbox").await.expect("put back");
    until("it is handled at last", async || database.effects().await.len() == 4).await;
    running.stop().await.expect("stopped");
    let marks = database.number("select count(*) from {schema}.inbox where consumer = 'inbox'").await;
    assert_eq!((put_back, marks), (1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_cut_in_the_middle_lose_nothing_and_repeat_no_effect() {
    let brokers = topics(&[("away", 2)]);
    let database = Database::new().await;
    let mut feed = Feed::new(&brokers, "away");
    let running = applying(&database, &brokers, "away", "away", false).start().await.expect("started");
    until_holding(&running, 2).await;
    for version in 1..=40 {
        for key in 0..10 {
            feed.event(&format!("key-{key}"), version);
        }
        if version % 10 == 0 {
            // Every connection of this schema's pool is cut, in the middle of whatever it does.
            let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                       where pid <> pg_backend_pid() and query like '%{schema}%'";
            feed.flush();
            database.number(cut).await;
        }
    }
    feed.flush();
    until("all is handled", async || database.effects().await.len() >= 400).await;
    running.stop().await.expect("stopped");
    assert_once_in_order(&database.effects().await, 10, 40);
    assert_eq!(committed(&brokers, "away", "away", 2).iter().sum::<i64>(), 400);
}

/// The process that is killed: not a test of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is started by the test that kills it"]
async fn the_consumer_that_is_killed() {
    let Ok(task) = std::env::var("POSTRIDER_TEST_KILLED") else { return };
    let (brokers, schema) = task.split_once(' ').expect("brokers and schema");
    let database = Database::of(schema).await;
    let _running = applying(&database, brokers, "killed", "killed", true).start().await.expect("started");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_killed_between_handling_and_commit_repeats_no_effect() {
    let brokers = topics(&[("killed", 1)]);
    let database = Database::new().await;
    let mut feed = Feed::new(&brokers, "killed");
    // While the first is handled all others arrive, and are one batch. Its first is the one that the doomed process never
    // gets beyond: nothing of it can be committed.
    feed.event("slow", SLOW);
    feed.event("stuck", STUCK);
    for version in 1..=10 {
        for key in 0..5 {
            feed.event(&format!("key-{key}"), version);
        }
    }
    feed.flush();
    let task = format!("{brokers} {}", database.schema);
    let mut child = process_of_test("the_consumer_that_is_killed", "POSTRIDER_TEST_KILLED", &task);
    until("all others are applied", async || database.effects().await.len() == 51).await;
    until("the first is committed", async || committed(&brokers, "killed", "killed", 1) == [1]).await;
    child.kill();
    let running = applying(&database, &brokers, "killed", "killed", false).start().await.expect("started");
    until("all is handled", async || database.effects().await.len() >= 52).await;
    until("all is committed", async || committed(&brokers, "killed", "killed", 1) == [52]).await;
    running.stop().await.expect("stopped");
    let effects = database.effects().await;
    let others: Vec<(String, i64)> =
        effects.iter().filter(|(key, _)| key.starts_with("key")).cloned().collect();
    assert_eq!(effects.len(), 52, "each once");
    assert_once_in_order(&others, 5, 10);
}

/// Records that keep coming, a version of every key every few milliseconds, until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<(i64, i64)>,
}

impl Load {
    fn begin(mut feed: Feed, keys: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut version = 0;
            while !told.load(Ordering::SeqCst) {
                version += 1;
                for key in 0..keys {
                    feed.event(&format!("key-{key}"), version);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            feed.flush();
            (version, feed.sent)
        });
        Self { stop, task }
    }

    /// How many versions each key has, and how many records that are.
    async fn end(self) -> (i64, i64) {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.expect("it has ended")
    }
}

/// Looks at the positions of a group for as long as it lives: none of them may ever go back.
struct Watch {
    stop: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Watch {
    fn begin(brokers: &str, group: &'static str, partitions: i32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, brokers) = (Arc::clone(&stop), brokers.to_owned());
        let task = tokio::task::spawn_blocking(move || {
            let mut positions = Positions::new(&brokers, group, group, partitions);
            let (mut last, mut moves) = (vec![-1; partitions as usize], 0);
            while !told.load(Ordering::SeqCst) {
                let now = positions.now();
                for (partition, (last, now)) in last.iter().zip(&now).enumerate() {
                    assert!(now >= last, "partition {partition} went back from {last} to {now}");
                }
                moves += usize::from(now != last);
                last = now;
            }
            moves
        });
        Self { stop, task }
    }

    /// How often a position was seen to move.
    async fn end(mut self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        (&mut self.task).await.expect("no position went back")
    }
}

/// A test that fails must not wait for who looks on.
impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Three consumers that join and leave; the one that is left.
async fn shuffle(start: impl AsyncFn() -> RunningConsumer) -> RunningConsumer {
    let first = start().await;
    until_holding(&first, 6).await;
    let second = start().await;
    until_holding(&second, 3).await;
    let third = start().await;
    until_holding(&third, 2).await;
    first.stop().await.expect("stopped");
    until_holding(&third, 3).await;
    second.stop().await.expect("stopped");
    until_holding(&third, 6).await;
    let fourth = start().await;
    until_holding(&fourth, 3).await;
    third.stop().await.expect("stopped");
    until_holding(&fourth, 6).await;
    fourth
}

#[tokio::test(flavor = "multi_thread")]
async fn rebalances_under_load_lose_nothing_and_apply_each_effect_once_and_in_order() {
    let brokers = topics(&[("shuffle", 6)]);
    let database = Database::new().await;
    let watch = Watch::begin(&brokers, "shuffle", 6);
    let load = Load::begin(Feed::new(&brokers, "shuffle"), 12);
    let last = shuffle(async || {
        applying(&database, &brokers, "shuffle", "shuffle", false).start().await.expect("started")
    })
    .await;
    let (versions, sent) = load.end().await;
    let count = "select count(*) from {schema}.effect";
    until("all is applied", async || database.number(count).await >= sent).await;
    last.stop().await.expect("stopped");
    assert_once_in_order(&database.effects().await, 12, versions);
    assert_eq!(committed(&brokers, "shuffle", "shuffle", 6).iter().sum::<i64>(), sent);
    let moves = watch.end().await;
    assert!(moves > 20, "it was looked at {moves} times while positions moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn rebalances_under_load_repeat_nothing_even_without_an_inbox() {
    let brokers = topics(&[("plain", 6)]);
    let (outbox, seen) = (testing::Outbox::new(), Seen::default());
    let watch = Watch::begin(&brokers, "plain", 6);
    let load = Load::begin(Feed::new(&brokers, "plain"), 20);
    let last = shuffle(async || {
        let handled = seen.clone();
        consumer(&outbox, &brokers, "plain", "plain")
            .records_per_poll(30)
            .on_type("Counted", move |event: Received<i64>| {
                let handled = handled.clone();
                async move {
                    tokio::time::sleep(Duration::from_millis(3)).await;
                    handled.push((event.event().key().into_owned(), *event));
                    Ok::<(), Failure>(())
                }
            })
            .start()
            .await
            .expect("started")
    })
    .await;
    let (versions, sent) = load.end().await;
    until("all is handled", async || seen.len() >= sent as usize).await;
    last.stop().await.expect("stopped");
    assert_once_in_order(&seen.all(), 20, versions);
    assert_eq!(committed(&brokers, "plain", "plain", 6).iter().sum::<i64>(), sent);
    let moves = watch.end().await;
    assert!(moves > 20, "it was looked at {moves} times while positions moved");
}

/// L15: different events with one key of the business; one whose handler fails after its change frees the key.
#[tokio::test(flavor = "multi_thread")]
async fn events_with_one_text_key_have_one_effect_per_group() {
    let brokers = topics(&[("texts", 1)]);
    let database = Database::new().await;
    let mut feed = Feed::new(&brokers, "texts");
    // The tens are the key: 11 and 12 are duplicates, and 21 is none.
    for version in [11, 12, 21, 13] {
        feed.event("a", version);
    }
    feed.flush();
    for (group, effects) in [("text-ledger", 2), ("text-report", 4)] {
        let schema = database.schema.clone();
        let handler = move |event: Received<i64>, mut tx: Tx| {
            let schema = schema.clone();
            async move {
                if tx.first_time_by_key(&format!("a:{}", *event / 10)).await? {
                    apply(&schema, &event, &mut tx).await?;
                }
                if event.attempt() == 1 { Err(Failure::retry("after its change")) } else { Ok(()) }
            }
        };
        let consumer = Consumer::new(&database.outbox, &brokers, group).topics(["texts"]);
        let running = brisk(consumer).on_type("Counted", handler).start().await.expect("started");
        until("all are handled", async || committed(&brokers, group, "texts", 1) == [4]).await;
        running.stop().await.expect("stopped");
        assert_eq!(database.effects().await.len(), effects, "{group}: one for each key");
    }
    let effects: Vec<i64> = database.effects().await.into_iter().map(|(_, version)| version).collect();
    assert_eq!(effects, [11, 21, 11, 21]);
}
