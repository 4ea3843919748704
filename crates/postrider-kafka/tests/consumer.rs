//! The consumer on a real broker: order, retries, dead letters, where it begins and how it stops.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postrider::testing::Outbox;
use postrider::{ErrorKind, Failure, Received};
use postrider_kafka::{Consumer, Offsets};
use support::{Feed, Record, Seen, committed, consumer, records, topics, until, until_holding};

#[tokio::test(flavor = "multi_thread")]
async fn the_order_within_a_key_holds_with_sixteen_keys_at_once() {
    let brokers = topics(&[("order", 2)]);
    let mut feed = Feed::new(&brokers, "order");
    for version in 1..=30 {
        for key in 0..40 {
            feed.event(&format!("key-{key}"), version);
        }
    }
    feed.flush();
    let (seen, now, most) = (Seen::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (seen, now, most) = (seen.clone(), Arc::clone(&now), Arc::clone(&most));
        move |event: Received<i64>| {
            let (seen, now, most) = (seen.clone(), Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                // One in twenty fails the first time: what is behind it waits.
                if event.attempt() == 1 && *event % 20 == 7 {
                    return Err(Failure::retry_after(Duration::from_millis(10), "not now"));
                }
                seen.push((event.event().key().into_owned(), *event));
                Ok(())
            }
        }
    };
    let running = consumer(&Outbox::new(), &brokers, "order", "order")
        .on_type("Counted", handler)
        .concurrency(16)
        .start()
        .await
        .expect("started");
    until("all is handled", async || seen.len() == 1200).await;
    running.stop().await.expect("stopped");
    let mut keys: HashMap<String, Vec<i64>> = HashMap::new();
    for (key, version) in seen.all() {
        keys.entry(key).or_default().push(version);
    }
    assert_eq!(keys.len(), 40);
    for (key, versions) in keys {
        assert_eq!(versions, (1..=30).collect::<Vec<i64>>(), "{key}");
    }
    let most = most.load(Ordering::SeqCst);
    assert!(most > 4 && most <= 32, "{most} at once, in two partitions");
    assert_eq!(committed(&brokers, "order", "order", 2).iter().sum::<i64>(), 1200);
}

/// Events, two of which the handler refuses, and two records that are none.
fn feed_with_poison(brokers: &str) {
    let mut feed = Feed::new(brokers, "poison");
    feed.event("a", 1);
    feed.event_with("a", 2, &[("own", "kept")]);
    feed.event("a", 3);
    feed.raw(
        "b",
        "{not json",
        &[
            ("ce_specversion", "1.0"),
            ("ce_id", "1"),
            ("ce_source", "/s"),
            ("ce_type", "Counted"),
            ("content-type", "application/json"),
        ],
    );
    feed.raw("c", "hello", &[]);
    feed.event("d", 4);
    feed.event("a", 5);
    feed.flush();
}

fn each_letter_says_why_and_what(letters: &[Record]) {
    let letter = |key: &str| letters.iter().find(|letter| letter.key == key).cloned().expect("a letter");
    let shown = |key: &str, name: &str| letter(key).headers.get(name).cloned().unwrap_or_default();
    assert_eq!(letters.len(), 4);
    for (name, value) in [
        ("own", "kept"),
        ("ce_id", "a/2"),
        ("content-type", "application/json"),
        ("postrider_error", "it is poison"),
        ("postrider_error_code", "poison"),
        ("postrider_attempts", "4"),
        ("postrider_group", "poison"),
        ("postrider_topic", "poison"),
        ("postrider_partition", "0"),
        ("postrider_offset", "1"),
    ] {
        assert_eq!(shown("a", name), value, "{name}");
    }
    assert!(shown("a", "postrider_time").ends_with('Z'));
    assert_eq!((letter("a").value.as_str(), letter("b").value.as_str()), ("2", "{not json"), "byte for byte");
    assert!(shown("b", "postrider_error").contains("not JSON"), "{}", shown("b", "postrider_error"));
    assert!(shown("c", "postrider_error").contains("not a CloudEvent"));
    assert_eq!(
        (shown("c", "postrider_attempts"), shown("d", "postrider_attempts")),
        ("0".to_owned(), "1".to_owned())
    );
    assert_eq!(shown("d", "postrider_error_code"), "rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_goes_to_the_dead_letters_and_the_partition_goes_on() {
    let brokers = topics(&[("poison", 1)]);
    feed_with_poison(&brokers);
    let (seen, tries) = (Seen::default(), Seen::default());
    let (handled, tried) = (seen.clone(), tries.clone());
    let running = consumer(&Outbox::new(), &brokers, "poison", "poison")
        .on_type("Counted", move |event: Received<i64>| {
            let (handled, tried) = (handled.clone(), tried.clone());
            async move {
                match *event {
                    2 => {
                        tried.push((event.attempt(), Instant::now()));
                        Err(Failure::retry("it is poison").code("poison"))
                    }
                    4 => Err(Failure::reject("never")),
                    value => {
                        handled.push(value);
                        Ok(())
                    }
                }
            }
        })
        .start()
        .await
        .expect("started");
    until("the rest is handled", async || seen.len() == 3).await;
    let letters = records(&brokers, "poison.DLT", 4);
    running.stop().await.expect("stopped");
    assert_eq!(seen.all(), [1, 3, 5]);
    let tries = tries.all();
    assert_eq!(
        tries.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(),
        [1, 2, 3, 4],
        "once, and three times again"
    );
    assert!(tries.windows(2).all(|pair| pair[1].1 - pair[0].1 >= Duration::from_millis(190)), "with a pause");
    assert_eq!(committed(&brokers, "poison", "poison", 1), [7]);
    each_letter_says_why_and_what(&letters);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_group_begins_where_it_is_told_and_stays_there() {
    let brokers = topics(&[("begin", 1)]);
    let mut feed = Feed::new(&brokers, "begin");
    feed.event("a", 1);
    feed.flush();
    let start = async |group: &str, from: Offsets| {
        let seen = Seen::default();
        let handled = seen.clone();
        let running = consumer(&Outbox::new(), &brokers, group, "begin")
            .from(from)
            .on_type("Counted", move |event: Received<i64>| {
                let handled = handled.clone();
                async move {
                    handled.push(*event);
                    Ok::<(), Failure>(())
                }
            })
            .start()
            .await
            .expect("started");
        until_holding(&running, 1).await;
        (running, seen)
    };
    let (late, nothing) = start("late", Offsets::Latest).await;
    late.stop().await.expect("stopped");
    // It arrives while nobody of the group is there, and before the group has handled anything.
    feed.event("a", 2);
    feed.flush();
    let (late, seen) = start("late", Offsets::Latest).await;
    until("what came later is handled", async || seen.len() == 1).await;
    let (early, all) = start("early", Offsets::Earliest).await;
    until("all is handled", async || all.len() == 2).await;
    late.stop().await.expect("stopped");
    early.stop().await.expect("stopped");
    assert_eq!((nothing.all(), seen.all(), all.all()), (vec![], vec![2], vec![1, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graceful_stop_repeats_nothing_and_commits_exactly_what_was_handled() {
    let brokers = topics(&[("stop", 3)]);
    let mut feed = Feed::new(&brokers, "stop");
    for version in 1..=40 {
        for key in 0..20 {
            feed.event(&format!("key-{key}"), version);
        }
    }
    feed.flush();
    let (outbox, seen) = (Outbox::new(), Seen::default());
    let mut stops = 0;
    while seen.len() < 800 {
        let handled = seen.clone();
        let running = consumer(&outbox, &brokers, "stop", "stop")
            .concurrency(4)
            .records_per_poll(50)
            .on_type("Counted", move |event: Received<i64>| {
                let handled = handled.clone();
                async move {
                    // Keys take different times: later records are done before earlier ones.
                    tokio::time::sleep(Duration::from_millis(slowness(&event.event().key()))).await;
                    handled.push((event.event().key().into_owned(), *event));
                    Ok::<(), Failure>(())
                }
            })
            .start()
            .await
            .expect("started");
        let wanted = (seen.len() + 150).min(800);
        until("some are handled", async || seen.len() >= wanted).await;
        running.stop().await.expect("stopped");
        stops += 1;
        let offsets = committed(&brokers, "stop", "stop", 3);
        assert_eq!(
            offsets.iter().filter(|offset| **offset > 0).sum::<i64>(),
            seen.len() as i64,
            "after stop {stops}"
        );
    }
    assert!(stops > 2, "{stops} stops");
    let mut counts: HashMap<(String, i64), usize> = HashMap::new();
    for event in seen.all() {
        *counts.entry(event).or_default() += 1;
    }
    assert_eq!((counts.len(), counts.values().max()), (800, Some(&1)), "each once");
}

/// How long an event takes, in milliseconds: by its key.
fn slowness(key: &str) -> u64 {
    key.bytes().map(u64::from).sum::<u64>() % 7
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_in_the_numbers_of_a_key_is_reported_once_and_a_repetition_is_none() {
    let brokers = topics(&[("gaps", 1)]);
    let mut feed = Feed::new(&brokers, "gaps");
    for (key, number) in [("a", 4), ("b", 1), ("a", 5), ("a", 5), ("a", 8), ("b", 2), ("a", 9)] {
        let text = number.to_string();
        feed.event_with(key, number, &[("ce_sequence", &text)]);
    }
    feed.flush();
    let (gaps, seen) = (Seen::default(), Seen::default());
    let (told, handled) = (gaps.clone(), seen.clone());
    let running = consumer(&Outbox::new(), &brokers, "gaps", "gaps")
        .on_gap(move |gap| told.push(gap.clone()))
        .on_type("Counted", move |event: Received<i64>| {
            let handled = handled.clone();
            async move {
                handled.push(*event);
                Ok::<(), Failure>(())
            }
        })
        .start()
        .await
        .expect("started");
    until("all is done", async || committed(&brokers, "gaps", "gaps", 1) == [7]).await;
    running.stop().await.expect("stopped");
    let gaps = gaps.all();
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].key.as_str(), gaps[0].expected, gaps[0].got, gaps[0].offset), ("a", 6, 8, 4));
    // The same event twice in one batch reached the handler once, without an inbox. (The batch may have been cut in two.)
    assert!((6..=7).contains(&seen.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_at_the_start_in_one_sentence() {
    let brokers = topics(&[("wrong", 1)]);
    let outbox = Outbox::new();
    let fresh = |brokers: &str, topic: &str| {
        Consumer::new(&outbox, brokers, "wrong")
            .topics([topic])
            .on_type("Counted", async |_: Received<i64>| Ok::<(), Failure>(()))
    };
    let refusal = async |consumer: Consumer<Outbox>| {
        let error = consumer.start().await.expect_err("refused");
        (error.kind(), error.to_string())
    };
    let (kind, text) = refusal(fresh("127.0.0.1:1", "wrong")).await;
    assert!(kind == ErrorKind::Unreachable && text.contains("127.0.0.1:1"), "{text}");
    let (kind, text) = refusal(fresh(&brokers, "nowhere")).await;
    assert!(
        kind == ErrorKind::NotFound && text.contains("the topic nowhere does not exist; create it"),
        "{text}"
    );
    for (name, value) in [
        ("enable.auto.commit", "true"),
        ("group.id", "other"),
        ("partition.assignment.strategy", "range"),
        ("auto.offset.reset", "latest"),
        ("no.such.property", "1"),
    ] {
        let (kind, text) = refusal(fresh(&brokers, "wrong").property(name, value)).await;
        assert!(kind == ErrorKind::Invalid && text.contains(name) && !text.contains('\n'), "{text}");
    }
    let without = Consumer::new(&outbox, &brokers, "wrong").topics(["wrong"]);
    assert!(refusal(without).await.1.contains("it must have a handler"));
    assert!(refusal(fresh(&brokers, "wrong").dead_letters("{topic}")).await.1.contains("choose another one"));
}
