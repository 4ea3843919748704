//! `cargo xtask bench cli`: how long people wait for the binary, on PostgreSQL.

use std::process::ExitCode;

use postrider_bench::cli::status;
use postrider_bench::program;

#[tokio::main]
async fn main() -> ExitCode {
    program::run("bench-cli", &["status"], async |report, wanted| {
        if wanted.part("status") {
            status::run(report, wanted.quick).await?;
        }
        Ok(())
    })
    .await
}
