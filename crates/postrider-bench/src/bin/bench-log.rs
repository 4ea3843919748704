//! `cargo xtask bench log`: the log's bars, from one run on PostgreSQL.

use std::process::ExitCode;

use postrider_bench::report::Report;
use postrider_bench::{Failure, idle, publish, reading};

#[tokio::main]
async fn main() -> ExitCode {
    let (mut json, mut quick, mut only) = (false, false, None);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            "--quick" => quick = true,
            "read" | "publish" | "idle" => only = Some(argument),
            _ => {
                eprintln!(
                    "bench-log: {argument} is not known; it takes --json, --quick, and read, publish or idle"
                );
                return ExitCode::from(2);
            }
        }
    }
    match run(Report::new(json), quick, only.as_deref()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("bench-log: {failure}");
            ExitCode::from(1)
        }
    }
}

async fn run(mut report: Report, quick: bool, only: Option<&str>) -> Result<bool, Failure> {
    let wants = |part| only.is_none_or(|only| only == part);
    if wants("read") {
        reading::run(&mut report, quick).await?;
    }
    if wants("publish") {
        publish::run(&mut report, quick).await?;
    }
    if wants("idle") {
        idle::run(&mut report, quick).await?;
    }
    Ok(report.finish())
}
