//! What a consumer does unless it is told otherwise, on a real broker.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postrider::testing::Outbox;
use postrider::{Failure, Received};
use postrider_kafka::Consumer;
use support::{Feed, Seen, committed, records, topics, until};
use tokio::sync::Semaphore;

/// C13: 100 records a poll. All of them are of different keys and wait for each other, so as many are in at once as were
/// taken together.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_records_are_taken_at_a_time_or_as_many_as_it_is_told() {
    let brokers = topics(&[("hundred", 1)]);
    let mut feed = Feed::new(&brokers, "hundred");
    for key in 0..350 {
        feed.event(&format!("key-{key}"), 1);
    }
    feed.flush();
    for (group, told, wanted) in [("unless-told", None, 100), ("told", Some(30), 30)] {
        let (gate, inside, most) =
            (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let handler = {
            let (gate, inside, most) = (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&most));
            move |_: Received<i64>| {
                let (gate, inside, most) = (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&most));
                async move {
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    gate.acquire().await.expect("the gate opens").forget();
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            }
        };
        let consumer = Consumer::new(&Outbox::new(), &brokers, group)
            .topics(["hundred"])
            .concurrency(1000)
            .on_type("Counted", handler);
        let consumer = match told {
            Some(records) => consumer.records_per_poll(records),
            None => consumer,
        };
        let running = consumer.start().await.expect("started");
        // The first look may find fewer than there are; after it, there are always more.
        until("as many are in as it takes", async || {
            if inside.load(Ordering::SeqCst) < wanted && gate.available_permits() == 0 {
                gate.add_permits(1);
            }
            most.load(Ordering::SeqCst) >= wanted
        })
        .await;
        gate.add_permits(1000);
        until("all is handled", async || committed(&brokers, group, "hundred", 1) == [350]).await;
        running.stop().await.expect("stopped");
        assert_eq!(most.load(Ordering::SeqCst), wanted, "{group}");
    }
}

/// C12: three retries, a second apart, and then the topic for dead letters.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_event_is_tried_again_three_times_a_second_apart() {
    let brokers = topics(&[("patient", 1)]);
    let mut feed = Feed::new(&brokers, "patient");
    feed.event("a", 1);
    feed.flush();
    let tries = Seen::default();
    let tried = tries.clone();
    let running = Consumer::new(&Outbox::new(), &brokers, "patient")
        .topics(["patient"])
        .on_type("Counted", move |event: Received<i64>| {
            tried.push((event.attempt(), Instant::now()));
            async { Err::<(), Failure>(Failure::retry("never")) }
        })
        .start()
        .await
        .expect("started");
    let letters = records(&brokers, "patient.DLT", 1);
    running.stop().await.expect("stopped");
    assert_eq!(letters[0].headers["postrider_attempts"], "4");
    let tries = tries.all();
    assert_eq!(tries.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for pair in tries.windows(2) {
        let pause = pair[1].1 - pair[0].1;
        assert!(pause >= Duration::from_secs(1) && pause < Duration::from_secs(3), "{pause:?}");
    }
}
