//! Events of other times than now, in topics that keep records for a while and take no odd times: a record's own time is that of
//! its producing, and when the event occurred is in a header.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::{Operate, Replay, ReplayFrom};
use postrider::testing::until_quiet;
use postrider::{Failure, NewEvent, OffsetDateTime, Received, Relay, Running, Uuid};
use postrider_kafka::{Consumer, Format, Kafka};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use time::format_description::well_known::Rfc3339;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{IncomingEvent, Topic};
use crate::fixture::Fixture;
use crate::{PATIENCE, until};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const FORMATS: [(Format, &str, &str); 3] = [
    (Format::Binary, "binary", "ce_time"),
    (Format::Structured, "structured", "ce_time"),
    (Format::Payload, "payload", "occurred_at"),
];

/// A broker that looks for what is too old all the time, with topics that keep a day and take times of about now alone.
fn broker() -> Broker {
    let options = Options::new()
        .property("log.retention.check.interval.ms", "200")
        .property("log.initial.task.delay.ms", "200");
    let broker = Broker::create(&options).expect("a broker starts");
    let keep_a_day = ("retention.ms", "86400000");
    let now_alone = [
        keep_a_day,
        ("message.timestamp.before.max.ms", "3600000"),
        ("message.timestamp.after.max.ms", "3600000"),
    ];
    let topics: Vec<(&str, u16)> = FORMATS.map(|(_, name, _)| (name, 1)).to_vec();
    broker.create_topics_with(&topics, &now_alone).expect("topics");
    broker.create_topics_with(&[("control", 1)], &[keep_a_day]).expect("a topic");
    broker
}

/// Waits until the broker has thrown away what is too old, wherever it is.
async fn until_swept(broker: &Broker) {
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().expect("a producer");
    let old = OffsetDateTime::now_utc() - 10 * DAY;
    let record = BaseRecord::to("control").key("k").payload("1").timestamp(old.unix_timestamp() * 1000);
    producer.send(record).expect("sent");
    producer.flush(PATIENCE).expect("flushed");
    let control = Topic::new(&broker.bootstrap(), "control", 1);
    until("a record of ten days ago is gone", async || control.is_emptied()).await;
}

async fn record(fixture: &Fixture, occurred_at: OffsetDateTime) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for (_, stream, _) in FORMATS {
        let mut event = NewEvent::of(stream, "OrderPaid", "Order", "order-1", &1).expect("an event");
        event.occurred_at = Some(occurred_at);
        let mut tx = fixture.outbox.pool().begin().await.expect("a transaction");
        ids.push(fixture.outbox.record(&mut tx, &event).await.expect("recorded"));
        tx.commit().await.expect("committed");
    }
    ids
}

/// A relay with a subscription for each format, each to a topic of its own.
async fn relay(fixture: &Fixture, broker: &Broker) -> Running {
    let mut relay = Relay::new(&fixture.outbox);
    for (format, name, _) in FORMATS {
        let sink = Kafka::builder(&broker.bootstrap()).format(format).connect().await.expect("a sink");
        relay = relay.subscribe(name, |s| s.sink(sink).streams([name]));
    }
    relay.start().await.expect("started")
}

async fn until_all_quiet(relay: &Running) {
    for (_, name, _) in FORMATS {
        until_quiet(relay, name).await.expect("all went somewhere");
    }
}

/// Each topic has so many records of about now, which say when their event occurred.
fn assert_kept(broker: &Broker, count: usize, occurred_at: OffsetDateTime) {
    let now = OffsetDateTime::now_utc().unix_timestamp() * 1000;
    for (_, name, header) in FORMATS {
        let arrivals: Vec<IncomingEvent> = Topic::new(&broker.bootstrap(), name, 1).arrivals();
        assert_eq!(arrivals.len(), count, "{name}: all of them are still there");
        for arrival in arrivals {
            let time = arrival.time.expect("a time");
            assert!((now - time).abs() < 600_000, "{name}: {time} is not about now, {now}");
            let occurred = arrival.header(header).expect(header);
            assert_eq!(OffsetDateTime::parse(occurred, &Rfc3339), Ok(occurred_at), "{name}");
        }
    }
}

/// What a handler behind each topic is told of when events occurred. One that comes twice at once is told of once.
async fn told(broker: &Broker, fixture: &Fixture) -> Vec<OffsetDateTime> {
    let seen: Arc<Mutex<Vec<OffsetDateTime>>> = Arc::default();
    let handled = Arc::clone(&seen);
    let consumer = Consumer::new(&fixture.outbox, &broker.bootstrap(), "times")
        .topics(FORMATS.map(|(_, name, _)| name))
        .on_type("OrderPaid", move |event: Received<i64>| {
            handled.lock().expect("a list").push(event.event().occurred_at);
            async { Ok::<_, Failure>(()) }
        })
        .start()
        .await
        .expect("started");
    until("all is handled", async || seen.lock().expect("a list").len() >= FORMATS.len()).await;
    consumer.stop().await.expect("stopped");
    std::mem::take(&mut *seen.lock().expect("a list"))
}

/// To the microsecond, as the database keeps it.
fn ago(time: Duration) -> OffsetDateTime {
    let moment = OffsetDateTime::now_utc() - time;
    moment.replace_nanosecond(123_456_000).expect("a time")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_ten_days_ago_and_its_replay_stay_in_a_topic_that_keeps_a_day() {
    let (broker, fixture) = (broker(), Fixture::new().await);
    let occurred_at = ago(10 * DAY);
    let ids = record(&fixture, occurred_at).await;
    let relay = relay(&fixture, &broker).await;
    until_all_quiet(&relay).await;
    until_swept(&broker).await;
    assert_kept(&broker, 1, occurred_at);
    let operator = fixture.outbox.store().await.expect("a store");
    for ((_, name, _), id) in FORMATS.into_iter().zip(ids) {
        let replay = Replay {
            subscription: name.to_owned(),
            from: ReplayFrom::Event(id),
            effects_may_repeat: true,
            dry_run: false,
        };
        assert_eq!(operator.replay(&replay).await.expect("replayed").events, 1);
    }
    until("all came again", async || {
        FORMATS.iter().all(|(_, name, _)| Topic::new(&broker.bootstrap(), name, 1).count() == 2)
    })
    .await;
    until_swept(&broker).await;
    assert_kept(&broker, 2, occurred_at);
    let told = told(&broker, &fixture).await;
    assert!(told.iter().all(|time| *time == occurred_at), "{told:?}");
    relay.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_clock_nine_hours_ahead_is_delivered() {
    let (broker, fixture) = (broker(), Fixture::new().await);
    let occurred_at = ago(Duration::ZERO) + Duration::from_secs(9 * 60 * 60);
    let ids = record(&fixture, occurred_at).await;
    let relay = relay(&fixture, &broker).await;
    for ((_, name, _), id) in FORMATS.into_iter().zip(ids) {
        relay.delivered(name, id, PATIENCE).await.expect("delivered, and not dead");
    }
    assert_kept(&broker, 1, occurred_at);
    assert_eq!(told(&broker, &fixture).await, [occurred_at; 3]);
    relay.stop().await.expect("stopped");
}
