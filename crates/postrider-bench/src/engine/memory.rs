//! How much memory a relay takes that drains a long log, in a process that does nothing else.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use postrider_http::Http;
use postrider_postgres::Outbox;
use postrider_relay::Relay;
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::AnyError;
use crate::data::{Bench, server};
use crate::engine::{Counted, Tally, counting_relay, endpoint, new_name};
use crate::report::Report;

/// What a relay of wide events may have resident, in megabytes.
pub(crate) const WIDE_BAR: f64 = 128.0;

/// The argument that makes the benchmark the process that drains; a schema and a number of events follow.
pub const CHILD: &str = "--drain";

/// What the process says once it has drained all.
const DRAINED: &str = "drained";

/// The process that drains: it says so when it has, and then waits until it has been looked at.
pub async fn child(schema: &str, events: &str) -> Result<(), AnyError> {
    let events = events.parse()?;
    let pool = PgPoolOptions::new().max_connections(4).connect_with(server()?).await?;
    let outbox = Outbox::builder().schema(schema).connect(&pool).await?;
    let tally = Tally::new(events);
    let relay = counting_relay(&outbox, &new_name(), &tally, 1).start().await?;
    tally.wait().await?;
    relay.stop().await?;
    tally.check()?;
    drained()
}

/// The process that drains to an endpoint; a schema, a number of events and the endpoint follow.
pub async fn child_to(schema: &str, events: &str, url: &str) -> Result<(), AnyError> {
    let pool = PgPoolOptions::new().max_connections(4).connect_with(server()?).await?;
    let outbox = Outbox::builder().schema(schema).connect(&pool).await?;
    let tally = Tally::new(events.parse()?);
    let sink = Counted { sink: Http::builder().build(url)?, tally: Arc::clone(&tally) };
    let relay = Relay::new(&outbox).subscribe(&new_name(), |subscriber| subscriber.sink(sink));
    let relay = relay.start().await?;
    tally.wait().await?;
    relay.stop().await?;
    tally.check()?;
    drained()
}

/// Says that all is drained, and waits until the process has been looked at.
pub(crate) fn drained() -> Result<(), AnyError> {
    println!("{DRAINED}");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// The memory that a process has resident, in megabytes: now (`VmRSS`), or the most it ever had (`VmHWM`).
pub(crate) fn resident(process: u32, figure: &str) -> Result<f64, AnyError> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path)
        .map_err(|error| format!("memory is measured on Linux only: {path}: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let line = line.ok_or_else(|| format!("there is no {figure} in {path}"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

/// Runs this program again, as a process that drains: its most memory, and how long it took.
pub(crate) async fn most_of(arguments: &[&str]) -> Result<(f64, f64), AnyError> {
    let began = Instant::now();
    let mut process = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = process.stdout.take().ok_or("the process has no output")?;
    let said = BufReader::new(stdout).lines().next_line().await?;
    if said.as_deref() != Some(DRAINED) {
        return Err(format!("the process that drains ended early: {}", process.wait().await?).into());
    }
    let seconds = began.elapsed().as_secs_f64();
    let most = resident(process.id().ok_or("the process that drains has ended")?, "VmHWM")?;
    drop(process.stdin.take());
    let status = process.wait().await?;
    if !status.success() {
        return Err(format!("the process that drains failed: {status}").into());
    }
    Ok((most, seconds))
}

/// The bar of memory.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let events: u64 = if quick { 300_000 } else { 2_000_000 };
    report.say(&format!("filling a log with {events} events"));
    let bench = Bench::new(8).await?;
    bench.fill(events).await?;
    report.say("draining it in a process of its own");
    let (most, seconds) = most_of(&[CHILD, &bench.schema, &events.to_string()]).await?;
    let detail = format!("VmHWM of a process with one relay, {events} events in {seconds:.1} s");
    report.at_most("resident memory while draining", most, 64.0, "MB", &detail);
    bench.close().await?;

    let events: u64 = if quick { 400 } else { 1_500 };
    report.say(&format!("filling a log with {events} events of 1 MB"));
    let bench = Bench::new(8).await?;
    bench.fill_wide(events).await?;
    let (count, endpoint) = (events.to_string(), endpoint::start()?);
    for (what, arguments) in [
        ("a handler", vec![CHILD, &bench.schema, &count]),
        ("an endpoint", vec![CHILD, &bench.schema, &count, &endpoint]),
    ] {
        let (most, seconds) = most_of(&arguments).await?;
        let detail = format!("VmHWM of a process with one relay, {events} events in {seconds:.1} s");
        report.at_most(&format!("resident memory, events of 1 MB to {what}"), most, WIDE_BAR, "MB", &detail);
    }
    bench.close().await
}
