//! `cargo xtask bench engine`: the engine's bars, from one run on PostgreSQL.

use std::process::ExitCode;

use postrider_bench::engine::{drain, effects, idle, latency, memory, open, slow};
use postrider_bench::program;

#[tokio::main]
async fn main() -> ExitCode {
    // The benchmark of memory runs itself again, as a process that only drains.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, schema, events] = arguments.as_slice()
        && first == memory::CHILD
    {
        return program::ended("bench-engine", memory::child(schema, events).await.map(|()| true));
    }
    if let [first, schema, events, url] = arguments.as_slice()
        && first == memory::CHILD
    {
        return program::ended("bench-engine", memory::child_to(schema, events, url).await.map(|()| true));
    }
    program::run(
        "bench-engine",
        &["drain", "latency", "slow", "effects", "idle", "memory", "open"],
        async |report, wanted| {
            if wanted.part("drain") {
                drain::run(report, wanted.quick).await?;
            }
            if wanted.part("latency") {
                latency::run(report, wanted.quick).await?;
            }
            if wanted.part("slow") {
                slow::run(report, wanted.quick).await?;
            }
            if wanted.part("effects") {
                effects::run(report, wanted.quick).await?;
            }
            if wanted.part("idle") {
                idle::run(report, wanted.quick).await?;
            }
            if wanted.part("memory") {
                memory::run(report, wanted.quick).await?;
            }
            if wanted.part("open") {
                open::run(report, wanted.quick).await?;
            }
            Ok(())
        },
    )
    .await
}
