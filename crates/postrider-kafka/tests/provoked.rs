//! Errors that no broker answers with: nobody there, no such name, no time left, a topic that vanishes, a producer at its end.

#[path = "support/events.rs"]
mod events;
#[path = "support/logs.rs"]
mod logs;

use std::time::{Duration, Instant};

use events::{PATIENCE, deliver, deliver_all, event, firsts, mock, versions};
use logs::Logs;
use postrider::store::Outcome;
use postrider::testing::Outbox;
use postrider::{ErrorKind, Failure, Order, Raw, Received, Recorded};
use postrider_kafka::{Consumer, Kafka, KafkaBuilder};
use postrider_testkit::until;
use rdkafka::types::RDKafkaApiKey;
use rdkafka::types::RDKafkaRespErr::{
    RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID as FENCED, RD_KAFKA_RESP_ERR_NO_ERROR as FINE,
    RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER as OUT_OF_ORDER,
    RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART as UNKNOWN,
};

/// Why nothing can be delivered with these settings; no event is to blame.
async fn outage(settings: KafkaBuilder) -> String {
    let sink = settings.send_timeout(Duration::from_secs(2)).build().expect("a sink");
    let (result, outcomes) = deliver(&sink, &[event("a", 1), event("b", 2)]).await;
    assert_eq!(outcomes, [None, None], "no event is to blame");
    result.expect_err("unavailable").reason
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nobody_knows_and_a_port_that_nobody_listens_on_are_outages() {
    let reason = outage(Kafka::builder("kafka.invalid:9092")).await;
    assert!(reason.contains("the host name does not exist") && reason.contains("kafka.invalid"), "{reason}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|taken| taken.local_addr());
    let address = port.expect("a port that was free").to_string();
    let reason = outage(Kafka::builder(&address)).await;
    assert!(reason.contains("no broker answers at this address") && reason.contains(&address), "{reason}");
    // Of several, each is named by its own trouble.
    let reason = outage(Kafka::builder(&format!("{address},kafka.invalid:9092"))).await;
    assert!(
        reason.contains("no broker answers at this address")
            || reason.contains("the host name does not exist"),
        "{reason}"
    );
}

/// The brokers were there and go away while a batch is under way: transport, and all of them down.
#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_go_away_under_a_batch_are_an_outage_and_all_comes_in_order_afterwards() {
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers()).send_timeout(Duration::from_secs(2));
    let sink = sink.build().expect("a sink");
    deliver_all(&sink, vec![event("a", 1)], Order::Key).await;
    mock.broker_down(1).expect("down");
    let events: Vec<Recorded> = (2..=100).map(|version| event("a", version)).collect();
    let (result, outcomes) = deliver(&sink, &events).await;
    let reason = result.expect_err("unavailable").reason;
    assert!(outcomes.iter().all(Option::is_none), "no event is to blame: {reason}");
    mock.broker_up(1).expect("up");
    deliver_all(&sink, events, Order::Key).await;
    let found = versions(&mock, 1).remove("a").expect("versions");
    assert_eq!(firsts(&found), (1..=100).collect::<Vec<i64>>(), "{found:?}");
}

/// A batch larger than the client's queue, and a broker that does not answer: what found no place in time was never sent.
#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_place_in_the_queue_in_time_is_an_outage() {
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .send_timeout(Duration::from_secs(1))
        .property("queue.buffering.max.messages", "10")
        .build()
        .expect("a sink");
    deliver_all(&sink, vec![event("a", 1)], Order::Key).await;
    mock.broker_round_trip_time(1, PATIENCE).expect("no answers");
    let events: Vec<Recorded> = (2..=100).map(|version| event("a", version)).collect();
    let begun = Instant::now();
    let (result, outcomes) = deliver(&sink, &events).await;
    assert!(result.is_err() && outcomes.iter().all(Option::is_none), "{result:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    mock.broker_round_trip_time(1, Duration::ZERO).expect("quick answers");
    deliver_all(&sink, events, Order::Key).await;
    let found = versions(&mock, 1).remove("a").expect("versions");
    assert_eq!(firsts(&found), (1..=100).collect::<Vec<i64>>(), "{found:?}");
}

/// It was there when the sink last looked: the client finds out, and the topic is held within a moment, not after a timeout.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_vanishes_under_a_batch_holds_its_events_at_once_and_no_others() {
    let mock = mock(1);
    mock.create_topic("payments", 1, 1).expect("a topic");
    let sink = Kafka::builder(&mock.bootstrap_servers()).send_timeout(Duration::from_secs(20));
    let sink = sink.build().expect("a sink");
    let of = |stream: &str, version| {
        let mut event = event(stream, version);
        event.stream = stream.into();
        event
    };
    deliver_all(&sink, vec![of("orders", 1), of("payments", 1)], Order::Key).await;
    mock.topic_error("payments", UNKNOWN).expect("it vanishes");
    // Each topic's records are a request of their own, in either order, and each is tried again until the client has asked
    // which topics there are: enough answers for both until then, and the last ones for the topic that is still there.
    mock.request_errors(RDKafkaApiKey::Produce, &[UNKNOWN; 6]);
    let begun = Instant::now();
    let (result, outcomes) = deliver(&sink, &[of("payments", 2), of("orders", 2)]).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(result.is_ok(), "{result:?}");
    let Some(Outcome::Hold { failure, .. }) = &outcomes[0] else { panic!("{outcomes:?}") };
    assert!(
        failure.message.contains("the topic payments of OrderPaid does not exist; create it"),
        "{failure:?}"
    );
    assert_eq!(outcomes[1], Some(Outcome::Delivered));
    mock.topic_error("payments", FINE).expect("it is back");
    deliver_all(&sink, vec![of("payments", 2)], Order::Key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fatal_error_of_the_producer_is_an_outage_and_a_new_producer_takes_its_place() {
    let logs = Logs::here("postrider_kafka=debug");
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers()).send_timeout(Duration::from_secs(5));
    let sink = sink.property("batch.num.messages", "10").build().expect("a sink");
    deliver_all(&sink, vec![event("a", 1)], Order::Key).await;
    mock.request_errors(RDKafkaApiKey::Produce, &[FINE, OUT_OF_ORDER]);
    let events: Vec<Recorded> = (2..=100).map(|version| event("a", version)).collect();
    let (result, outcomes) = deliver(&sink, &events).await;
    let taken = outcomes.iter().flatten().filter(|outcome| outcome.is_delivered()).count();
    assert!(result.is_err(), "{outcomes:?}");
    assert_eq!(taken, outcomes.iter().flatten().count(), "no event is to blame: {outcomes:?}");
    assert!(taken < 99, "something was under way");
    deliver_all(&sink, events, Order::Key).await;
    let found = versions(&mock, 1).remove("a").expect("versions");
    assert_eq!(firsts(&found), (1..=100).collect::<Vec<i64>>(), "{found:?}");
    let text = logs.text();
    let given_up = text.lines().find(|line| line.contains("creating a new one")).unwrap_or_default();
    assert!(given_up.contains("sequence desynchronization"), "it was the fatal error: {text}");
}

async fn ignore(_: Received<Raw>) -> Result<(), Failure> {
    Ok(())
}

/// A consumer that the brokers fence off, because another one has its `group.instance.id`, has ended for good. Whoever waits for
/// `failed` learns it; until then nothing comes of waiting, and of giving up waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_has_ended_by_itself_says_so() {
    let mock = mock(1);
    let outbox = Outbox::new();
    mock.create_topic("orders.DLT", 1, 1).expect("a topic for dead letters");
    let consumer = Consumer::new(&outbox, &mock.bootstrap_servers(), "clerk").topics(["orders"]);
    let consumer = consumer.property("heartbeat.interval.ms", "200").on_other(ignore);
    let mut running = consumer.start().await.expect("it starts");
    until("the partition is held", async || running.partitions().len() == 1).await;
    assert!(tokio::time::timeout(Duration::ZERO, running.failed()).await.is_err(), "it is at work");
    mock.request_errors(RDKafkaApiKey::Heartbeat, &[FENCED; 10]);
    let error = tokio::time::timeout(PATIENCE, running.failed()).await.expect("it has ended");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("the consumer has stopped because of a fatal error"), "{error}");
    assert!(error.message().contains("nstance"), "by which one: {error}");
    // Whoever asks again is told again, and there is nothing to stop.
    let error = tokio::time::timeout(PATIENCE, running.failed()).await.expect("at once");
    assert_eq!(error.message(), "the consumer has ended");
    running.stop().await.expect("there is nothing to stop");
}
