//! `cargo xtask bench kafka`: the bars of Kafka, from one run on PostgreSQL and a real broker.

use std::process::ExitCode;

use postrider_bench::Failure;
use postrider_bench::kafka::{drain, effects, latency, memory};
use postrider_bench::report::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The benchmark of memory runs itself again, as a process that only drains.
    if let [first, schema, topic, events] = arguments.as_slice()
        && first == memory::CHILD
    {
        return match memory::child(schema, topic, events).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failed(&failure),
        };
    }
    let (mut json, mut quick, mut only) = (false, false, Vec::new());
    for argument in arguments {
        match argument.as_str() {
            "--json" => json = true,
            "--quick" => quick = true,
            "drain" | "latency" | "effects" | "memory" => only.push(argument),
            _ => {
                eprintln!(
                    "bench-kafka: {argument} is not known; it takes --json, --quick, and drain, latency, effects or \
                     memory"
                );
                return ExitCode::from(2);
            }
        }
    }
    match run(Report::new(json), quick, &only).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    eprintln!("bench-kafka: {failure}");
    ExitCode::from(1)
}

async fn run(mut report: Report, quick: bool, only: &[String]) -> Result<bool, Failure> {
    let wants = |part: &str| only.is_empty() || only.iter().any(|only| only == part);
    if wants("drain") {
        drain::run(&mut report, quick).await?;
    }
    if wants("latency") {
        latency::run(&mut report, quick).await?;
    }
    if wants("effects") {
        effects::run(&mut report, quick).await?;
    }
    if wants("memory") {
        memory::run(&mut report, quick).await?;
    }
    Ok(report.finish())
}
