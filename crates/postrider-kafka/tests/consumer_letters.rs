//! Dead letters on a real broker: when they can't be written, and the way back.

#[path = "support/logs.rs"]
mod logs;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use logs::Logs;
use postrider::testing::Outbox;
use postrider::{Failure, Received};
use postrider_kafka::{DeadLetters, RunningConsumer};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use support::{Feed, Record, Seen, broker, committed, consumer, records, topics, until};
use xtask::kafka::{Broker, Options};

/// A consumer whose handler rejects negative numbers while it is told to.
async fn rejecting(
    brokers: &str,
    group: &str,
    topic: &str,
    strict: &Arc<AtomicBool>,
) -> (RunningConsumer, Seen<i64>) {
    let seen = Seen::default();
    let (handled, strict) = (seen.clone(), Arc::clone(strict));
    let running = consumer(&Outbox::new(), brokers, group, topic)
        .on_type("Counted", move |event: Received<i64>| {
            let (handled, strict) = (handled.clone(), Arc::clone(&strict));
            async move {
                if *event < 0 && strict.load(Ordering::SeqCst) {
                    return Err(Failure::reject("negative"));
                }
                handled.push(*event);
                Ok(())
            }
        })
        .start()
        .await
        .expect("started");
    (running, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_cannot_be_written_stops_its_partition_only_until_it_can() {
    let broker = broker();
    let (brokers, topic) = (broker.bootstrap(), "unwritable");
    broker.create_topic(topic, 2).expect("a topic");
    let mut feed = Feed::new(&brokers, topic);
    // Two keys in two partitions, found by asking: one gets the poison.
    for key in 0..20 {
        feed.event(&format!("key-{key}"), key);
    }
    feed.flush();
    let strict = Arc::new(AtomicBool::new(true));
    let (running, seen) = rejecting(&brokers, "unwritable", topic, &strict).await;
    until("all is handled", async || seen.len() == 20).await;
    until("it is committed", async || committed(&brokers, "unwritable", topic, 2).iter().sum::<i64>() == 20)
        .await;
    let before = committed(&brokers, "unwritable", topic, 2);
    feed.event("key-1", -1);
    feed.flush();
    for round in 0..20 {
        for key in 0..20 {
            feed.event(&format!("key-{key}"), 100 + round);
        }
    }
    feed.flush();
    let stopped = async || {
        let after = committed(&brokers, "unwritable", topic, 2);
        let moved: Vec<i64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        // Of the stopped one nothing past the poison, of the other all of it.
        moved.contains(&0) && moved.iter().any(|moved| *moved > 0 && moved % 20 == 0)
    };
    until("one partition goes on and one stands still", stopped).await;
    let standing = seen.len();
    broker.create_topic("unwritable.DLT", 1).expect("the topic appears");
    until("the other goes on", async || seen.len() == 20 + 400).await;
    assert!(standing < 420);
    let letters = records(&brokers, "unwritable.DLT", 1);
    running.stop().await.expect("stopped");
    assert_eq!(committed(&brokers, "unwritable", topic, 2).iter().sum::<i64>(), feed.sent);
    assert_eq!((letters.len(), letters[0].value.as_str()), (1, "-1"));
    assert_eq!(seen.all().iter().filter(|value| **value < 0).count(), 0);
}

/// A poisonous record between two others of its key: nothing is dropped, said or passed over but what the letter waits for,
/// until it is mended.
async fn stands_until(
    broker: &Broker,
    topic: &str,
    padding: &str,
    sentence: &[&str],
    mend: impl AsyncFnOnce(),
) {
    let (logs, brokers) = (Logs::here("postrider_kafka=info"), broker.bootstrap());
    let mut feed = Feed::new(&brokers, topic);
    feed.event("a", 1);
    feed.event_with("a", -1, &[("padding", padding)]);
    feed.event("a", 2);
    feed.flush();
    let (running, seen) = rejecting(&brokers, topic, topic, &Arc::new(AtomicBool::new(true))).await;
    let group = format!("group={topic}");
    let stands = [&[group.as_str(), "the partition is stopped"], sentence].concat();
    until("it says that it stands still", async || !logs.lines(&stands).is_empty()).await;
    until("what was before is committed", async || committed(&brokers, topic, topic, 1) == [1]).await;
    // Several tries later it is the same.
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        assert_eq!(
            (committed(&brokers, topic, topic, 1), seen.all()),
            (vec![1], vec![1]),
            "nothing is dropped"
        );
    }
    assert_eq!(logs.lines(&[&group, "the partition is stopped"]).len(), 1, "it is said once");
    // A clean stop repeats nothing, also while it stands.
    running.stop().await.expect("stopped");
    let (running, again) = rejecting(&brokers, topic, topic, &Arc::new(AtomicBool::new(true))).await;
    until("it stands again", async || logs.lines(&stands).len() == 2).await;
    mend().await;
    until("it goes on", async || again.all() == [2]).await;
    until("all is committed", async || committed(&brokers, topic, topic, 1) == [3]).await;
    running.stop().await.expect("stopped");
    assert_eq!(seen.all(), [1]);
    assert_eq!(logs.lines(&[&group, "the dead letter was written; the partition continues"]).len(), 1);
    let letters = records(&brokers, &format!("{topic}.DLT"), 1);
    assert_eq!((letters.len(), letters[0].value.as_str()), (1, "-1"));
    assert_eq!(letters[0].headers["padding"], padding);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_forbidden_stops_its_partition_until_it_is_permitted() {
    let broker = Broker::create(&Options::new().acls()).expect("a broker starts");
    broker.create_topics(&[("forbidden", 1), ("forbidden.DLT", 1)]).expect("topics");
    broker.forbid_writes("forbidden.DLT").expect("forbidden");
    let sentence = ["the topic forbidden.DLT can't be written to", "that the user may write to it"];
    stands_until(&broker, "forbidden", "", &sentence, async || {
        broker.permit_writes("forbidden.DLT").expect("permitted");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_too_large_for_its_topic_stops_its_partition_until_there_is_room() {
    let broker = broker();
    broker.create_topic("small", 1).expect("a topic");
    broker.create_topics_with(&[("small.DLT", 1)], &[("max.message.bytes", "2000")]).expect("a topic");
    let sentence = ["the record is too large for the topic small.DLT", "raise its max.message.bytes"];
    stands_until(broker, "small", &"x".repeat(5000), &sentence, async || {
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().expect("a client");
        let larger =
            AlterConfig::new(ResourceSpecifier::Topic("small.DLT")).set("max.message.bytes", "100000");
        let altered = admin.alter_configs([&larger], &AdminOptions::new()).await.expect("an answer");
        assert!(altered.iter().all(Result::is_ok), "{altered:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_break_a_promise_is_refused_before_any_letter_is_read() {
    let brokers = topics(&[("kept", 1)]);
    for (name, value) in [
        ("group.id", "other"),
        ("enable.auto.commit", "true"),
        ("enable.partition.eof", "false"),
        ("auto.offset.reset", "latest"),
        ("bootstrap.servers", "127.0.0.1:1"),
        ("acks", "1"),
        ("transactional.id", "letters"),
        ("no.such.property", "1"),
    ] {
        let tool = || DeadLetters::new(&brokers, "kept").property(name, value);
        for error in [tool().list("kept", 1).await.err(), tool().requeue("kept").await.err()] {
            let sentence = error.expect(name).to_string();
            assert!(sentence.contains(name) && !sentence.contains('\n'), "{sentence}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_put_back_reaches_the_handler_of_its_group_and_no_other() {
    let brokers = topics(&[("back", 3)]);
    let mut feed = Feed::new(&brokers, "back");
    for number in 1..=5 {
        feed.event_with("key", -number, &[("own", "kept")]);
    }
    feed.raw("other", "no event", &[]);
    feed.flush();
    let strict = Arc::new(AtomicBool::new(true));
    let (mailer, mailed) = rejecting(&brokers, "mailer", "back", &strict).await;
    let (billing, billed) = rejecting(&brokers, "billing", "back", &Arc::new(AtomicBool::new(false))).await;
    // Five of the one group, and what is no event of both.
    let letters = records(&brokers, "back.DLT", 7);
    assert_eq!(letters.len(), 7);
    until("the other group has handled all", async || billed.len() == 5).await;
    let tool = DeadLetters::new(&brokers, "mailer");
    let listed = tool.list("back", 100).await.expect("letters");
    assert_eq!(listed.len(), 6);
    assert_eq!(tool.list("back", 2).await.expect("letters").len(), 2);
    let first = listed.iter().find(|letter| letter.event_id.is_some()).expect("an event");
    assert_eq!((first.topic.as_str(), first.key.as_deref(), first.attempts), ("back", Some("key"), 1));
    assert_eq!((first.error.as_str(), first.error_code.as_str()), ("negative", "rejected"));
    assert_eq!(first.event_type.as_deref(), Some("Counted"));
    assert!(first.time.is_some());
    strict.store(false, Ordering::SeqCst);
    assert_eq!(tool.requeue("back").await.expect("put back"), 6);
    until("they are handled at last", async || mailed.len() == 5).await;
    assert_eq!(mailed.all(), [-1, -2, -3, -4, -5], "in their order");
    // What is no event is a letter again; the five are not, and are not put back twice.
    let again = records(&brokers, "back.DLT", 8);
    assert_eq!(tool.list("back", 100).await.expect("letters").len(), 1);
    assert_eq!(again.len(), 8);
    until("both groups have passed everything", async || {
        let sum =
            |group: &str| committed(&brokers, group, "back", 3).iter().filter(|at| **at > 0).sum::<i64>();
        sum("mailer") == 12 && sum("billing") == 12
    })
    .await;
    mailer.stop().await.expect("stopped");
    billing.stop().await.expect("stopped");
    assert_eq!(billed.len(), 5, "the other group has not seen them again");
    let last: &Record = again.last().expect("a letter");
    assert_eq!((last.value.as_str(), last.headers["postrider_group"].as_str()), ("no event", "mailer"));
    let missing = DeadLetters::new(&brokers, "mailer").list("nowhere", 1).await.expect_err("no such topic");
    assert!(missing.to_string().contains("nowhere.DLT for dead letters does not exist"), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_what_a_handler_needs_costs_no_try_and_keeps_the_order() {
    let brokers = topics(&[("outage", 1)]);
    let mut feed = Feed::new(&brokers, "outage");
    for number in 1..=50 {
        feed.event(&format!("key-{}", number % 5), number);
    }
    feed.flush();
    let (away, seen, tries) = (Arc::new(AtomicBool::new(true)), Seen::default(), Seen::default());
    let (gone, handled, tried) = (Arc::clone(&away), seen.clone(), tries.clone());
    let running = consumer(&Outbox::new(), &brokers, "outage", "outage")
        .retry(support::retry(1))
        .longest_pause(Duration::from_millis(100))
        .on_type("Counted", move |event: Received<i64>| {
            let (gone, handled, tried) = (Arc::clone(&gone), handled.clone(), tried.clone());
            async move {
                tried.push(event.attempt());
                if gone.load(Ordering::SeqCst) {
                    return Err(Failure::unavailable("the mail server is away"));
                }
                handled.push((event.event().key().into_owned(), *event));
                Ok(())
            }
        })
        .start()
        .await
        .expect("started");
    until("it was tried many times", async || tries.len() > 20).await;
    assert_eq!(seen.len(), 0);
    away.store(false, Ordering::SeqCst);
    until("all is handled", async || seen.len() == 50).await;
    running.stop().await.expect("stopped");
    assert!(tries.all().iter().all(|attempt| *attempt == 1), "no try was lost");
    for key in 0..5 {
        let of_key: Vec<i64> = seen
            .all()
            .into_iter()
            .filter(|(of, _)| *of == format!("key-{key}"))
            .map(|(_, number)| number)
            .collect();
        assert!(of_key.is_sorted() && of_key.len() == 10, "{of_key:?}");
    }
}
