//! What archiving and pruning cost publishers who go on meanwhile, with the vacuum of what they leave.
//!
//! Eight publishers never stop. Phases without a sweep and phases with one follow each other, the first and the last without.
//! A phase with a sweep takes its share of the events, by the program's own pace, and ends when autovacuum has nothing left to
//! do: when no worker has been seen, and none was due, for longer than a server takes to pass on its counters and to look at
//! them. That last wait is not counted. So no vacuum of what a sweep left falls into a phase without one. The publishers' rate in
//! a phase is compared with the mean of the phases before and after it; the median of the phases is the figure, once for the
//! time of the sweep alone and once with the vacuum that followed: the dearer one counts.
//!
//! Autovacuum works with the server's cost limits, at a tenth of the events (PostgreSQL's default is a fifth of all rows), so
//! that every phase has its own; inserts alone don't call it here. The server looks every second (`autovacuum_naptime`). What
//! publishers themselves make it do (the table they update is vacuumed, the log is analysed), it does in all phases. One that
//! takes too long is left at that: how many dead rows a phase left to the next is in the detail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{ArchiveOptions, EventLog, Operate, Pacing, Settlement, Subscription, Sweep};

use crate::data::Bench;
use crate::publishers::{Kind, Publishers, tables};
use crate::report::Report;
use crate::{AnyError, median, ratios};

mod vacuum;

use vacuum::Vacuum;

const WRITERS: u64 = 8;
const LEASE: Duration = Duration::from_secs(600);

/// How much is measured, and for how long.
struct Size {
    events: u64,
    phases: u64,
    /// How long a phase without a sweep lasts.
    alone: Duration,
    /// How long autovacuum may take in a phase.
    patience: Duration,
}

impl Size {
    fn of(quick: bool) -> Self {
        let seconds = Duration::from_secs;
        if quick {
            Self { events: 60_000, phases: 3, alone: seconds(4), patience: seconds(60) }
        } else {
            Self { events: 1_000_000, phases: 5, alone: seconds(15), patience: seconds(300) }
        }
    }
}

/// What sweeps have done so far.
#[derive(Default)]
struct Done {
    rows: u64,
    rounds: u64,
    busy: Duration,
    all: bool,
}

impl Done {
    /// Sweeps as the program does it, until so many events are taken, or all.
    async fn sweep(&mut self, bench: &Bench, sweep: &Sweep, until: u64) -> Result<(), AnyError> {
        let pacing = Pacing::default();
        while !self.all && self.rows < until {
            let began = Instant::now();
            let swept = bench.store.sweep(sweep).await?;
            let took = began.elapsed();
            self.rows += swept.taken;
            self.rounds += 1;
            self.busy += took;
            self.all = !swept.more;
            tokio::time::sleep(pacing.after(took)).await;
        }
        Ok(())
    }
}

/// The rates of publishers, phase by phase.
#[derive(Default)]
struct Rates {
    alone: Vec<f64>,
    /// While it was swept.
    swept: Vec<f64>,
    /// While it was swept and vacuumed.
    beside: Vec<f64>,
}

impl Rates {
    /// What a sweep costs: the share of the rate that the neighbours have.
    fn cost(&self, of: &[f64]) -> f64 {
        let neighbours: Vec<f64> = self.alone.windows(2).map(|pair| pair.iter().sum::<f64>() / 2.0).collect();
        100.0 * (1.0 - median(ratios(of, &neighbours)))
    }
}

/// Settles all there is: what comes later is nobody's yet, and stays.
async fn settle(bench: &Bench) -> Result<(), AnyError> {
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

/// The bar of archiving, or of pruning.
pub async fn run(report: &mut Report, keep: bool, quick: bool) -> Result<(), AnyError> {
    let size = Size::of(quick);
    let verb = if keep { "archive" } else { "prune" };
    report.say(&format!("{} events are recorded and settled", size.events));
    let bench = Arc::new(Bench::new(20).await?);
    tables(&bench).await?;
    bench.fill(size.events).await?;
    settle(&bench).await?;
    let vacuum = Vacuum::of(&bench, size.events / 10).await?;
    report.say(&format!("{WRITERS} publishers, in phases without and with {verb}"));
    let publishers = Publishers::begin(&bench, WRITERS, Kind::Record);
    let measured = phases(&bench, &publishers, &vacuum, keep, &size).await;
    publishers.end().await?;
    let (rates, done, left) = measured?;
    if done.rows < size.events || rates.swept.is_empty() {
        let phases = rates.swept.len();
        return Err(format!("{} of {} events were taken in {phases} phases", done.rows, size.events).into());
    }
    let (swept, beside) = (rates.cost(&rates.swept), rates.cost(&rates.beside));
    let detail = format!(
        "{swept:.1} % while it swept, {beside:.1} % with the vacuum of it, {:.0} and {:.0} against {:.0} transactions/s in {} \
         phases, each against its neighbours; {} events in {} rounds of {:.1} ms, at most {left} dead rows left",
        median(rates.swept.clone()),
        median(rates.beside.clone()),
        median(rates.alone.clone()),
        rates.swept.len(),
        done.rows,
        done.rounds,
        done.busy.as_secs_f64() * 1000.0 / done.rounds.max(1) as f64
    );
    report.at_most(
        &format!("what {verb} of {} events costs {WRITERS} publishers", size.events),
        swept.max(beside),
        15.0,
        "%",
        &detail,
    );
    Arc::into_inner(bench).ok_or("somebody still uses the log")?.close().await
}

async fn phases(
    bench: &Bench,
    publishers: &Publishers,
    vacuum: &Vacuum,
    keep: bool,
    size: &Size,
) -> Result<(Rates, Done, u64), AnyError> {
    let (older_than, limit) = (Duration::ZERO, Pacing::default().batch);
    let sweep = match keep {
        true => Sweep::Archive { older_than, limit, archiving: ArchiveOptions::default() },
        false => Sweep::Prune { older_than, limit },
    };
    let (mut rates, mut done, mut left) = (Rates::default(), Done::default(), 0);
    // Connections, statements and caches are warm by then.
    tokio::time::sleep(size.alone).await;
    rates.alone.push(publishers.rate(size.alone).await);
    for phase in 1..=size.phases {
        let (began, before) = (Instant::now(), publishers.done());
        let rate = |at: Instant, done: u64| (done - before) as f64 / (at - began).as_secs_f64();
        // The last one takes what there is.
        let until = if phase == size.phases { u64::MAX } else { size.events / size.phases * phase };
        done.sweep(bench, &sweep, until).await?;
        rates.swept.push(rate(Instant::now(), publishers.done()));
        let (at, by_then) = vacuum.nothing_left(size.patience, || publishers.done()).await?;
        rates.beside.push(rate(at, by_then));
        left = left.max(vacuum.dead().await?);
        rates.alone.push(publishers.rate(size.alone).await);
    }
    Ok((rates, done, left))
}
