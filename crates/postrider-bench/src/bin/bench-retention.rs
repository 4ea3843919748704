//! `cargo xtask bench retention`: what retention costs publishers, from one run on PostgreSQL.

use std::process::ExitCode;

use postrider_bench::{program, retention};

#[tokio::main]
async fn main() -> ExitCode {
    program::run("bench-retention", &["archive", "prune"], async |report, wanted| {
        for part in ["archive", "prune"] {
            if wanted.part(part) {
                retention::run(report, part == "archive", wanted.quick).await?;
            }
        }
        Ok(())
    })
    .await
}
