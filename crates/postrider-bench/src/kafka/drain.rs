//! How fast a relay drains a log into a topic, against a bare loop of the same producer without any database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_kafka::Kafka;
use postrider_relay::Relay;
use rdkafka::ClientContext;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode as Code;

use crate::data::{Bench, OrderPaid};
use crate::engine::Counted;
use crate::engine::{Tally, new_name};
use crate::kafka::{Topic, brokers, sink};
use crate::report::Report;
use crate::{AnyError, in_turns};

/// Counts what was confirmed, and what was not.
#[derive(Default)]
struct Confirmed {
    taken: AtomicU64,
    refused: AtomicU64,
}

impl ClientContext for Confirmed {}

impl ProducerContext for Confirmed {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let count = if result.is_ok() { &self.taken } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Headers as the sink writes them for an event of the log; four more are added for each record.
const HEADERS: [(&str, &str); 6] = [
    ("ce_correlationid", "c-1234567890"),
    ("content-type", "application/json"),
    ("ce_source", "shop"),
    ("ce_specversion", "1.0"),
    ("ce_tenant", "acme"),
    ("ce_traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
];

/// Produces as fast as one thread can, from first to last confirmation. Events per second.
fn bare(topic: &str, events: u64) -> Result<f64, AnyError> {
    let config = Kafka::builder(&brokers()?).client();
    let producer: BaseProducer<Confirmed> = config.create_with_context(Confirmed::default())?;
    let producer = Arc::new(producer);
    // Connected, and the topic known, before the clock starts; as the relay's sink is.
    producer.client().fetch_metadata(Some(topic), Duration::from_secs(10))?;
    let payload = serde_json::to_vec(&OrderPaid::of(1))?;
    let began = Instant::now();
    for number in 0..events {
        let id = uuid::Uuid::now_v7().to_string();
        let headers = HEADERS.iter().fold(
            OwnedHeaders::new_with_capacity(HEADERS.len() + 4)
                .insert(Header { key: "ce_id", value: Some(&id) }),
            |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }),
        );
        let headers = headers
            .insert(Header { key: "ce_type", value: Some("OrderPaid") })
            .insert(Header { key: "ce_time", value: Some("2026-01-01T00:00:00.123456Z") })
            .insert(Header { key: "ce_subject", value: Some("4711") });
        let key = (number % 5000).to_string();
        let mut record = BaseRecord::to(topic).key(&key).payload(&payload).headers(headers);
        while let Err((error, back)) = producer.send(record) {
            if error.rdkafka_error_code() != Some(Code::QueueFull) {
                return Err(error.into());
            }
            producer.poll(Duration::from_millis(1));
            record = back;
        }
        if number % 100 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(Duration::from_secs(60))?;
    let rate = events as f64 / began.elapsed().as_secs_f64();
    let counts = producer.context();
    let (taken, refused) = (counts.taken.load(Ordering::Relaxed), counts.refused.load(Ordering::Relaxed));
    if taken != events {
        return Err(format!("{taken} of {events} records were taken, {refused} refused").into());
    }
    Ok(rate)
}

/// One relay with one lane, from its start until the brokers have confirmed all. Events per second.
async fn relay(bench: &Bench, topic: &str, events: u64) -> Result<f64, AnyError> {
    let tally = Tally::new(events);
    let sink = Counted { sink: sink(topic).await?, tally: Arc::clone(&tally) };
    let began = Instant::now();
    let relay = Relay::new(&bench.outbox).subscribe(&new_name(), |subscriber| subscriber.sink(sink));
    let relay = relay.start().await?;
    tally.wait().await?;
    let rate = events as f64 / began.elapsed().as_secs_f64();
    relay.stop().await?;
    tally.check()?;
    Ok(rate)
}

/// The bar of draining.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (events, turns) = if quick { (100_000, 3) } else { (500_000, 5) };
    report.say(&format!("filling a log with {events} events"));
    let bench = Bench::new(8).await?;
    bench.fill(events).await?;
    let topic = Topic::new().await?;
    report.say("draining to Kafka, in turns with a producer without a database");
    let bare = || {
        let name = topic.name.clone();
        async move { tokio::task::spawn_blocking(move || bare(&name, events)).await? }
    };
    let (bare, rate, ratio) =
        in_turns(turns, async || bare().await, async || relay(&bench, &topic.name, events).await).await?;
    let detail = format!(
        "{rate:.0} against {bare:.0} events/s, the ratio of neighbouring turns; {events} events, 10 headers"
    );
    report.at_least("PostgreSQL to Kafka, one lane / a bare producer", 100.0 * ratio, 60.0, "%", &detail);
    topic.close().await?;
    bench.close().await
}
