//! `cargo xtask bench log --store mysql`: the log's bars, from one run on MariaDB.

use std::process::ExitCode;

use postrider_bench::{mysql, program};

#[tokio::main]
async fn main() -> ExitCode {
    program::run("bench-log-mysql", &["drain", "publish"], async |report, wanted| {
        if wanted.part("publish") {
            mysql::publish(report, wanted.quick).await?;
        }
        if wanted.part("drain") {
            mysql::drain(report, wanted.quick).await?;
        }
        Ok(())
    })
    .await
}
