//! What archiving and pruning cost publishers who go on meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_core::{Filing, Pacing, Settlement, Store, Subscription, Sweep};
use tokio::task::JoinHandle;

use crate::data::Bench;
use crate::publish::{Kind, rate, tables};
use crate::report::Report;
use crate::{Failure, median, ratios};

const WRITERS: u64 = 8;
const LEASE: Duration = Duration::from_secs(600);

/// A sweep that can be let go and stopped again, as the program does it.
struct Sweeping {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<(), Failure>>,
}

/// What sweeps have done so far.
#[derive(Default)]
struct Done {
    rows: AtomicU64,
    rounds: AtomicU64,
    busy: AtomicU64,
    all: AtomicBool,
}

impl Sweeping {
    fn begin(bench: &Arc<Bench>, sweep: Sweep, pacing: Pacing, done: &Arc<Done>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (bench, stopped, done) = (Arc::clone(bench), Arc::clone(&stop), Arc::clone(done));
        let task = tokio::spawn(async move {
            while !stopped.load(Ordering::Acquire) {
                let began = Instant::now();
                let swept = bench.store.sweep(&sweep).await?;
                let took = began.elapsed();
                done.rows.fetch_add(swept.taken, Ordering::AcqRel);
                done.rounds.fetch_add(1, Ordering::AcqRel);
                done.busy.fetch_add(u64::try_from(took.as_micros())?, Ordering::AcqRel);
                if !swept.more {
                    done.all.store(true, Ordering::Release);
                    break;
                }
                tokio::time::sleep(pacing.after(took)).await;
            }
            Ok(())
        });
        Self { stop, task }
    }

    async fn end(self) -> Result<(), Failure> {
        self.stop.store(true, Ordering::Release);
        self.task.await?
    }
}

/// Settles all there is: what comes later is nobody's yet, and stays.
async fn settle(bench: &Bench) -> Result<(), Failure> {
    bench.store.subscribe(&Subscription::new("s")).await?;
    let mut lease = bench.store.claim("s", "bench", LEASE).await?.ok_or("no lane")?;
    loop {
        let batch = bench.store.read(&lease, &lease.position.clone(), 5000).await?;
        if batch.is_idle() {
            break;
        }
        bench.store.settle(&mut lease, &Settlement::of(&batch)).await?;
    }
    bench.store.release(lease).await?;
    Ok(())
}

/// The bar of archiving, or of pruning: in turns without and with it, until all is taken.
pub async fn run(report: &mut Report, keep: bool, quick: bool) -> Result<(), Failure> {
    let (events, time) =
        if quick { (60_000, Duration::from_secs(2)) } else { (1_000_000, Duration::from_secs(8)) };
    let verb = if keep { "archive" } else { "prune" };
    report.say(&format!("{events} events are recorded and settled"));
    let bench = Arc::new(Bench::new(20).await?);
    tables(&bench).await?;
    // Vacuum is part of what a sweep costs.
    bench.run("alter table {schema}.event reset (autovacuum_enabled)").await?;
    bench.fill(events).await?;
    settle(&bench).await?;
    let pacing = Pacing::default();
    let (older_than, limit) = (Duration::ZERO, pacing.batch);
    let sweep = if keep {
        Sweep::Archive { older_than, limit, filing: Filing::default() }
    } else {
        Sweep::Prune { older_than, limit }
    };
    report.say(&format!("{WRITERS} publishers, in turns without and with {verb}"));
    let done = Arc::new(Done::default());
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    rate(&bench, WRITERS, Kind::Record, time).await?;
    for turn in 0.. {
        let swept = async || -> Result<f64, Failure> {
            let sweeping = Sweeping::begin(&bench, sweep.clone(), pacing, &done);
            let figure = rate(&bench, WRITERS, Kind::Record, time).await?;
            sweeping.end().await?;
            Ok(figure)
        };
        let (first, second);
        if turn % 2 == 0 {
            first = rate(&bench, WRITERS, Kind::Record, time).await?;
            second = swept().await?;
        } else {
            second = swept().await?;
            first = rate(&bench, WRITERS, Kind::Record, time).await?;
        }
        // A turn in which the sweep ended is no measure of it.
        if done.all.load(Ordering::Acquire) {
            break;
        }
        alone.push(first);
        beside.push(second);
    }
    let rows = done.rows.load(Ordering::Acquire);
    if rows < events || beside.is_empty() {
        return Err(format!("{rows} of {events} events were taken in {} turns", beside.len()).into());
    }
    let (rounds, busy) = (done.rounds.load(Ordering::Acquire), done.busy.load(Ordering::Acquire));
    let detail = format!(
        "{:.0} against {:.0} transactions/s in {} turns, the ratio of neighbours; {rows} events in {rounds} rounds of {:.1} ms",
        median(beside.clone()),
        median(alone.clone()),
        beside.len(),
        busy as f64 / 1000.0 / rounds.max(1) as f64
    );
    let cost = 100.0 * (1.0 - median(ratios(&beside, &alone)));
    report.at_most(
        &format!("what {verb} of {events} events costs {WRITERS} publishers"),
        cost,
        15.0,
        "%",
        &detail,
    );
    Arc::into_inner(bench).ok_or("somebody still uses the log")?.close().await
}
