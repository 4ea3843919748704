//! `cargo xtask bench cli`: how long people wait for the binary, and what it costs when idle, on PostgreSQL.

use std::process::ExitCode;

use postrider_bench::cli::{idle, status};
use postrider_bench::program;

#[tokio::main]
async fn main() -> ExitCode {
    program::run("bench-cli", &["status", "idle"], async |report, wanted| {
        if wanted.part("status") {
            status::run(report, wanted.quick).await?;
        }
        if wanted.part("idle") {
            idle::run(report, wanted.quick).await?;
        }
        Ok(())
    })
    .await
}
