//! What `postrider relay` costs that has nothing to do: memory, and statements, counted as
//! `statements.rs` says. Somebody collects its metrics meanwhile.

use std::time::Duration;

use crate::AnyError;
use crate::cli::relay_process::RelayProcess;
use crate::engine::memory::resident;
use crate::report::Report;
use crate::statements::{EVENTS, in_own_database};

/// How often metrics are collected.
const COLLECTED_EVERY: Duration = Duration::from_secs(5);

async fn collect(relay_process: &RelayProcess) -> AnyError {
    loop {
        match relay_process.metrics().await {
            Ok(metrics) if metrics.contains("postrider_delivered_total") => {}
            Ok(_) => return "/metrics does not say what was delivered".into(),
            Err(failure) => return failure,
        }
        tokio::time::sleep(COLLECTED_EVERY).await;
    }
}

/// The bars of the idle program.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    in_own_database(async |bench, counter| {
        bench.fill(EVENTS).await?;
        report.say(&format!("`postrider relay` delivers {EVENTS} events"));
        let mut relay_process = RelayProcess::start(bench, EVENTS).await?;
        relay_process.delivered().await?;
        let idle = tokio::select! {
            idle = counter.idle(report, bench, quick) => idle?,
            failure = collect(&relay_process) => return Err(failure),
        };
        let (most, now) = (resident(relay_process.id()?, "VmHWM")?, resident(relay_process.id()?, "VmRSS")?);
        relay_process.stop().await?;

        let detail = format!("the most it ever had, {now:.1} MB when idle, {EVENTS} events delivered before");
        report.at_most("resident memory of `postrider relay`", most, 64.0, "MB", &detail);
        report.at_most("statements of an idle `postrider relay`", idle.rate, 1.0, "a second", &idle.detail);
        Ok(())
    })
    .await
}
