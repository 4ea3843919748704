//! How much memory a relay takes that drains a long log into Kafka, in a process that does nothing else.

use std::sync::Arc;

use postrider_postgres::Outbox;
use postrider_relay::Relay;
use sqlx::postgres::PgPoolOptions;

use crate::AnyError;
use crate::data::{Bench, server};
use crate::engine::memory::{WIDE_BAR, drained, most_of};
use crate::engine::{Counted, Tally, new_name};
use crate::kafka::{Topic, sink};
use crate::report::Report;

/// The argument that makes the benchmark the process that drains; a schema, a topic and a number of events follow.
pub const CHILD: &str = "--drain";

/// The process that drains.
pub async fn child(schema: &str, topic: &str, events: &str) -> Result<(), AnyError> {
    let pool = PgPoolOptions::new().max_connections(4).connect_with(server()?).await?;
    let outbox = Outbox::builder().schema(schema).connect(&pool).await?;
    let tally = Tally::new(events.parse()?);
    let sink = Counted { sink: sink(topic).await?, tally: Arc::clone(&tally) };
    let relay = Relay::new(&outbox).subscribe(&new_name(), |subscriber| subscriber.sink(sink));
    let relay = relay.start().await?;
    tally.wait().await?;
    relay.stop().await?;
    tally.check()?;
    drained()
}

/// The bar of memory.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let events: u64 = if quick { 300_000 } else { 2_000_000 };
    report.say(&format!("filling a log with {events} events"));
    let bench = Bench::new(8).await?;
    bench.fill(events).await?;
    let topic = Topic::new().await?;
    report.say("draining it to Kafka in a process of its own");
    let (most, seconds) = most_of(&[CHILD, &bench.schema, &topic.name, &events.to_string()]).await?;
    let detail = format!("VmHWM of a process with one relay, {events} events in {seconds:.1} s");
    report.at_most("resident memory while draining to Kafka", most, 96.0, "MB", &detail);
    topic.close().await?;
    bench.close().await?;

    let events: u64 = if quick { 400 } else { 1_500 };
    report.say(&format!("draining {events} events of 1 MB to Kafka"));
    let bench = Bench::new(8).await?;
    bench.fill_wide(events).await?;
    let topic = Topic::new().await?;
    let (most, seconds) = most_of(&[CHILD, &bench.schema, &topic.name, &events.to_string()]).await?;
    let detail = format!("VmHWM of a process with one relay, {events} events in {seconds:.1} s");
    report.at_most("resident memory, events of 1 MB to Kafka", most, WIDE_BAR, "MB", &detail);
    topic.close().await?;
    bench.close().await
}
