//! The relay, as the real binary: strict order, expiry, batches, and two of them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use commerce::adapters::mapping;
use commerce::domain::DomainEvent;
use postrider_testkit::{Logged, until, until_true};
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use sqlx::Connection as _;

use crate::world::{World, depleted, liked, viewed};

impl World {
    /// Records views of products 1 to `count`, and gives their ids in order.
    pub(crate) async fn record_views(&self, count: i64) -> Vec<String> {
        self.record((1..=count).map(|number| viewed(number, 1))).await
    }

    /// Records facts in one transaction, and gives their ids in order.
    async fn record(&self, facts: impl Iterator<Item = DomainEvent>) -> Vec<String> {
        let events: Vec<_> = facts.map(|fact| mapping::json(&fact).expect("JSON")).collect();
        let mut connection = self.pool.acquire().await.expect("a connection");
        let mut tx = connection.begin().await.expect("a transaction");
        self.outbox.record_all(&mut tx, &events).await.expect("recorded");
        tx.commit().await.expect("committed");
        events.iter().map(|event| event.event_id.to_string()).collect()
    }
}

/// C17 (a single failure; nothing overtakes it), C4, C6, C8: the topic of one event is missing. It is retried and nothing overtakes it, whatever its key;
/// once the topic is there, everything goes out in order.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_fails_is_retried_and_holds_up_all_that_follow_whatever_their_keys() {
    let world = World::new(&["product-events", "like-events"]).await;
    let before = world.publish(viewed(1, 1)).await;
    let failing = world.publish(depleted(2)).await;
    let behind = [world.publish(viewed(3, 1)).await, world.publish(liked(4, 1)).await];
    let relay = world.relay("one", &[]);
    let retried =
        format!("select count(*) from outbox where event_id = '{failing}' and next_retry_at > now()");
    world.until_number("it waits for its next try", &retried, 1).await;
    assert_eq!(world.state(before).await, "done", "what was before it in the batch is confirmed");
    for event in behind {
        assert_ne!(world.state(event).await, "done", "nothing overtakes it");
    }
    assert_eq!((world.topic("product-events").count(), world.topic("like-events").count()), (1, 0));
    let sentence =
        format!("the topic {} of loopers.stock.depleted.v1 does not exist", world.name("stock-events"));
    until_true("it says why", || relay.log().contains(&sentence)).await;
    assert_eq!(world.topic("stock-events").count(), 0, "the relay creates no topic");
    let cursor = "select (select id from outbox where event_type like '%stock%') - last_processed_id from outbox_cursor";
    assert_eq!(world.number(cursor).await, 1, "the cursor stands before it");
    world.create(&["stock-events"]);
    world.until_sent().await;
    assert_eq!(world.number("select count(*) from outbox_failed").await, 0);
    let counts = ["product-events", "stock-events", "like-events"].map(|topic| world.topic(topic).count());
    assert_eq!(counts, [2, 1, 1]);
    let order = "select event_type from postrider.event_state where delivered_at is not null order by delivered_at, id";
    let sent = world.texts(order).await;
    assert_eq!(sent[1], "loopers.stock.depleted.v1", "{sent:?}");
}

/// C17 (five minutes), C6, C7: at five minutes from its recording it is in `outbox_failed` with its error, and the rest goes on. The
/// file's own five minutes, with the event's time turned back by 4:56.
#[tokio::test(flavor = "multi_thread")]
async fn after_five_minutes_it_is_failed_with_its_error_and_the_rest_goes_on() {
    let world = World::new(&["product-events"]).await;
    let relay = world.relay("one", &[]);
    until_true("the relay runs", || relay.log().contains("the relay is running")).await;
    let old = world.publish_aged(depleted(2), "4 min 56 s").await;
    let behind = world.publish(viewed(3, 1)).await;
    until("it is retried first", async || world.state(old).await == "retrying").await;
    assert_ne!(world.state(behind).await, "done");
    until("it is dead", async || world.state(old).await == "dead").await;
    until("the rest goes on", async || world.state(behind).await == "done").await;
    let failed = "select concat_ws('|', event_id, aggregate_type, aggregate_id, payload, failed_at > now() - interval '1 min', error_message)
        from outbox_failed";
    let failed = world.texts(failed).await.pop().expect("a row");
    assert!(failed.starts_with(&format!("{old}|Stock|2|{{\"productId\":2}}|t|the topic ")), "{failed}");
    // C14: the expiry is a warning with the time of recording and the age.
    until_true("it says so", || relay.log().contains("expired; it is dead until an operator acts")).await;
    let log = relay.log();
    let line = log.lines().find(|line| line.contains("expired; it is dead")).expect("a line");
    for part in ["WARN", "recorded_at=", "age_seconds=30", &old.to_string()] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let alert = world.postrider(&["alerts", "check", "--config", &world.relay_file("check", &[])]);
    assert_eq!({ alert }.output().expect("it runs").status.code(), Some(1), "dead > 0 is watched");
    // Kept for ever: it does not come back by itself, and an operator can put it back.
    world.create(&["stock-events"]);
    let file = world.relay_file("check", &[]);
    world.publish(viewed(4, 1)).await;
    until("another is sent", async || world.topic("product-events").count() == 2).await;
    assert_eq!(world.state(old).await, "dead");
    // It is too old for a second try, so what is put back before the relay knows of the topic is dead again.
    until("it is sent at last", async || {
        if world.state(old).await == "dead" {
            let id = old.to_string();
            world.said(&["dead", "requeue", &id, "--subscription", "kafka", "--yes", "--config", &file]);
        }
        world.topic("stock-events").count() == 1
    })
    .await;
}

/// C17 (a single failure), C6: what the broker refuses is tried again ten seconds later, not sooner, and what follows waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_refuses_is_tried_again_ten_seconds_later() {
    /// A broker's answer that is nobody's outage.
    const REFUSAL: RDKafkaRespErr = RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REQUEST;
    let mock = MockCluster::new(1).expect("a mock");
    let world = World::on(&mock.bootstrap_servers()).await;
    mock.create_topic(&world.name("product-events"), 3, 1).expect("a topic");
    let relay = world.relay("one", &[]);
    world.publish(viewed(7, 0)).await;
    world.until_sent().await;
    mock.request_errors(RDKafkaApiKey::Produce, &[REFUSAL]);
    let refused = world.publish(viewed(7, 1)).await;
    let said = |line: &str| line.contains(&refused.to_string()) && line.contains("it will be retried");
    until_true("it is refused", || relay.log().lines().any(said)).await;
    let log = relay.log();
    let line = log.lines().find(|line| said(line)).expect("a line");
    assert!(line.contains("WARN") && line.contains("next_in_seconds=10"), "{line}");
    let next = "select (extract(epoch from next_retry_at - clock_timestamp()) * 1000)::bigint from outbox where event_id = ";
    let next = world.number(&format!("{next}'{refused}'")).await;
    assert!((5_000..=10_000).contains(&next), "in {next} ms");
    let began = Instant::now();
    let behind = world.publish(viewed(8, 1)).await;
    world.until_sent().await;
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(u64::try_from(next).unwrap_or_default() - 1_000), "{took:?}");
    let order = "select event_id::text from postrider.event order by id desc limit 2";
    assert_eq!(world.texts(order).await, [behind.to_string(), refused.to_string()]);
    let sent: Vec<String> =
        world.topic("product-events").records().iter().map(crate::topic::Record::id).collect();
    assert_eq!(sent.len(), 3, "each once: {sent:?}");
}

/// C17 (a single failure), C7: an event that no broker will ever take is failed at once, and the rest does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_too_large_is_failed_at_once_and_the_rest_goes_on() {
    let world = World::new(&[]).await;
    let port = world.brokers.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let topic = world.name("product-events");
    xtask::kafka::topics::create(port, &[(&topic, 3)], &[("max.message.bytes", "2000")]).expect("a topic");
    xtask::kafka::topics::wait_until_complete(port, &[&topic]).expect("a topic");
    world.publish(viewed(1, 1)).await;
    let large =
        postrider::NewEvent::of("product", mapping::PRODUCT_VIEWED, "Product", "2", &"x".repeat(5000));
    let mut connection = world.pool.acquire().await.expect("a connection");
    let large = world.outbox.record(&mut connection, &large.expect("an event")).await.expect("recorded");
    world.publish(viewed(3, 1)).await;
    let _relay = world.relay("one", &[]);
    world.until_sent().await;
    assert_eq!(world.texts("select event_id from outbox_failed").await, [large.to_string()]);
    let keys: HashSet<String> = world.topic("product-events").records().into_iter().map(|r| r.key).collect();
    assert_eq!(keys, HashSet::from(["1".to_owned(), "3".to_owned()]));
}

/// C8: a hundred events of one key are with the broker before the first of them is confirmed. Its answers take half a second, so one after
/// the other they would take at least 50 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_with_the_broker_before_its_first_record_is_confirmed() {
    const ANSWERS_AFTER: Duration = Duration::from_millis(500);
    let mock = MockCluster::new(1).expect("a mock");
    let world = World::on(&mock.bootstrap_servers()).await;
    mock.create_topic(&world.name("product-events"), 3, 1).expect("a topic");
    let _relay = world.relay("one", &[]);
    world.publish(viewed(7, 0)).await;
    world.until_sent().await;
    mock.broker_round_trip_time(1, ANSWERS_AFTER).expect("slow answers");
    let began = Instant::now();
    world.record((1..=100).map(|user| viewed(7, user))).await;
    world.until_sent().await;
    let took = began.elapsed();
    assert!((ANSWERS_AFTER..25 * ANSWERS_AFTER).contains(&took), "{took:?}");
    assert_eq!(world.texts(ROUNDS).await, ["1 100"], "and confirmed together");
}

/// The sizes of the relay's rounds, in order.
pub(crate) const ROUNDS: &str =
    "select string_agg(count::text, ' ' order by last_id) from postrider.settled_batch where count > 0";

/// C8: 250 events are three rounds of 100 at most, confirmed in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_round_has_a_hundred_events_that_are_confirmed_in_order() {
    let world = World::new(&["product-events"]).await;
    let ids = world.record_views(250).await;
    let _relay = world.relay("one", &[]);
    world.until_sent().await;
    assert_eq!(world.texts(ROUNDS).await, ["100 100 50"]);
    let records = world.topic("product-events").records();
    assert_eq!(records.len(), 250);
    for partition in 0..3 {
        let sent: Vec<usize> = records
            .iter()
            .filter(|record| record.partition == partition)
            .map(|record| ids.iter().position(|id| *id == record.id()).expect("one of them"))
            .collect();
        assert!(sent.is_sorted() && sent.len() > 20, "partition {partition}: {sent:?}");
    }
}

/// C17 (two relays), C9: one of two works; when it is killed the other goes on, and nothing but the batch in hand comes again.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_relays_one_is_active_and_the_other_takes_over_when_it_is_killed() {
    let world = World::new(&["product-events"]).await;
    let ids = world.record_views(3000).await;
    let mut relays: Vec<(&str, Logged)> =
        ["one", "two"].into_iter().map(|name| (name, world.relay(name, &[]))).collect();
    let topic = world.topic("product-events");
    until_true("records arrive", || topic.count() >= 300).await;
    let holder = world.texts("select lease_owner from postrider.lane where subscription = 'kafka'").await;
    let deliverers = "select distinct settled_by from postrider.settled_batch where count > 0 order by 1";
    assert_eq!(world.texts(deliverers).await, holder, "one is active");
    let at = relays.iter().position(|(name, _)| holder[0].starts_with(name)).expect("the holder");
    relays[at].1.process.kill();
    world.until_sent().await;
    assert_eq!(world.texts(deliverers).await.len(), 2, "the other took over");
    let sent: Vec<String> = topic.records().iter().map(crate::topic::Record::id).collect();
    let known: HashSet<&String> = sent.iter().collect();
    assert_eq!(known.len(), ids.len(), "nothing is lost");
    assert!(sent.len() - known.len() <= 100, "{} came again", sent.len() - known.len());
}
