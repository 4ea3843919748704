//! What recording costs a publisher, against the usual hand-written outbox table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_core::{EventLog, Settlement, Subscription};
use postrider_relay::Pace;

use crate::data::{Bench, OrderPaid};
use crate::publishers::{Kind, rate, tables};
use crate::report::Report;
use crate::{AnyError, median, ratios};

/// How many events the follower reads at once.
const BATCH: u32 = 1000;

/// A relay that follows the log: asleep when it starts, busy once events come.
async fn follow(
    bench: Arc<Bench>,
    name: String,
    stop: Arc<AtomicBool>,
    seen: Arc<AtomicU64>,
) -> Result<(), AnyError> {
    let start = Subscription::new(&name).start(postrider_core::Start::Now);
    bench.store.subscribe(&start).await?;
    let mut lease = bench.store.claim(&name, "bench", Duration::from_secs(600)).await?.ok_or("no lane")?;
    let mut bell = bench.store.bell();
    let mut pace = Pace::new(Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let batch = bench.store.read(&lease, &lease.position, BATCH).await?;
        if batch.is_idle() {
            bell.wait(Duration::from_secs(1)).await?;
        } else {
            bell.worked();
            bench.store.settle(&mut lease, &Settlement::of(&batch)).await?;
            seen.fetch_add(batch.events.len() as u64, Ordering::Relaxed);
            // As a relay does that has caught up: with many publishers a moment for more to come.
            if !batch.more {
                let moment = pace.found(batch.scanned, Instant::now());
                if !moment.is_zero() {
                    tokio::time::sleep(moment).await;
                }
            }
        }
    }
    bench.store.release(lease).await?;
    Ok(())
}

/// The rate of 32 publishers while a relay follows them.
async fn followed_rate(
    bench: &Arc<Bench>,
    turn: usize,
    time: Duration,
    seen: &Arc<AtomicU64>,
) -> Result<f64, AnyError> {
    let stop = Arc::new(AtomicBool::new(false));
    let relay =
        tokio::spawn(follow(Arc::clone(bench), format!("f{turn}"), Arc::clone(&stop), Arc::clone(seen)));
    // It falls asleep before they begin.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let figure = rate(bench, 32, Kind::Record, time).await?;
    stop.store(true, Ordering::Relaxed);
    relay.await??;
    Ok(figure)
}

/// The bars of publishing.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (time, turns) = if quick { (Duration::from_secs(1), 3) } else { (Duration::from_secs(3), 5) };
    let bench = Arc::new(Bench::new(40).await?);
    tables(&bench).await?;
    for clients in [8, 32] {
        against_hand_written(report, &bench, clients, time, turns).await?;
    }
    with_a_relay(report, &bench, time, turns).await?;
    together(report, &bench, turns).await?;
    Arc::into_inner(bench).ok_or("somebody still uses the log")?.close().await
}

/// `record` against an insert into a hand-written table.
async fn against_hand_written(
    report: &mut Report,
    bench: &Arc<Bench>,
    clients: u64,
    time: Duration,
    turns: usize,
) -> Result<(), AnyError> {
    report.say(&format!("{clients} publishers, in turns with a hand-written outbox table"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..turns * 2 {
        if turn % 2 == 0 {
            ours.push(rate(bench, clients, Kind::Record, time).await?);
            theirs.push(rate(bench, clients, Kind::HandWritten, time).await?);
        } else {
            theirs.push(rate(bench, clients, Kind::HandWritten, time).await?);
            ours.push(rate(bench, clients, Kind::Record, time).await?);
        }
    }
    let detail = format!(
        "{:.0} against {:.0} transactions/s, the ratio of neighbouring turns",
        median(ours.clone()),
        median(theirs.clone())
    );
    let name = format!("update and record / update and hand-written insert, {clients} clients");
    report.at_least(&name, 100.0 * median(ratios(&ours, &theirs)), 90.0, "%", &detail);
    Ok(())
}

/// Publishers while a relay sleeps, wakes and reads.
async fn with_a_relay(
    report: &mut Report,
    bench: &Arc<Bench>,
    time: Duration,
    turns: usize,
) -> Result<(), AnyError> {
    report.say("32 publishers, in turns without and with a relay");
    let (mut alone, mut followed) = (Vec::new(), Vec::new());
    let seen = Arc::new(AtomicU64::new(0));
    for turn in 0..turns * 2 {
        if turn % 2 == 0 {
            alone.push(rate(bench, 32, Kind::Record, time).await?);
            followed.push(followed_rate(bench, turn, time, &seen).await?);
        } else {
            followed.push(followed_rate(bench, turn, time, &seen).await?);
            alone.push(rate(bench, 32, Kind::Record, time).await?);
        }
    }
    let detail = format!(
        "{:.0} against {:.0} transactions/s, the ratio of neighbouring turns; {} events read",
        median(followed.clone()),
        median(alone.clone()),
        seen.load(Ordering::Relaxed)
    );
    report.at_least(
        "32 publishers with a sleeping, then busy relay / without",
        100.0 * median(ratios(&followed, &alone)),
        90.0,
        "%",
        &detail,
    );
    Ok(())
}

/// `record_all` against one event at a time.
async fn together(report: &mut Report, bench: &Arc<Bench>, turns: usize) -> Result<(), AnyError> {
    report.say("record_all, in turns with one by one");
    let (mut together, mut single, mut in_one) = (Vec::new(), Vec::new(), Vec::new());
    let thousand: u64 = 1000;
    for _ in 0..turns {
        let began = Instant::now();
        for _ in 0..5 {
            let events: Vec<_> = (0..thousand).map(OrderPaid::of).collect();
            let mut tx = bench.pool.begin().await?;
            bench.outbox.record_all(&mut tx, &events).await?;
            tx.commit().await?;
        }
        together.push(5.0 * thousand as f64 / began.elapsed().as_secs_f64());
        let began = Instant::now();
        for n in 0..thousand {
            let mut tx = bench.pool.begin().await?;
            bench.outbox.record(&mut tx, &OrderPaid::of(n)).await?;
            tx.commit().await?;
        }
        single.push(thousand as f64 / began.elapsed().as_secs_f64());
        let began = Instant::now();
        let mut tx = bench.pool.begin().await?;
        for n in 0..thousand {
            bench.outbox.record(&mut tx, &OrderPaid::of(n)).await?;
        }
        tx.commit().await?;
        in_one.push(thousand as f64 / began.elapsed().as_secs_f64());
    }
    let (together, single, in_one) = (median(together), median(single), median(in_one));
    let detail = format!(
        "{together:.0} against {single:.0} events/s, a transaction each; {in_one:.0} one by one in one transaction"
    );
    report.at_least("record_all of 1,000 / one by one", together / single, 20.0, "times", &detail);
    Ok(())
}
