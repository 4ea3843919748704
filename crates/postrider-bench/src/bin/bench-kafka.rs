//! `cargo xtask bench kafka`: the bars of Kafka, from one run on PostgreSQL and a real broker.

use std::process::ExitCode;

use postrider_bench::kafka::{drain, effects, latency, memory};
use postrider_bench::program;

#[tokio::main]
async fn main() -> ExitCode {
    // The benchmark of memory runs itself again, as a process that only drains.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, schema, topic, events] = arguments.as_slice()
        && first == memory::CHILD
    {
        return program::ended("bench-kafka", memory::child(schema, topic, events).await.map(|()| true));
    }
    program::run("bench-kafka", &["drain", "latency", "effects", "memory"], async |report, wanted| {
        if wanted.part("drain") {
            drain::run(report, wanted.quick).await?;
        }
        if wanted.part("latency") {
            latency::run(report, wanted.quick).await?;
        }
        if wanted.part("effects") {
            effects::run(report, wanted.quick).await?;
        }
        if wanted.part("memory") {
            memory::run(report, wanted.quick).await?;
        }
        Ok(())
    })
    .await
}
