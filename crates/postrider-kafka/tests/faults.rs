//! Each error that a broker can answer with, and answers that are lost, on librdkafka's mock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider::{Attempt, Delivery, Headers, OffsetDateTime, Order, Outcome, Payload, Recorded, Sink, Uuid};
use postrider_kafka::{Kafka, Remedy};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::types::RDKafkaApiKey;
use rdkafka::types::RDKafkaRespErr::{self, *};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::task::{JoinSet, LocalSet};

type Mock = MockCluster<'static, rdkafka::producer::DefaultProducerContext>;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What each error of a broker leads to.
const ANSWERS: &[(RDKafkaRespErr, Remedy)] = &[
    (RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, Remedy::Reject),
    (RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, Remedy::Reject),
    (RD_KAFKA_RESP_ERR_INVALID_RECORD, Remedy::Reject),
    (RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, Remedy::Reject),
    (RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, Remedy::Reject),
    // The client asks on while the brokers list the topic: two that contradict each other can't be believed.
    (RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, Remedy::Unavailable),
    (RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, Remedy::HoldTopic),
    (RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, Remedy::HoldTopic),
    (RD_KAFKA_RESP_ERR_POLICY_VIOLATION, Remedy::HoldTopic),
    (RD_KAFKA_RESP_ERR_INVALID_MSG, Remedy::Retry),
    (RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, Remedy::Retry),
    (RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, Remedy::Retry),
];

fn event(key: &str, version: i64) -> Recorded {
    let now = OffsetDateTime::now_utc();
    Recorded {
        id: version,
        event_id: Uuid::now_v7(),
        stream: "orders".into(),
        event_type: "OrderPaid".into(),
        aggregate_type: "Order".into(),
        aggregate_id: key.to_owned(),
        ordering_key: None,
        sequence: None,
        payload: Payload::Json(version.to_string()),
        headers: Headers::new(),
        occurred_at: now,
        recorded_at: now,
        max_attempts: None,
    }
}

fn delivery(events: &[Recorded], order: Order) -> Arc<Delivery> {
    let attempts = events.iter().map(|event| Attempt { event: Arc::new(event.clone()), attempt: 1 });
    let mut delivery = Delivery::new("s", attempts.collect());
    delivery.order = order;
    Arc::new(delivery)
}

fn mock(partitions: i32) -> Mock {
    let cluster = MockCluster::new(1).expect("a mock");
    cluster.create_topic("orders", partitions, 1).expect("a topic");
    cluster
}

/// What is made of an outcome of one event.
fn remedy(result: &Result<(), postrider::Unavailable>, outcome: Option<&Outcome>) -> Option<Remedy> {
    match (result, outcome) {
        (Err(_), None) => Some(Remedy::Unavailable),
        (Ok(()), Some(Outcome::Retry { .. })) => Some(Remedy::Retry),
        (Ok(()), Some(Outcome::Reject { .. })) => Some(Remedy::Reject),
        (Ok(()), Some(Outcome::Hold { .. })) => Some(Remedy::HoldTopic),
        _ => None,
    }
}

/// A broker answers with nothing but this error, until it does not any more.
async fn answered_with(code: RDKafkaRespErr, wanted: Remedy) -> Result<(), String> {
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .send_timeout(Duration::from_secs(2))
        .property("retries", "2")
        .property("retry.backoff.ms", "10")
        .build()
        .expect("a sink");
    mock.request_errors(RDKafkaApiKey::Produce, &[code; 5000]);
    let first = delivery(&[event("a", 1)], Order::Key);
    let result = sink.deliver(Arc::clone(&first)).await;
    let outcome = first.take_outcomes().pop().flatten();
    let found = remedy(&result, outcome.as_ref());
    mock.clear_request_errors(RDKafkaApiKey::Produce);
    let end = Instant::now() + PATIENCE;
    loop {
        let again = delivery(&[event("a", 1)], Order::Key);
        let result = sink.deliver(Arc::clone(&again)).await;
        let outcome = again.take_outcomes().pop().flatten();
        if outcome == Some(Outcome::Delivered) {
            break;
        }
        if Instant::now() > end {
            return Err(format!("{code:?}: it does not recover: {result:?}, {outcome:?}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if found == Some(wanted) {
        return Ok(());
    }
    Err(format!("{code:?} is {found:?} instead of {wanted:?}: {result:?}, {outcome:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_of_a_broker_has_its_remedy_and_is_got_over() {
    let mut answers = JoinSet::new();
    // A mock stays on its thread.
    let here = LocalSet::new();
    for (code, wanted) in ANSWERS {
        answers.spawn_local_on(answered_with(*code, *wanted), &here);
    }
    let answers = here.run_until(answers.join_all()).await;
    let wrong: Vec<String> = answers.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The versions of each key in the topic, in the order of the log.
fn versions(mock: &Mock, partitions: i32) -> HashMap<String, Vec<i64>> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", mock.bootstrap_servers())
        .set("group.id", "look")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    let mut ends = Vec::new();
    for partition in 0..partitions {
        list.add_partition_offset("orders", partition, Offset::Beginning).expect("an offset");
        ends.push(consumer.fetch_watermarks("orders", partition, PATIENCE).expect("an end").1);
    }
    consumer.assign(&list).expect("assigned");
    let (mut found, mut next) = (HashMap::<String, Vec<i64>>::new(), vec![0; ends.len()]);
    let deadline = Instant::now() + PATIENCE;
    while next.iter().zip(&ends).any(|(next, end)| next < end) {
        assert!(Instant::now() < deadline, "{next:?} of {ends:?} were read");
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
            next[message.partition() as usize] = message.offset() + 1;
            let key = String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned();
            let version = serde_json::from_slice(message.payload().unwrap_or_default()).expect("a version");
            found.entry(key).or_default().push(version);
        }
    }
    found
}

/// Delivers events until each is, as a relay does: what was not reported is given again, in the same order.
async fn deliver_all(sink: &Kafka, mut left: Vec<Recorded>, order: Order) {
    let end = Instant::now() + PATIENCE;
    while !left.is_empty() {
        assert!(Instant::now() < end, "{order}: {} are left", left.len());
        let next = delivery(&left, order);
        let _ = sink.deliver(Arc::clone(&next)).await;
        let outcomes = next.take_outcomes();
        let mut rest = outcomes.iter();
        left.retain(|_| !rest.next().and_then(Option::as_ref).is_some_and(Outcome::is_delivered));
    }
}

/// The mock appends at once and answers later: what goes down in between has taken records that nobody heard of.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_lost_lose_nothing_and_reorder_no_key() {
    const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
    const BATCH: i64 = 200;
    for order in [Order::Key, Order::Strict] {
        let mock = mock(2);
        let sink = Kafka::builder(&mock.bootstrap_servers())
            .send_timeout(Duration::from_secs(2))
            .property("batch.num.messages", "7")
            .build()
            .expect("a sink");
        let mut events: Vec<Recorded> = Vec::new();
        for _ in 0..5 {
            let last = events.len() as i64;
            // Runs of a key: under strict order they go together.
            let new = |version| event(KEYS[(version / 10) as usize % KEYS.len()], version);
            let batch: Vec<Recorded> = (last + 1..=last + BATCH).map(new).collect();
            // One goes through, so that the next are on their way at once.
            deliver_all(&sink, batch[..1].to_vec(), order).await;
            mock.broker_round_trip_time(1, PATIENCE).expect("no answers");
            let breaking = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                mock.broker_down(1).expect("down");
                mock.broker_round_trip_time(1, Duration::ZERO).expect("quick answers");
                mock.broker_up(1).expect("up");
            };
            tokio::join!(deliver_all(&sink, batch[1..].to_vec(), order), breaking);
            events.extend(batch);
        }
        let found = versions(&mock, 2);
        for key in KEYS {
            let wanted: Vec<i64> =
                events.iter().filter(|event| event.aggregate_id == key).map(|event| event.id).collect();
            let mut known = HashSet::new();
            let firsts: Vec<i64> =
                found[key].iter().copied().filter(|version| known.insert(*version)).collect();
            assert_eq!(firsts, wanted, "{order} {key}: {:?}", found[key]);
        }
        let again = found.values().map(Vec::len).sum::<usize>() - events.len();
        assert!(again > 0, "{order}: no answer was lost, so nothing was tried");
    }
}

/// What fails for a moment is sent again by the client itself; what was sent behind it must not get in before it.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_fail_for_a_moment_reorder_no_key() {
    use RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR as FINE;
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .property("batch.num.messages", "5")
        .property("retry.backoff.ms", "10")
        .build()
        .expect("a sink");
    deliver_all(&sink, vec![event("a", 1)], Order::Key).await;
    let timed_out = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT;
    mock.request_errors(RDKafkaApiKey::Produce, &[FINE, timed_out, FINE, FINE, timed_out, timed_out, FINE]);
    let events: Vec<Recorded> = (2..=200).map(|version| event("a", version)).collect();
    deliver_all(&sink, events, Order::Key).await;
    let found = versions(&mock, 1).remove("a").expect("versions");
    let mut known = HashSet::new();
    let firsts: Vec<i64> = found.iter().copied().filter(|version| known.insert(*version)).collect();
    assert_eq!(firsts, (1..=200).collect::<Vec<i64>>(), "{found:?}");
}

/// The client's own timeout takes record by record: it gives up the first of a key and sends the next. Here a broker is so
/// slow that some records would wait too long, and those behind them would not.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_time_is_over_is_taken_back_as_a_whole() {
    let mock = mock(1);
    let sink = Kafka::builder(&mock.bootstrap_servers())
        .send_timeout(Duration::from_secs(2))
        .property("batch.num.messages", "7")
        .property("queue.buffering.max.messages", "600")
        .build()
        .expect("a sink");
    deliver_all(&sink, vec![event("a", 1)], Order::Key).await;
    mock.broker_round_trip_time(1, Duration::from_millis(150)).expect("slow answers");
    let events: Vec<Recorded> = (2..=1000).map(|version| event("a", version)).collect();
    let quicker = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        mock.broker_round_trip_time(1, Duration::ZERO).expect("quick answers");
    };
    tokio::join!(deliver_all(&sink, events, Order::Key), quicker);
    let found = versions(&mock, 1).remove("a").expect("versions");
    let mut known = HashSet::new();
    let firsts: Vec<i64> = found.iter().copied().filter(|version| known.insert(*version)).collect();
    let gap = firsts.windows(2).find(|pair| pair[1] != pair[0] + 1);
    assert_eq!((firsts.len(), gap), (1000, None));
}
