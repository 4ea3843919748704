//! Records with all attributes and with those alone that say something: consumers, gaps and dead letters take both.

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use postrider::store::{OutboxSource, Recordable};
use postrider::testing::Outbox;
use postrider::{Event, Failure, NewerVersion, OffsetDateTime, OptionalAttribute, Received, Relay, Uuid};
use postrider_kafka::{DeadLetters, Format, Kafka};
use serde::{Deserialize, Serialize};
use support::{Feed, PATIENCE, Seen, committed, consumer, records, topics, until};

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(aggregate = "Order", id = order, stream = "orders")]
struct OrderPaid {
    order: i64,
}

/// The name of a topic, with what is written to it.
type Mode = (&'static str, Format, &'static [OptionalAttribute]);

const MODES: [Mode; 5] = [
    ("binary-few", Format::Binary, &[]),
    ("binary-all", Format::Binary, &OptionalAttribute::ALL),
    ("structured-few", Format::Structured, &[]),
    ("structured-all", Format::Structured, &OptionalAttribute::ALL),
    ("bare", Format::Payload, &[]),
];

/// What a handler is told of an order: its stream, aggregate type and key, and when it was recorded.
type Told = (i64, String, String, String, OffsetDateTime);

/// Relays these events to the topic of a mode.
async fn relay_to(brokers: &str, (topic, format, attributes): Mode, outbox: &Outbox, ids: &[Uuid]) {
    let sink = Kafka::builder(brokers).topic(topic).format(format);
    let sink = sink.attributes(attributes.iter().copied()).connect().await.expect("connected");
    let relay = Relay::new(outbox).subscribe(topic, |s| s.sink(sink)).start().await.expect("started");
    for id in ids {
        relay.delivered(topic, *id, PATIENCE).await.expect("delivered");
    }
    relay.stop().await.expect("stopped");
}

/// The orders 1, 2 and 3; `before` is a time before they were recorded.
fn each_is_told_once_in_full(mut told: Vec<Told>, topic: &str, stream: &str, before: OffsetDateTime) {
    told.sort();
    for ((order, told_stream, aggregate, key, recorded_at), wanted) in told.into_iter().zip(1..) {
        assert_eq!((order, told_stream.as_str(), aggregate.as_str()), (wanted, stream, "Order"), "{topic}");
        assert_eq!(key, wanted.to_string(), "{topic}: the key of its record");
        // To the millisecond: the time of a record.
        assert!((recorded_at - before).whole_milliseconds() >= -1, "{topic}: {recorded_at}");
        assert!(recorded_at <= OffsetDateTime::now_utc(), "{topic}: {recorded_at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_handlers_and_dead_letters_take_records_with_few_attributes_and_with_all() {
    let brokers = topics(&MODES.map(|(name, ..)| (name, 1)));
    let (outbox, before) = (Outbox::new(), OffsetDateTime::now_utc());
    let mut ids = Vec::new();
    for order in 1..=3 {
        let event = OrderPaid { order }.to_new_event().expect("an event").into_owned();
        ids.push(outbox.record_alone(&event).await.expect("recorded"));
    }
    for (topic, format, attributes) in MODES {
        relay_to(&brokers, (topic, format, attributes), &outbox, &ids).await;
        let (seen, strict) = (Seen::<Told>::default(), Arc::new(AtomicBool::new(true)));
        let (told, refuses) = (seen.clone(), Arc::clone(&strict));
        let running = consumer(&Outbox::new(), &brokers, topic, topic)
            .on(move |event: Received<OrderPaid>| {
                let (told, refuses) = (told.clone(), Arc::clone(&refuses));
                async move {
                    if event.order == 2 && refuses.load(Ordering::SeqCst) {
                        return Err(Failure::reject("not this one"));
                    }
                    let recorded = event.event();
                    let (stream, aggregate) =
                        (recorded.stream.to_string(), recorded.aggregate_type.to_string());
                    told.push((
                        event.order,
                        stream,
                        aggregate,
                        recorded.key().into_owned(),
                        recorded.recorded_at,
                    ));
                    Ok(())
                }
            })
            .start()
            .await
            .expect("started");
        let letters = records(&brokers, &format!("{topic}.DLT"), 1);
        assert_eq!((letters.len(), letters[0].key.as_str()), (1, "2"), "{topic}");
        let tool = DeadLetters::new(&brokers, topic);
        let [letter] = tool.list(topic, 10).await.expect("letters").try_into().expect("one letter");
        assert_eq!(
            (letter.event_id, letter.event_type.as_deref()),
            (Some(ids[1]), Some("OrderPaid")),
            "{topic}"
        );
        strict.store(false, Ordering::SeqCst);
        assert_eq!(tool.requeue(topic).await.expect("put back"), 1);
        until("all is handled", async || seen.len() == 3).await;
        running.stop().await.expect("stopped");
        let stream = if attributes.is_empty() { topic } else { "orders" };
        each_is_told_once_in_full(seen.all(), topic, stream, before);
    }
}

/// As when a sink is told to write more, or less, while events of the key are on their way.
#[tokio::test(flavor = "multi_thread")]
async fn the_records_of_a_key_keep_their_order_where_only_some_have_all_attributes() {
    let brokers = topics(&[("mixed", 1)]);
    let mut feed = Feed::new(&brokers, "mixed");
    for number in 1..=40 {
        for key in ["a", "b"] {
            let all = [("ce_subject", key), ("ce_partitionkey", key), ("ce_aggregatetype", "Order")];
            feed.event_with(key, number, if number % 2 == 0 { &all } else { &all[..1] });
        }
    }
    feed.flush();
    let (seen, inside) = (Seen::default(), Arc::new(Mutex::new(HashMap::<String, usize>::new())));
    let (handled, entered, most) = (seen.clone(), Arc::clone(&inside), Seen::default());
    let crowd = most.clone();
    let running = consumer(&Outbox::new(), &brokers, "mixed", "mixed")
        .on_type("Counted", move |event: Received<i64>| {
            let (handled, entered, crowd) = (handled.clone(), Arc::clone(&entered), crowd.clone());
            async move {
                let key = event.event().aggregate_id.clone();
                let count = |by: fn(usize) -> usize| {
                    let mut inside = entered.lock().expect("a count");
                    let count = inside.entry(key.clone()).or_default();
                    *count = by(*count);
                    *count
                };
                crowd.push(count(|count| count + 1));
                // Whoever may begin meanwhile does.
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                handled.push((key.clone(), *event));
                count(|count| count - 1);
                Ok::<(), Failure>(())
            }
        })
        .start()
        .await
        .expect("started");
    until("all is handled", async || seen.len() == 80).await;
    running.stop().await.expect("stopped");
    assert_eq!(most.all().into_iter().max(), Some(1), "no two of a key at once");
    for wanted in ["a", "b"] {
        let numbers: Vec<i64> =
            seen.all().into_iter().filter(|(key, _)| key == wanted).map(|(_, number)| number).collect();
        assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    }
}

/// `Order:7` and `Item:7` have one record key, and numbers of their own.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_within_aggregates_of_two_types_and_one_id_are_not_confused() {
    let brokers = topics(&[("numbered", 1)]);
    let mut feed = Feed::new(&brokers, "numbered");
    for (aggregate, number) in [("Order", 1), ("Item", 50), ("Order", 2), ("Item", 51), ("Order", 4)] {
        let text = number.to_string();
        let headers = [("ce_subject", "7"), ("ce_aggregatetype", aggregate), ("ce_sequence", &text)];
        feed.event_with("7", number, &headers);
    }
    // Ordered by a key that is the subject by chance: no type is named, and all of them count together.
    for (number, value) in [("1", 100), ("2", 101), ("3", 102)] {
        feed.event_with("8", value, &[("ce_subject", "8"), ("ce_sequence", number)]);
    }
    feed.flush();
    let gaps = Seen::default();
    let told = gaps.clone();
    let running = consumer(&Outbox::new(), &brokers, "numbered", "numbered")
        .on_gap(move |gap| told.push((gap.key.clone(), gap.expected, gap.got)))
        .on_type("Counted", async |_: Received<i64>| Ok::<(), Failure>(()))
        .start()
        .await
        .expect("started");
    until("all is done", async || committed(&brokers, "numbered", "numbered", 1) == [8]).await;
    running.stop().await.expect("stopped");
    assert_eq!(gaps.all(), [("Order:7".to_owned(), 3, 4)]);
}

/// L6: a version that the handler does not know waits, or is tried where that is set.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_version_waits_or_is_tried() {
    let brokers = topics(&[("versions", 1)]);
    let mut feed = Feed::new(&brokers, "versions");
    for (order, version, value) in [
        (1, "2", r#"{"order": 1, "colour": "red"}"#),
        (2, "1", r#"{"order": 2}"#),
        (3, "2", r#"{"number": 3}"#),
    ] {
        let id = order.to_string();
        let headers = [
            ("ce_specversion", "1.0"),
            ("ce_id", &*id),
            ("ce_source", "/feed"),
            ("ce_type", "OrderPaid"),
            ("ce_schemaversion", version),
            ("content-type", "application/json"),
        ];
        feed.raw(&id, value, &headers);
    }
    feed.flush();
    for (group, newer, orders, position) in [
        ("versions-wait", NewerVersion::Wait, vec![2], -1),
        ("versions-try", NewerVersion::Try, vec![1, 2], 2),
    ] {
        let seen = Seen::<i64>::default();
        let told = seen.clone();
        let running = consumer(&Outbox::new(), &brokers, group, "versions")
            .on(move |event: Received<OrderPaid>| {
                told.push(event.order);
                async {}
            })
            .newer_version(newer)
            .start()
            .await
            .expect("started");
        until("what can be read is handled", async || seen.len() == orders.len()).await;
        until("it is committed", async || committed(&brokers, group, "versions", 1) == [position]).await;
        running.stop().await.expect("stopped");
        let mut handled = seen.all();
        handled.sort_unstable();
        assert_eq!(handled, orders, "{group}");
    }
    assert_eq!(
        support::Positions::new(&brokers, "versions-try", "versions", 1).now(),
        [2],
        "the third waits"
    );
}
