//! `cargo xtask bench catalog`: what a catalog of 500 events costs, measured by one of 10.

use std::process::ExitCode;

use postrider_bench::{catalog, program};

#[tokio::main]
async fn main() -> ExitCode {
    program::run("bench-catalog", &["size"], async |report, wanted| {
        if wanted.part("size") {
            catalog::run(report, wanted.quick);
        }
        Ok(())
    })
    .await
}
