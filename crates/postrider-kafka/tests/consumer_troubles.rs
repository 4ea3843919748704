//! The consumer in trouble: brokers that go away, a process that stands still, handlers that take too long.

#[path = "support/database.rs"]
mod database;
mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use database::{Database, apply};
use postrider::postgres::{self, Tx};
use postrider::testing::Outbox;
use postrider::{ErrorKind, Failure, Received};
use postrider_kafka::{Consumer, RunningConsumer};
use support::{
    Feed, Seen, brisk, broker, committed, consumer, process_of_test, topics, until, until_holding,
};
use xtask::kafka::broker::Broker;
use xtask::kafka::options::Options;

/// A consumer whose handler takes its time.
async fn slow(
    brokers: &str,
    topic: &str,
    grace: Duration,
    takes: Duration,
) -> (RunningConsumer, Seen<(String, i64)>) {
    let seen = Seen::default();
    let handled = seen.clone();
    let running = consumer(&Outbox::new(), brokers, topic, topic)
        .grace(grace)
        .property("max.poll.interval.ms", "8000")
        .on_type("Counted", move |event: Received<i64>| {
            let handled = handled.clone();
            async move {
                tokio::time::sleep(takes).await;
                handled.push((event.event().key().into_owned(), *event));
                Ok::<(), Failure>(())
            }
        })
        .start()
        .await
        .expect("started");
    (running, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_and_comes_back_loses_and_reorders_nothing() {
    let mut broker = Broker::create(&Options::default()).expect("a broker");
    broker.create_topics(&[("killed", 2), ("killed.DLT", 1)]).expect("topics");
    let brokers = broker.bootstrap();
    let mut feed = Feed::new(&brokers, "killed");
    let mut more = |from: i64| {
        for version in from..from + 20 {
            for key in 0..10 {
                feed.event(&format!("key-{key}"), version);
            }
        }
        feed.flush();
        feed.sent
    };
    more(1);
    let (running, seen) = slow(&brokers, "killed", Duration::from_secs(2), Duration::from_millis(20)).await;
    until("some are handled", async || seen.len() >= 50).await;
    broker.kill().expect("killed");
    broker.start().expect("started again");
    let sent = more(21);
    until("all is committed", async || {
        committed(&brokers, "killed", "killed", 2).iter().sum::<i64>() == sent
    })
    .await;
    let mut firsts: HashMap<String, Vec<i64>> = HashMap::new();
    for (key, version) in seen.all() {
        let versions = firsts.entry(key).or_default();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    assert_eq!(firsts.len(), 10);
    for (key, versions) in firsts {
        assert_eq!(versions, (1..=40).collect::<Vec<i64>>(), "{key}: nothing lost, in order");
    }
    // And a stop while they are away ends in time.
    broker.kill().expect("killed");
    let began = Instant::now();
    let answer = running.stop().await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    if let Err(error) = answer {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_is_started_during_an_outage_begins_when_the_brokers_are_there() {
    let mut broker = Broker::create(&Options::default()).expect("a broker");
    broker.create_topics(&[("early", 1), ("early.DLT", 1)]).expect("topics");
    let brokers = broker.bootstrap();
    broker.kill().expect("killed");
    let seen = Seen::default();
    let handled = seen.clone();
    let early = |group: &str| {
        let handled = handled.clone();
        let consumer = consumer(&Outbox::new(), &brokers, group, "early");
        consumer.on_type("Counted", move |event: Received<i64>| {
            let handled = handled.clone();
            async move {
                handled.push((event.event().key().into_owned(), *event));
                Ok::<(), Failure>(())
            }
        })
    };
    let waiting = tokio::spawn(early("patient").wait_for_brokers(Duration::MAX).start());
    let error = early("hasty").start().await.expect_err("it does not wait unless it is told to");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    let error = early("short").wait_for_brokers(Duration::from_millis(10)).start().await;
    assert_eq!(error.expect_err("not for so long").kind(), ErrorKind::Unreachable);
    assert!(!waiting.is_finished(), "it waits");
    // Who ends it meanwhile is not held up.
    let asked = early("asked").wait_for_brokers(Duration::MAX).run_until(std::future::ready(()));
    asked.await.expect("it ends");
    broker.start().expect("started again");
    let running = waiting.await.expect("no panic").expect("started");
    let mut feed = Feed::new(&brokers, "early");
    feed.event("a", 1);
    feed.flush();
    until("it is handled", async || seen.len() == 1).await;
    running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_slower_than_the_poll_interval_keeps_its_partition() {
    let brokers = topics(&[("slow", 1)]);
    let mut feed = Feed::new(&brokers, "slow");
    feed.event("a", 1);
    feed.flush();
    let (running, seen) = slow(&brokers, "slow", Duration::from_secs(2), Duration::from_secs(10)).await;
    until_holding(&running, 1).await;
    let lost = AtomicI64::new(0);
    until("it is handled", async || {
        if running.partitions().is_empty() {
            lost.fetch_add(1, Ordering::SeqCst);
        }
        seen.len() == 1
    })
    .await;
    running.stop().await.expect("stopped");
    assert_eq!((seen.len(), lost.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(committed(&brokers, "slow", "slow", 1), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_outlasts_the_grace_period_holds_up_no_rebalance_and_no_stop() {
    let brokers = topics(&[("stuck", 2)]);
    let mut feed = Feed::new(&brokers, "stuck");
    for key in 0..10 {
        feed.event(&format!("key-{key}"), 1);
    }
    feed.flush();
    let (stuck, nothing) = slow(&brokers, "stuck", Duration::from_secs(1), Duration::from_secs(3600)).await;
    until_holding(&stuck, 2).await;
    let (quick, seen) = slow(&brokers, "stuck", Duration::from_secs(1), Duration::ZERO).await;
    until_holding(&quick, 1).await;
    until("half of it is handled", async || seen.len() > 0).await;
    let began = Instant::now();
    stuck.stop().await.expect("stopped");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    until("all of it is handled", async || seen.len() == 10).await;
    quick.stop().await.expect("stopped");
    assert_eq!((nothing.len(), seen.len()), (0, 10), "each once");
    assert_eq!(committed(&brokers, "stuck", "stuck", 2).iter().sum::<i64>(), 10);
}

fn applying(database: &Database, brokers: &str) -> Consumer<postgres::Outbox> {
    let schema = database.schema.clone();
    brisk(Consumer::new(&database.outbox, brokers, "frozen").topics(["frozen"]))
        .timeout(Duration::from_secs(3))
        .retry(support::retry(11))
        .on_type("Counted", move |event: Received<i64>, mut tx: Tx| {
            let schema = schema.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                apply(&schema, &event, &mut tx).await
            }
        })
}

/// The process that is frozen: not a test of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is started by the test that freezes it"]
async fn the_consumer_that_is_frozen() {
    let Ok(task) = std::env::var("POSTRIDER_TEST_FROZEN") else { return };
    let (brokers, schema) = task.split_once(' ').expect("brokers and schema");
    let database = Database::of(schema).await;
    let _running = applying(&database, brokers).start().await.expect("started");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_consumer_moves_no_position_of_the_next_one_and_repeats_no_effect() {
    broker();
    let brokers = topics(&[("frozen", 2)]);
    let database = Database::new().await;
    let mut feed = Feed::new(&brokers, "frozen");
    let mut more = |from: i64| {
        for version in from..from + 20 {
            for key in 0..10 {
                feed.event(&format!("key-{key}"), version);
            }
        }
        feed.flush();
    };
    more(1);
    let task = format!("{brokers} {}", database.schema);
    let mut child = process_of_test("the_consumer_that_is_frozen", "POSTRIDER_TEST_FROZEN", &task);
    until("some are applied", async || database.effects().await.len() > 20).await;
    child.signal("STOP");
    let next_holder = applying(&database, &brokers).start().await.expect("started");
    let sum = || committed(&brokers, "frozen", "frozen", 2).iter().filter(|offset| **offset > 0).sum::<i64>();
    until("the next holder has done all of it", async || {
        database.effects().await.len() >= 200 && sum() == 200
    })
    .await;
    child.signal("CONT");
    more(21);
    let highest = AtomicI64::new(200);
    until("they share the rest", async || {
        let now = sum();
        assert!(highest.fetch_max(now, Ordering::SeqCst) <= now, "a position went back");
        now == 400 && next_holder.partitions().len() == 1
    })
    .await;
    next_holder.stop().await.expect("stopped");
    child.kill();
    let mut by_key: HashMap<String, Vec<i64>> = HashMap::new();
    for (key, version) in database.effects().await {
        by_key.entry(key).or_default().push(version);
    }
    for (key, versions) in by_key {
        assert_eq!(versions, (1..=40).collect::<Vec<i64>>(), "{key}: each once, in order");
    }
}
