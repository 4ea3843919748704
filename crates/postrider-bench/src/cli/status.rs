//! How long `postrider status` takes when much is pending.

use std::time::Instant;

use postrider_core::{EventLog, Subscription};

use crate::AnyError;
use crate::cli::postrider;
use crate::data::Bench;
use crate::report::Report;

const BAR: f64 = 1.0;
const TURNS: usize = 10;

/// The slowest of several looks at a long backlog.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let events: u64 = if quick { 200_000 } else { 2_000_000 };
    let bench = Bench::new(4).await?;
    report.say(&format!("recording {events} events for three subscriptions"));
    let wanted = [
        Subscription::new("everything"),
        Subscription::new("shared").lanes(4),
        Subscription::new("narrow").types(["Order*"]).streams(["orders"]),
    ];
    for subscription in &wanted {
        bench.store.subscribe(subscription).await?;
    }
    bench.fill(events).await?;
    let mut slowest: f64 = 0.0;
    for _ in 0..TURNS {
        let began = Instant::now();
        let output = postrider(&bench)?.args(["status", "--json"]).output().await?;
        slowest = slowest.max(began.elapsed().as_secs_f64());
        check(&output.stdout, events)?;
    }
    let detail = format!("{events} events pending for each of 3 subscriptions, slowest of {TURNS}");
    report.at_most("status", slowest, BAR, "s", &detail);
    bench.close().await
}

/// Whether it said what is pending, and that it is an estimate.
fn check(answer: &[u8], events: u64) -> Result<(), AnyError> {
    let status: serde_json::Value = serde_json::from_slice(answer)?;
    let all = status["subscriptions"].as_array().ok_or("there are no subscriptions in the answer")?;
    for each in all {
        let pending = each["pending"].as_u64().unwrap_or(0);
        let near = events - events / 20..=events + events / 20;
        if all.len() != 3 || !near.contains(&pending) || each["estimated"] != true {
            return Err(
                format!("{pending} events are said to be pending where there are {events}: {each}").into()
            );
        }
    }
    Ok(())
}
