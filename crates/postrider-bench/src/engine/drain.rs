//! How fast a relay drains a log into a handler that does nothing, against a bare read of the same rows.

use std::time::Instant;

use postrider_postgres::Outbox;
use sqlx::postgres::PgPoolOptions;

use crate::data::{Bench, server};
use crate::engine::{Tally, counting_relay, new_name};
use crate::reading::bare;
use crate::report::Report;
use crate::{AnyError, in_turns};

/// One relay with one lane, from its start until its handler has had all. Events per second.
async fn one_relay(bench: &Bench, events: u64) -> Result<f64, AnyError> {
    let (name, tally) = (new_name(), Tally::new(events));
    let began = Instant::now();
    let relay = counting_relay(&bench.outbox, &name, &tally, 1).start().await?;
    tally.wait().await?;
    let rate = events as f64 / began.elapsed().as_secs_f64();
    relay.stop().await?;
    tally.check()?;
    Ok(rate)
}

/// Two relays that share two lanes, each with connections of its own.
async fn two_relays(bench: &Bench, other: &Outbox, events: u64) -> Result<f64, AnyError> {
    let (name, tally) = (new_name(), Tally::new(events));
    let began = Instant::now();
    let (one, two) = tokio::try_join!(
        counting_relay(&bench.outbox, &name, &tally, 2).start(),
        counting_relay(other, &name, &tally, 2).start(),
    )?;
    tally.wait().await?;
    let rate = events as f64 / began.elapsed().as_secs_f64();
    tokio::try_join!(one.stop(), two.stop())?;
    tally.check()?;
    Ok(rate)
}

/// The bars of draining.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (events, turns) = if quick { (100_000, 3) } else { (500_000, 7) };
    report.say(&format!("filling a log with {events} events"));
    let bench = Bench::new(8).await?;
    bench.fill(events).await?;

    report.say("draining, in turns with a bare read");
    let (bare_rate, rate, ratio) =
        in_turns(turns, async || bare(&bench, events).await, async || one_relay(&bench, events).await)
            .await?;
    let detail = format!(
        "{rate:.0} against {bare_rate:.0} events/s, the ratio of neighbouring turns; {events} events"
    );
    report.at_least(
        "drain to a handler that does nothing, one lane / bare sqlx read",
        100.0 * ratio,
        50.0,
        "%",
        &detail,
    );

    // A start takes some hundredths of a second, and two of them more: what counts is how fast they drain.
    bench.fill(events).await?;
    let events = events * 2;
    report.say("draining with two relays, in turns with one");
    let pool = PgPoolOptions::new().max_connections(8).connect_with(server()?).await?;
    let other = Outbox::builder().schema(&bench.schema).connect(&pool).await?;
    let (one, two, ratio) = in_turns(
        turns,
        async || one_relay(&bench, events).await,
        async || two_relays(&bench, &other, events).await,
    )
    .await?;
    let detail =
        format!("{two:.0} against {one:.0} events/s, the ratio of neighbouring turns; {events} events");
    report.at_least("two relays with two lanes / one relay with one", 100.0 * ratio, 100.0, "%", &detail);
    pool.close().await;
    bench.close().await
}
