//! What an idle poll costs in a large log, without statistics and with many transactions open.

use std::time::{Duration, Instant};

use postrider_core::{EventLog, Start, Subscription};
use sqlx::{Connection, PgConnection};

use crate::AnyError;
use crate::data::Bench;
use crate::report::Report;

/// The bar of polling.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (events, open) = if quick { (300_000, 200) } else { (5_000_000, 1_000) };
    report.say(&format!("filling a log with {events} events"));
    let bench = Bench::new(8).await?;
    bench.fill(events).await?;
    report.say(&format!("opening {open} transactions"));
    let options = (*bench.pool.connect_options()).clone();
    let mut connections = Vec::new();
    for _ in 0..open {
        let mut connection = PgConnection::connect_with(&options).await?;
        sqlx::raw_sql("begin; select pg_current_xact_id()").execute(&mut connection).await?;
        connections.push(connection);
    }
    bench.store.subscribe(&Subscription::new("s").start(Start::Now)).await?;
    let lease = bench.store.claim("s", "bench", Duration::from_secs(600)).await?.ok_or("no lane")?;
    let mut times = Vec::new();
    for _ in 0..300 {
        let began = Instant::now();
        let batch = bench.store.read(&lease, &lease.position, 1000).await?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        if !batch.is_idle() {
            return Err("the log was to be idle".into());
        }
    }
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let detail =
        format!("p50 {p50:.2} ms, p99 {p99:.2} ms, {events} rows, no statistics, {open} transactions open");
    report.at_most("an idle poll (p99)", p99, 5.0, "ms", &detail);
    for mut connection in connections {
        sqlx::raw_sql("rollback").execute(&mut connection).await?;
        connection.close().await?;
    }
    let began = Instant::now();
    bench.store.read(&lease, &lease.position, 1000).await?;
    report.note(
        "an idle poll after they have all ended",
        began.elapsed().as_secs_f64() * 1000.0,
        "ms",
        "one poll",
    );
    bench.close().await
}
