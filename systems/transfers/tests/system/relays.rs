//! Relay servers that share the events.

use std::time::{Duration, Instant};

use postrider_testkit::until;
use rdkafka::mocking::MockCluster;
use transfers::acts::stage::Stage;

use crate::support::{record, settled, stage, until_looks_are_a_second_apart};

const EVENTS: i64 = 10_000;
/// So long that a broker on a busy machine answers before a batch's time is over: what is taken back then may be there twice.
const LEASE: &[&str] = &["relay.lease=15s"];

/// How many events each relay has settled, by name.
async fn shares(stage: &Stage) -> Vec<(String, i64)> {
    let sql = "select settled_by, sum(count)::bigint from postrider.settled_batch where count > 0 group by settled_by order by 1";
    sqlx::query_as(sql).fetch_all(&stage.db).await.expect("shares")
}

/// T5, T6: three relays, 10,000 events: a quarter to a half each, none missing, none twice, marked by batches of about 500. One is
/// killed halfway and another one added: nothing is missing, and what is repeated is of the open batches.
#[tokio::test(flavor = "multi_thread")]
async fn three_relays_split_ten_thousand_events_and_take_over_from_one_that_is_killed() {
    let stage = stage().await;
    let mut relays: Vec<_> = (0..3).map(|n| stage.relay(&format!("relay-{n}"), LEASE)).collect();
    stage.until_shared_by(3).await;
    record(&stage, 10_000, 300).await;
    until("all are settled", async || settled(&stage).await == EVENTS).await;
    let split = shares(&stage).await;
    assert_eq!(split.len(), 3, "{split:?}");
    for (relay, share) in &split {
        assert!((EVENTS / 4..=EVENTS / 2).contains(share), "{relay}: {split:?}");
    }
    assert_eq!(stage.records().await, EVENTS, "none is missing and none is there twice");
    let batches = stage.number("select count(*) from postrider.settled_batch where count > 0").await;
    assert!((18..=60).contains(&batches), "T5: marked by batches of about 500, not by events: {batches}");

    // Halfway, one is killed; later a fourth comes.
    record(&stage, 10_000, 300).await;
    until("they are in the middle of it", async || settled(&stage).await > EVENTS + EVENTS / 4).await;
    relays[0].process.kill();
    relays.push(stage.relay("relay-3", LEASE));
    let _fraud = stage.fraud("fraud");
    until("all are analysed", async || stage.analysed().await.1 == 2 * EVENTS).await;
    until("all are settled", async || settled(&stage).await == 2 * EVENTS).await;
    let repeated = stage.records().await - 2 * EVENTS;
    assert!((0..=2 * 1500).contains(&repeated), "more than the open batches: {repeated}");
    stage.until_shared_by(3).await;
    record(&stage, 1000, 300).await;
    until("all are settled", async || settled(&stage).await == 2 * EVENTS + 1000).await;
    let split = shares(&stage).await;
    assert!(split.iter().any(|(relay, _)| relay == "relay-3"), "the fourth works: {split:?}");
}

/// T5: a batch of 500 is with the broker before its first record is confirmed, and is marked as one. The broker's answers take half a
/// second, so one after the other they would take minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_with_the_broker_before_its_first_record_is_confirmed() {
    const ANSWERS_AFTER: Duration = Duration::from_millis(500);
    let stage = stage().await;
    let mock = MockCluster::new(1).expect("a mock");
    mock.create_topic(&stage.topic, 6, 1).expect("a topic");
    let brokers = format!("sink.kafka.brokers={}", mock.bootstrap_servers());
    let _relay = stage.relay("relay-0", &[&brokers, "relay.lease=15s"]);
    record(&stage, 1, 1).await;
    until("the first is settled", async || settled(&stage).await == 1).await;
    mock.broker_round_trip_time(1, ANSWERS_AFTER).expect("slow answers");
    let began = Instant::now();
    record(&stage, 500, 1).await;
    until("all are settled", async || settled(&stage).await == 501).await;
    let took = began.elapsed();
    assert!((ANSWERS_AFTER..25 * ANSWERS_AFTER).contains(&took), "{took:?}");
    let batches = "select count(*) from postrider.settled_batch where count = 500";
    assert_eq!(stage.number(batches).await, 1, "marked as one");
}

/// T5: without its bell, as the document has it, a relay looks every second.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_without_a_bell_looks_every_second() {
    let stage = stage().await;
    let relay = stage.relay("relay-0", &["store.bell=false"]);
    record(&stage, 1, 1).await;
    until("the first is settled", async || settled(&stage).await == 1).await;
    until_looks_are_a_second_apart(&stage).await;
    record(&stage, 1, 1).await;
    until("the next one is settled", async || settled(&stage).await == 2).await;
    let (_, settings) = stage.postrider(&["config", "check"]).await;
    assert!(settings.contains("poll interval 1s") && settings.contains("batches of 500"), "{settings}");
    drop(relay);
}

/// T6: the clock is set back by an hour under a relay that is killed. Its lease, which now ends in an hour, is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_from_the_future_holds_nobody_up() {
    let stage = stage().await;
    let mut killed = stage.relay("relay-0", &[]);
    stage.until_shared_by(1).await;
    killed.process.kill();
    stage.turn("update postrider.lane set lease_until = lease_until + interval '1 hour'").await;
    record(&stage, 30, 30).await;
    let _heir = stage.relay("relay-1", &[]);
    until("all are settled", async || settled(&stage).await == 30).await;
}
