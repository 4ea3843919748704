//! From the commit of an event to a consumer of its topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider_core::Start;
use postrider_relay::Relay;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};

use crate::AnyError;
use crate::data::{Bench, OrderPaid};
use crate::engine::latency::{Times, percentile, publish};
use crate::engine::new_name;
use crate::kafka::{PARTITIONS, Topic, brokers, sink};
use crate::report::Report;

/// Events per second.
const RATE: u32 = 300;

/// Reads the topic from its beginning and notes when each event came, until it is told to stop.
fn consume(topic: &str, times: &Times, stop: &AtomicBool) -> Result<(), AnyError> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers()?)
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .create()?;
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    while !stop.load(Ordering::Acquire) {
        if let Some(message) = consumer.poll(Duration::from_millis(100)) {
            let event: OrderPaid = serde_json::from_slice(message?.payload().unwrap_or_default())?;
            times.note(&times.handled, event.order);
        }
    }
    Ok(())
}

/// The bar of latency.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let seconds = if quick { 5 } else { 30 };
    let (warm, events) = (u64::from(RATE), u64::from(RATE) * (seconds + 1));
    let bench = Bench::new(4).await?;
    let topic = Topic::new().await?;
    let (times, stop) = (Times::of(events), Arc::new(AtomicBool::new(false)));
    let consumer = {
        let (topic, times, stop) = (topic.name.clone(), Arc::clone(&times), Arc::clone(&stop));
        tokio::task::spawn_blocking(move || consume(&topic, &times, &stop))
    };
    let sink = sink(&topic.name).await?;
    let relay = Relay::new(&bench.outbox)
        .poll_interval(Duration::from_secs(60))
        .subscribe(&new_name(), |subscriber| subscriber.start(Start::Now).sink(sink));
    let relay = relay.start().await?;
    report.say(&format!("{RATE} events/s for {seconds} s, from commit to a consumer of the topic"));
    let began = tokio::time::Instant::now() + Duration::from_millis(100);
    for event in 0..events {
        tokio::time::sleep_until(began + Duration::from_secs(1) * u32::try_from(event)? / RATE).await;
        publish(&bench, &times, event).await?;
    }
    let rate = events as f64 / began.elapsed().as_secs_f64();
    for event in 0..events {
        times.wait_for(event).await?;
    }
    relay.stop().await?;
    stop.store(true, Ordering::Release);
    consumer.await??;
    let latencies = times.latencies(warm);
    let (p50, p99) = (percentile(&latencies, 50), percentile(&latencies, 99));
    let most = latencies.last().copied().unwrap_or(f64::NAN);
    let detail = format!("{rate:.0} events/s, a transaction each, poll at 60 s");
    report.at_most("commit to consumer (p50)", p50, 8.0, "ms", &detail);
    let detail = format!("p50 {p50:.2} ms, most {most:.2} ms, {} events", latencies.len());
    report.at_most("commit to consumer (p99)", p99, 20.0, "ms", &detail);
    topic.close().await?;
    bench.close().await
}
