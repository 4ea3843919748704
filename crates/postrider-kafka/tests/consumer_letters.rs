//! Dead letters on a real broker: when they can't be written, and the way back.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider::testing::Outbox;
use postrider::{Failure, Received};
use postrider_kafka::{DeadLetters, RunningConsumer};
use support::{Feed, Record, Seen, broker, committed, consumer, records, topics, until};

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
        .retries(0)
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
