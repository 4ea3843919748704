//! Faults that no broker shows on demand, on librdkafka's mock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider::store::{Attempt, Delivery, Outcome, Sink};
use postrider::testing::Outbox;
use postrider::{Headers, OffsetDateTime, Order, Payload, Recorded, Relay, Uuid};
use postrider_kafka::Kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

fn event(key: &str, version: i64, size: usize) -> Recorded {
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
        payload: Payload::Json(format!("\"{version}{}\"", "x".repeat(size))),
        headers: Headers::new(),
        occurred_at: now,
        recorded_at: now,
        max_attempts: None,
    }
}

fn delivery(events: Vec<Recorded>, order: Order) -> Arc<Delivery> {
    let attempts = events.into_iter().map(|event| Attempt { event: Arc::new(event), attempt: 1 });
    let mut delivery = Delivery::new("s", attempts.collect());
    delivery.order = order;
    Arc::new(delivery)
}

struct Broker(MockCluster<'static, rdkafka::producer::DefaultProducerContext>);

impl Broker {
    fn new(partitions: i32) -> Self {
        let cluster = MockCluster::new(1).expect("a mock");
        cluster.create_topic("orders", partitions, 1).expect("a topic");
        Self(cluster)
    }

    fn sink(&self, timeout: Duration) -> Kafka {
        let builder = Kafka::builder(&self.0.bootstrap_servers()).send_timeout(timeout);
        builder.property("retries", "2").property("retry.backoff.ms", "10").build().expect("a sink")
    }

    fn refuse(&self, errors: &[RDKafkaRespErr]) {
        self.0.request_errors(RDKafkaApiKey::Produce, errors);
    }

    fn relent(&self) {
        self.0.clear_request_errors(RDKafkaApiKey::Produce);
    }

    /// The versions in the topic, by key, in the order of the log.
    fn versions(&self, partitions: i32, wanted: usize) -> HashMap<String, Vec<i64>> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.0.bootstrap_servers())
            .set("group.id", "look")
            .create()
            .expect("a consumer");
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset("orders", partition, Offset::Beginning).expect("an offset");
        }
        consumer.assign(&list).expect("assigned");
        let mut found: HashMap<String, Vec<i64>> = HashMap::new();
        let end = Instant::now() + Duration::from_secs(10);
        let mut quiet = 0;
        while Instant::now() < end && quiet < 3 {
            match consumer.poll(Duration::from_millis(300)) {
                Some(Ok(message)) => {
                    let key = String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned();
                    let text: String =
                        serde_json::from_slice(message.payload().unwrap_or_default()).expect("JSON");
                    found
                        .entry(key)
                        .or_default()
                        .push(text.trim_end_matches('x').parse().expect("a version"));
                }
                Some(Err(_)) => {}
                None if found.values().map(Vec::len).sum::<usize>() >= wanted => quiet += 1,
                None => {}
            }
        }
        found
    }
}

async fn one(code: RDKafkaRespErr) -> (Result<(), String>, Option<Outcome>) {
    let broker = Broker::new(1);
    let sink = broker.sink(Duration::from_millis(1500));
    broker.refuse(&[code; 5000]);
    let delivery = delivery(vec![event("a", 1, 0)], Order::Key);
    let result = sink.deliver(Arc::clone(&delivery)).await.map_err(|unavailable| unavailable.reason);
    let outcome = delivery.take_outcomes().pop().flatten();
    // Whatever it was, once it is over the event gets through, by a new producer if need be.
    broker.relent();
    let mut last = String::new();
    for _ in 0..20 {
        match sink.deliver(Arc::clone(&delivery)).await {
            Ok(()) if delivery.take_outcomes() == [Some(Outcome::Delivered)] => return (result, outcome),
            Ok(()) => last = "held".to_owned(),
            Err(unavailable) => last = unavailable.reason,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{code:?}: it does not recover: {last}");
}

/// A batch to Kafka has one deadline and one purge.
#[tokio::test]
async fn nothing_of_a_batch_runs_on_after_it() {
    assert!(!Broker::new(1).sink(Duration::from_secs(5)).goes_on());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_brokers_say_of_themselves_is_unavailable() {
    use RDKafkaRespErr::{
        RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE as LEADER, RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION as NETWORK,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS as REPLICAS,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND as AFTER,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT as TIMED_OUT,
    };
    for code in [LEADER, NETWORK, REPLICAS, AFTER, TIMED_OUT] {
        let (result, outcome) = one(code).await;
        assert!(result.is_err(), "{code:?}: {result:?}");
        assert_eq!(outcome, None, "{code:?}: no event is to blame");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_broker_takes_is_rejected() {
    use RDKafkaRespErr::{
        RD_KAFKA_RESP_ERR_INVALID_RECORD as INVALID, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE as TOO_LARGE,
    };
    for code in [INVALID, TOO_LARGE] {
        let (_, outcome) = one(code).await;
        assert!(matches!(outcome, Some(Outcome::Reject { .. })), "{code:?}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_may_not_be_written_is_held() {
    let (result, outcome) = one(RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED).await;
    assert!(result.is_ok(), "{result:?}");
    let Some(Outcome::Hold { failure, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(failure.message.contains("orders of OrderPaid"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_in_the_middle_of_a_batch_leaves_nothing_later_before_it() {
    use RDKafkaRespErr::{
        RD_KAFKA_RESP_ERR_NO_ERROR as FINE, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED as FORBIDDEN,
    };
    for order in [Order::Key, Order::Strict] {
        let broker = Broker::new(2);
        let builder = Kafka::builder(&broker.0.bootstrap_servers()).send_timeout(Duration::from_secs(3));
        // Small requests, so that the refusal hits the middle.
        let sink = builder.property("batch.num.messages", "5").build().expect("a sink");
        broker.refuse(&[FINE, FINE, FORBIDDEN]);
        let events: Vec<Recorded> =
            (1..=40).map(|version| event(["a", "b", "c"][version as usize % 3], version, 0)).collect();
        let first = delivery(events.clone(), order);
        let _ = sink.deliver(Arc::clone(&first)).await;
        let outcomes = first.take_outcomes();
        let there = outcomes.iter().flatten().filter(|outcome| outcome.is_delivered()).count();
        let found = broker.versions(2, there);
        // Whatever is in the topic of a key is a beginning of it, without a gap.
        for (key, versions) in &found {
            let all: Vec<i64> =
                events.iter().filter(|event| event.aggregate_id == *key).map(|event| event.id).collect();
            assert!(all.starts_with(versions), "{order} {key}: {versions:?} of {all:?}");
        }
        assert!(
            (1..40).contains(&there),
            "{order}: something was taken and something refused, {there} of 40"
        );
        if order == Order::Strict {
            // Nothing at all that is later than the refused one, whatever its key.
            let mut all: Vec<i64> = found.values().flatten().copied().collect();
            all.sort_unstable();
            assert!(all.iter().copied().eq(1..=all.len() as i64), "{all:?}");
        }
        // The rest follows, in order.
        let mut left: Vec<Recorded> = events
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| !outcome.as_ref().is_some_and(Outcome::is_delivered))
            .map(|(event, _)| event.clone())
            .collect();
        let end = Instant::now() + Duration::from_secs(20);
        while !left.is_empty() {
            assert!(Instant::now() < end, "{order}: {} are left", left.len());
            let next = delivery(left.clone(), order);
            let _ = sink.deliver(Arc::clone(&next)).await;
            let outcomes = next.take_outcomes();
            let mut rest = outcomes.iter();
            left.retain(|_| !rest.next().and_then(Option::as_ref).is_some_and(Outcome::is_delivered));
        }
        for (key, versions) in broker.versions(2, 40) {
            let mut firsts: Vec<i64> = Vec::new();
            versions.iter().for_each(|version| {
                if !firsts.contains(version) {
                    firsts.push(*version);
                }
            });
            assert!(firsts.is_sorted(), "{order} {key}: {versions:?}");
        }
    }
}

/// A broker refuses what came max_tx_batch: which of it is meant shows when each is sent alone, in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_several_is_held_against_none_of_them() {
    use RDKafkaRespErr::{RD_KAFKA_RESP_ERR_INVALID_RECORD as INVALID, RD_KAFKA_RESP_ERR_NO_ERROR as FINE};
    for order in [Order::Key, Order::Strict] {
        let broker = Broker::new(1);
        let builder = Kafka::builder(&broker.0.bootstrap_servers()).send_timeout(Duration::from_secs(3));
        let sink = builder.property("batch.num.messages", "5").build().expect("a sink");
        broker.refuse(&[FINE, FINE, INVALID]);
        let mut left: Vec<Recorded> =
            (1..=40).map(|version| event(["a", "b"][version as usize / 20 % 2], version, 0)).collect();
        let end = Instant::now() + Duration::from_secs(20);
        while !left.is_empty() {
            assert!(Instant::now() < end, "{order}: {} are left", left.len());
            let next = delivery(left.clone(), order);
            let _ = sink.deliver(Arc::clone(&next)).await;
            let outcomes = next.take_outcomes();
            let blamed = outcomes.iter().flatten().find(|outcome| !outcome.is_delivered());
            assert_eq!(blamed, None, "{order}: each of them is taken alone");
            let mut rest = outcomes.iter();
            left.retain(|_| !rest.next().and_then(Option::as_ref).is_some_and(Outcome::is_delivered));
        }
        for (key, versions) in broker.versions(1, 40) {
            assert!(versions.is_sorted(), "{order} {key}: {versions:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dropped_is_never_sent() {
    let broker = Broker::new(1);
    broker.0.broker_round_trip_time(1, Duration::from_millis(400)).expect("slow");
    let sink = broker.sink(Duration::from_secs(5));
    sink.check().await.expect("it answers");
    let batch = delivery((1..=5).map(|version| event("a", version, 0)).collect(), Order::Key);
    // The lease is lost while the producer still waits for its own id: nothing is on the wire yet.
    let dropped = tokio::time::timeout(Duration::from_millis(100), sink.deliver(Arc::clone(&batch))).await;
    assert!(dropped.is_err(), "it was still under way");
    broker.0.broker_round_trip_time(1, Duration::ZERO).expect("quick");
    let after = delivery(vec![event("a", 6, 0)], Order::Key);
    let end = Instant::now() + Duration::from_secs(10);
    while sink.deliver(Arc::clone(&after)).await.is_err() {
        assert!(Instant::now() < end, "it goes on");
    }
    assert_eq!(broker.versions(1, 1).remove("a"), Some(vec![6]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_topic_holds_its_events_and_no_others_until_it_appears() {
    let broker = Broker::new(1);
    let sink = broker.sink(Duration::from_secs(3));
    let mut lost = event("a", 1, 0);
    lost.stream = "payments".into();
    let batch = delivery(vec![lost.clone(), event("b", 2, 0)], Order::Key);
    sink.deliver(Arc::clone(&batch)).await.expect("available");
    let outcomes = batch.take_outcomes();
    let Some(Outcome::Hold { failure, .. }) = &outcomes[0] else { panic!("{outcomes:?}") };
    assert!(
        failure.message.contains("the topic payments of OrderPaid does not exist"),
        "{}",
        failure.message
    );
    assert_eq!(outcomes[1], Some(Outcome::Delivered));
    broker.0.create_topic("payments", 1, 1).expect("a topic");
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let again = delivery(vec![lost.clone()], Order::Key);
        sink.deliver(Arc::clone(&again)).await.expect("available");
        if again.take_outcomes() == [Some(Outcome::Delivered)] {
            break;
        }
        assert!(Instant::now() < end, "the topic is found");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What a process that stood still has in its client must be too old to be sent before its lease is anybody else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_whose_lease_is_too_short_for_the_send_timeout_does_not_start() {
    let broker = Broker::new(1);
    let start = async |lease: u64, timeout: u64| {
        let sink = broker.sink(Duration::from_secs(timeout));
        let relay = Relay::new(&Outbox::new()).lease(Duration::from_secs(lease));
        relay.subscribe("kafka", |s| s.sink(sink)).start().await
    };
    for (lease, timeout) in [(10, 10), (24, 10), (5, 3)] {
        let sentence = start(lease, timeout).await.expect_err("refused").to_string();
        assert!(
            sentence.contains("\"kafka\": a lease of") && sentence.contains("is too short"),
            "{sentence}"
        );
    }
    for (lease, timeout) in [(25, 10), (30, 10), (5, 2)] {
        start(lease, timeout).await.expect("started").stop().await.expect("stopped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_said_at_the_start() {
    let refused =
        |builder: postrider_kafka::KafkaBuilder| builder.build().err().expect("refused").to_string();
    let broker = || Kafka::builder("127.0.0.1:1");
    assert!(
        refused(broker().property("enable.idempotence", "false"))
            .contains("must be true: otherwise records could be lost")
    );
    assert!(refused(broker().property("acks", "1")).contains("must be all"));
    assert!(refused(broker().property("no.such.thing", "1")).contains("\"no.such.thing\" is not a property"));
    let odd = refused(broker().property("linger.ms", "secret-word"));
    assert!(odd.contains("linger.ms") && !odd.contains("secret-word"), "{odd}");
    assert!(refused(broker().topic("{nowhere}")).contains("{nowhere}"));
    assert!(refused(Kafka::builder(" ")).contains("host:port"));
    let error = broker().connect().await.err().expect("nobody there").to_string();
    assert!(error.contains("127.0.0.1:1 can't be used") && error.contains("refused"), "{error}");
}

/// What came of requests, in a list.
#[derive(Debug, Default)]
struct Told(std::sync::Mutex<Vec<(String, Duration)>>);

impl postrider::store::Requests for Told {
    fn made(&self, code: &str, took: Duration) {
        self.0.lock().expect("told").push((code.to_owned(), took));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_one_request_with_what_came_of_it() {
    let broker = Broker::new(1);
    let sink = broker.sink(Duration::from_millis(1500));
    assert!(sink.codes().contains(&"ok"));
    let told = Arc::new(Told::default());
    let send = async |events: Vec<Recorded>| {
        let attempts = events.into_iter().map(|event| Attempt { event: Arc::new(event), attempt: 1 });
        let mut delivery = Delivery::new("s", attempts.collect());
        delivery.requests = Some(Arc::clone(&told) as _);
        let _ = sink.deliver(Arc::new(delivery)).await;
        std::mem::take(&mut *told.0.lock().expect("told"))
    };
    let fine = send((0..100).map(|version| event("a", version, 0)).collect()).await;
    assert_eq!(fine.iter().map(|(code, _)| code.as_str()).collect::<Vec<_>>(), ["ok"]);
    assert!(fine[0].1 > Duration::ZERO && fine[0].1 < Duration::from_secs(10), "{fine:?}");
    broker.refuse(&[RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED; 100]);
    let refused = send(vec![event("a", 200, 0)]).await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].0, "kafka_topicauthorizationfailed");
}
