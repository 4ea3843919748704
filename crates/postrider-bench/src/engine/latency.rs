//! From the commit of an event to the handler that gets it.
//!
//! Publishers and the relay are one process, so that both times are of one clock. What counts begins when the commit has
//! returned; a handler that was called before that was called at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_relay::{Received, Relay, Running};
use tokio::task::JoinSet;

use crate::AnyError;
use crate::data::{Bench, OrderPaid};
use crate::engine::new_name;
use crate::report::Report;

/// An event that has not arrived by then never will.
const LOST: Duration = Duration::from_secs(120);
const PUBLISHERS: u64 = 8;
/// Events per second, in all.
const RATE: u64 = 1000;

/// When each event was committed and handled, in nanoseconds since the beginning; 0 for not yet.
pub(crate) struct Times {
    began: Instant,
    pub(crate) committed: Vec<AtomicU64>,
    pub(crate) handled: Vec<AtomicU64>,
}

impl Times {
    pub(crate) fn of(events: u64) -> Arc<Self> {
        let empty = || (0..events).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { began: Instant::now(), committed: empty(), handled: empty() })
    }

    /// Notes the time, the first time.
    pub(crate) fn note(&self, of: &[AtomicU64], event: u64) {
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let place = usize::try_from(event).ok().and_then(|event| of.get(event));
        if let Some(place) = place {
            let _ = place.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    pub(crate) async fn wait_for(&self, event: u64) -> Result<(), AnyError> {
        let end = Instant::now() + LOST;
        let place = &self.handled[usize::try_from(event)?];
        while place.load(Ordering::Acquire) == 0 {
            if Instant::now() > end {
                return Err(format!("event {event} was not handled within {LOST:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// From commit to handler, in milliseconds, sorted, without the first few.
    pub(crate) fn latencies(&self, without: u64) -> Vec<f64> {
        let both = self.committed.iter().zip(&self.handled).skip(usize::try_from(without).unwrap_or(0));
        let mut times: Vec<f64> = both
            .map(|(committed, handled)| {
                let (committed, handled) =
                    (committed.load(Ordering::Acquire), handled.load(Ordering::Acquire));
                handled.saturating_sub(committed) as f64 / 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

/// A relay that would look by itself once a minute.
async fn start(bench: &Bench, times: &Arc<Times>, lease: Option<Duration>) -> Result<Running, AnyError> {
    let times = Arc::clone(times);
    let mut relay = Relay::new(&bench.outbox).poll_interval(Duration::from_secs(60));
    if let Some(lease) = lease {
        relay = relay.lease(lease);
    }
    let relay = relay.subscribe(&new_name(), |subscriber| {
        subscriber.start(postrider_core::Start::Now).on(move |event: Received<OrderPaid>| {
            times.note(&times.handled, event.order);
            async {}
        })
    });
    Ok(relay.start().await?)
}

/// Commits an event in a transaction of its own.
pub(crate) async fn publish(bench: &Bench, times: &Times, event: u64) -> Result<(), AnyError> {
    let mut tx = bench.pool.begin().await?;
    bench.outbox.record(&mut tx, &OrderPaid::of(event)).await?;
    tx.commit().await?;
    times.note(&times.committed, event);
    Ok(())
}

/// Somewhere between two times, by a fixed sequence.
struct Pauses(u64);

impl Pauses {
    fn next(&mut self, (from, to): (u64, u64)) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(from + (self.0 >> 33) % (to - from))
    }
}

/// One event at a time, each after a pause in which the relay has fallen asleep.
async fn from_idle(
    bench: &Bench,
    events: u64,
    pause: (u64, u64),
    lease: Option<Duration>,
) -> Result<Vec<f64>, AnyError> {
    // Connections and plans first.
    let warm = 10;
    let times = Times::of(events + warm);
    let relay = start(bench, &times, lease).await?;
    let mut pauses = Pauses(1);
    for event in 0..events + warm {
        tokio::time::sleep(pauses.next(pause)).await;
        publish(bench, &times, event).await?;
        times.wait_for(event).await?;
    }
    relay.stop().await?;
    Ok(times.latencies(warm))
}

/// A steady stream: event n is committed n milliseconds after the first, or as soon after as its publisher is free. Returns
/// the latencies, and how many events per second it really was.
async fn under_load(bench: &Arc<Bench>, seconds: u64) -> Result<(Vec<f64>, f64), AnyError> {
    let (warm, events) = (RATE, RATE * (seconds + 1));
    let times = Times::of(events);
    let relay = start(bench, &times, None).await?;
    let mut publishers = JoinSet::new();
    let began = tokio::time::Instant::now() + Duration::from_millis(100);
    for publisher in 0..PUBLISHERS {
        let (bench, times) = (Arc::clone(bench), Arc::clone(&times));
        publishers.spawn(async move {
            for event in (publisher..events).step_by(PUBLISHERS as usize) {
                tokio::time::sleep_until(
                    began + Duration::from_secs(1) * u32::try_from(event)? / RATE as u32,
                )
                .await;
                publish(&bench, &times, event).await?;
            }
            Ok::<(), AnyError>(())
        });
    }
    for outcome in publishers.join_all().await {
        outcome?;
    }
    let rate = events as f64 / began.elapsed().as_secs_f64();
    for event in 0..events {
        times.wait_for(event).await?;
    }
    relay.stop().await?;
    Ok((times.latencies(warm), rate))
}

pub(crate) fn percentile(times: &[f64], percent: usize) -> f64 {
    times.get(times.len() * percent / 100).copied().unwrap_or(f64::NAN)
}

/// The two lines of a distribution.
fn lines(report: &mut Report, name: &str, times: &[f64], detail: &str) {
    let (p50, p99) = (percentile(times, 50), percentile(times, 99));
    let most = times.last().copied().unwrap_or(f64::NAN);
    report.at_most(&format!("{name} (p50)"), p50, 3.0, "ms", detail);
    let detail = format!("p50 {p50:.2} ms, most {most:.2} ms, {} events", times.len());
    report.at_most(&format!("{name} (p99)"), p99, 10.0, "ms", &detail);
}

/// The bars of latency.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (events, seconds) = if quick { (60, 5) } else { (300, 20) };
    let bench = Arc::new(Bench::new(PUBLISHERS as u32 + 4).await?);
    report.say(&format!("{events} events, one at a time, to a relay that sleeps"));
    let times = from_idle(&bench, events, (60, 300), None).await?;
    let detail = "one event at a time after a pause of 60 to 300 ms, poll at 60 s";
    lines(report, "commit to handler, from idle", &times, detail);

    // A relay that has been idle for a third of its lease gives its lane back, and claims it again for the next event.
    let lease = Duration::from_millis(300);
    let times = from_idle(&bench, events / 3, (300, 500), Some(lease)).await?;
    let (p50, p99) = (percentile(&times, 50), percentile(&times, 99));
    let detail = format!("p99; p50 {p50:.2} ms, {} events", times.len());
    report.note("commit to handler, from idle with the lane given back", p99, "ms", &detail);

    report.say(&format!("{RATE} events/s from {PUBLISHERS} publishers for {seconds} s"));
    let (times, rate) = under_load(&bench, seconds).await?;
    let detail = format!("{rate:.0} events/s from {PUBLISHERS} publishers, a transaction each, poll at 60 s");
    lines(report, "commit to handler, under 1,000 events/s", &times, &detail);
    Arc::into_inner(bench).ok_or("somebody still uses the log")?.close().await
}
