//! Slow events: what they cost the others, and what they cost the rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_core::Event;
use postrider_relay::{Received, Relay};
use tokio::task::JoinSet;

use crate::data::Bench;
use crate::engine::latency::{Times, percentile};
use crate::engine::new_name;
use crate::report::Report;
use crate::{AnyError, median};

const PUBLISHERS: u64 = 4;
/// Events per second, in all.
const RATE: u64 = 200;
/// One of so many keys hangs.
const KEYS: u64 = 100;
/// How many are handled at once.
const CONCURRENCY: usize = 16;
/// A handler of the others takes this long.
const USUAL: Duration = Duration::from_millis(2);

/// One of a hundred keys each.
#[derive(serde::Serialize, serde::Deserialize)]
struct OrderMoved {
    order: u64,
}

impl Event for OrderMoved {
    const NAME: &'static str = "OrderMoved";
    const STREAM: &'static str = "orders";
    const AGGREGATE: &'static str = "Order";

    fn aggregate_id(&self) -> String {
        (self.order % KEYS).to_string()
    }
}

async fn publish(bench: &Bench, event: u64) -> Result<(), AnyError> {
    let mut tx = bench.pool.begin().await?;
    bench.outbox.record(&mut tx, &OrderMoved { order: event }).await?;
    tx.commit().await?;
    Ok(())
}

/// A steady stream to handlers, of which those of one key hang for so long. The latencies of the other keys, in milliseconds.
async fn stream(bench: &Arc<Bench>, seconds: u64, hang: Option<Duration>) -> Result<Vec<f64>, AnyError> {
    let (warm, events) = (RATE, RATE * (seconds + 1));
    let times = Times::of(events);
    let noted = Arc::clone(&times);
    let relay = Relay::new(&bench.outbox).subscribe(&new_name(), |subscriber| {
        subscriber
            .start(postrider_core::Start::Now)
            .concurrency(CONCURRENCY)
            .timeout(Duration::from_secs(60))
            .on(move |event: Received<OrderMoved>| {
                let times = Arc::clone(&noted);
                async move {
                    times.note(&times.handled, event.order);
                    let hangs = hang.filter(|_| event.order.is_multiple_of(KEYS));
                    tokio::time::sleep(hangs.unwrap_or(USUAL)).await;
                }
            })
    });
    let relay = relay.shutdown_grace(Duration::from_millis(100)).start().await?;
    let mut publishers = JoinSet::new();
    let began = tokio::time::Instant::now() + Duration::from_millis(100);
    for publisher in 0..PUBLISHERS {
        let (bench, times) = (Arc::clone(bench), Arc::clone(&times));
        publishers.spawn(async move {
            for event in (publisher..events).step_by(PUBLISHERS as usize) {
                let at = Duration::from_secs(1) * u32::try_from(event)? / RATE as u32;
                tokio::time::sleep_until(began + at).await;
                publish(&bench, event).await?;
                times.note(&times.committed, event);
            }
            Ok::<(), AnyError>(())
        });
    }
    for outcome in publishers.join_all().await {
        outcome?;
    }
    let others = || (0..events).filter(|event| !event.is_multiple_of(KEYS));
    for event in others() {
        times.wait_for(event).await?;
    }
    relay.stop().await?;
    let mut latencies: Vec<f64> = others()
        .skip(usize::try_from(warm)?)
        .map(|event| {
            let at = |of: &[AtomicU64]| of[event as usize].load(Ordering::Acquire);
            at(&times.handled).saturating_sub(at(&times.committed)) as f64 / 1e6
        })
        .collect();
    latencies.sort_by(f64::total_cmp);
    Ok(latencies)
}

/// Handlers that all take so long, over a log that is there. Events per second, and how many running rows there were at most.
async fn drain(
    bench: &Arc<Bench>,
    events: u64,
    each: Duration,
    patience: Duration,
) -> Result<(f64, i64), AnyError> {
    let tally = crate::engine::Tally::new(events);
    let (name, counted) = (new_name(), Arc::clone(&tally));
    let relay = Relay::new(&bench.outbox).subscribe(&name, |subscriber| {
        // Batches of a few rounds each, so that their ends count.
        subscriber.concurrency(CONCURRENCY).batch(64).patience(patience).on(
            move |event: Received<OrderMoved>| {
                let counted = Arc::clone(&counted);
                async move {
                    tokio::time::sleep(each).await;
                    std::hint::black_box(event.into_inner());
                    counted.add();
                }
            },
        )
    });
    let began = Instant::now();
    let relay = relay.start().await?;
    let sql = format!(
        "select count(*) from {}.delivery where subscription = $1 and state = 'running'",
        bench.schema
    );
    let mut most = 0;
    let done = tally.wait();
    tokio::pin!(done);
    loop {
        tokio::select! {
            ended = &mut done => {
                ended?;
                break;
            }
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.clone())).bind(&name);
                most = most.max(query.fetch_one(&bench.pool).await?);
            }
        }
    }
    let rate = events as f64 / began.elapsed().as_secs_f64();
    relay.stop().await?;
    tally.check()?;
    Ok((rate, most))
}

/// The bars of slow events.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let seconds = if quick { 10 } else { 45 };
    let bench = Arc::new(Bench::new(PUBLISHERS as u32 + 4).await?);
    report.say(&format!("{RATE} events/s of {KEYS} keys for {seconds} s, without and with a key that hangs"));
    let without = stream(&bench, seconds, None).await?;
    let with = stream(&bench, seconds, Some(Duration::from_secs(30))).await?;
    let (before, after) = (percentile(&without, 99), percentile(&with, 99));
    let detail = format!(
        "p99 {before:.1} ms without and {after:.1} ms with one key of {KEYS} that hangs for 30 s; p50 {:.1} and {:.1} ms; most {:.1} and {:.1} ms",
        percentile(&without, 50),
        percentile(&with, 50),
        without.last().copied().unwrap_or(f64::NAN),
        with.last().copied().unwrap_or(f64::NAN),
    );
    report.at_most(
        "p99 of the other keys with one that hangs / without",
        after / before,
        3.0,
        "times",
        &detail,
    );
    Arc::into_inner(bench).ok_or("somebody still uses the log")?.close().await?;

    for (each, events, turns) in
        [(200, if quick { 320 } else { 960 }, 3), (2000, if quick { 64 } else { 192 }, 1)]
    {
        all_slow(report, Duration::from_millis(each), events, turns).await?;
    }
    Ok(())
}

/// Handlers that all take long, beside a lane that waits for its batches.
async fn all_slow(report: &mut Report, each: Duration, events: u64, turns: usize) -> Result<(), AnyError> {
    // What a lane does that waits for its batches is what it did before: a patience longer than any handler.
    let never = Duration::from_secs(3600);
    let bench = Arc::new(Bench::new(4).await?);
    for event in 0..events {
        publish(&bench, event).await?;
    }
    report.say(&format!("{events} events whose handlers all take {each:?}"));
    let (mut ratios, mut rates, mut most) = (Vec::new(), (Vec::new(), Vec::new()), 0);
    for _ in 0..turns {
        let (waits, _) = drain(&bench, events, each, never).await?;
        let (rate, rows) = drain(&bench, events, each, Duration::from_secs(1)).await?;
        ratios.push(100.0 * rate / waits);
        rates.0.push(rate);
        rates.1.push(waits);
        most = most.max(rows);
    }
    let detail = format!(
        "{:.1} events/s, {:.1} where each batch is waited for; batches of 64, {CONCURRENCY} at once",
        median(rates.0),
        median(rates.1)
    );
    report.at_least(
        &format!("rate with handlers of {each:?} / waiting for each batch"),
        median(ratios),
        95.0,
        "%",
        &detail,
    );
    report.at_most(
        &format!("running rows with handlers of {each:?}"),
        most as f64,
        CONCURRENCY as f64,
        "rows",
        "at most, looked at every 20 ms",
    );
    Arc::into_inner(bench).ok_or("somebody still uses the log")?.close().await?;
    Ok(())
}
