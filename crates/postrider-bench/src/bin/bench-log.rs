//! `cargo xtask bench log`: the log's bars, from one run on PostgreSQL.

use std::process::ExitCode;

use postrider_bench::program;
use postrider_bench::{idle, publish, reading};

#[tokio::main]
async fn main() -> ExitCode {
    program::run("bench-log", &["read", "publish", "idle"], async |report, wanted| {
        if wanted.part("read") {
            reading::run(report, wanted.quick).await?;
        }
        if wanted.part("publish") {
            publish::run(report, wanted.quick).await?;
        }
        if wanted.part("idle") {
            idle::run(report, wanted.quick).await?;
        }
        Ok(())
    })
    .await
}
