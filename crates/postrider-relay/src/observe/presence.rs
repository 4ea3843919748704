//! How a relay makes itself known: a report when something changes, and every 20 seconds otherwise.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::{Coordinate, Inspect, RelayInfo, RelayReport, RelayRun, Store, Uuid};
use tokio::sync::Notify;

use crate::engine::runtime::SubscriptionRuntime;
use crate::observe::metrics::paused;

/// Changes that come together make one report.
const SHORTEST: Duration = Duration::from_secs(1);

/// A subscription as it is reported to other relays and to operators.
pub(crate) struct Run {
    settings: BTreeMap<String, String>,
    lanes: Mutex<BTreeSet<u32>>,
    /// Whether this relay holds one of them now. Without one it delivers nothing, and does not know the state of the destination.
    holds: AtomicBool,
    /// Whether this relay shows the subscription's gauges, as far as its lanes don't say.
    shows: AtomicBool,
    removed: AtomicBool,
    changed: Arc<Notify>,
}

impl Run {
    pub(crate) fn new(settings: BTreeMap<String, String>, changed: Arc<Notify>) -> Self {
        Self {
            settings,
            lanes: Mutex::default(),
            holds: AtomicBool::new(false),
            shows: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            changed,
        }
    }

    /// These are the lanes that this relay works on, or looks after while they are idle; `holds` says whether it works on any.
    pub(crate) fn has(&self, lanes: BTreeSet<u32>, holds: bool) {
        self.holds.store(holds, Ordering::Release);
        let mut known = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != lanes {
            *known = lanes;
            self.changed.notify_one();
        }
    }

    /// Whether nobody else shows the gauges: no other relay has the first lane, and this one had it or is the first of all.
    pub(crate) fn shows(&self) -> bool {
        self.shows.load(Ordering::Acquire)
    }

    /// Whether the subscription was removed; whether that is news.
    pub(crate) fn is_removed(&self, removed: bool) -> bool {
        self.removed.swap(removed, Ordering::AcqRel) != removed
    }

    fn lanes(&self) -> Vec<u32> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// The health of a running relay. Clones share it.
///
/// ```
/// use postrider::{Health, Running};
///
/// /// The answer of a readiness probe.
/// fn ready(health: &Health) -> Result<(), String> {
///     match health.problems() {
///         problems if problems.is_empty() => Ok(()),
///         problems => Err(problems.join("; ")),
///     }
/// }
///
/// fn of(relay: &Running) -> Result<(), String> {
///     ready(relay.health())
/// }
/// ```
#[derive(Clone)]
pub struct Health(Arc<Vec<Arc<SubscriptionRuntime>>>);

impl Health {
    pub(crate) fn of(runtimes: &[Arc<SubscriptionRuntime>]) -> Self {
        Self(Arc::new(runtimes.to_vec()))
    }

    /// Problems that stop deliveries although the database answers, one sentence each; empty if there are none. Currently the only
    /// one is a removed subscription.
    pub fn problems(&self) -> Vec<String> {
        let removed = self.0.iter().filter(|runtime| runtime.run.removed.load(Ordering::Acquire));
        removed.map(|runtime| was_removed(&runtime.name)).collect()
    }
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Health").field(&self.problems()).finish()
    }
}

pub(crate) fn was_removed(subscription: &str) -> String {
    format!(
        "the subscription {subscription:?} was removed, so this relay delivers nothing to it; restart the relay to create it \
         again, or remove it from the settings"
    )
}

/// Reports on a relay for as long as it runs.
pub(crate) struct Reporter {
    coordinate: Arc<dyn Coordinate>,
    inspect: Arc<dyn Inspect>,
    report: RelayReport,
    runtimes: Vec<Arc<SubscriptionRuntime>>,
    changed: Arc<Notify>,
    /// What was said already of other relays.
    said: HashSet<String>,
    failing: bool,
}

impl Reporter {
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        name: &str,
        runtimes: &[Arc<SubscriptionRuntime>],
        changed: Arc<Notify>,
    ) -> Self {
        let report = RelayReport {
            id: Uuid::now_v7(),
            name: name.to_owned(),
            host: host(),
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runs: Vec::new(),
        };
        let runtimes = runtimes.to_vec();
        let said = HashSet::new();
        let (coordinate, inspect) = (store.clone(), store.clone());
        Self { coordinate, inspect, report, runtimes, changed, said, failing: false }
    }

    /// What the relay is known by.
    pub(crate) fn id(&self) -> Uuid {
        self.report.id
    }

    /// Reports until it is told to end.
    pub(crate) async fn keep_reporting(mut self, end: Arc<Notify>) {
        let Some(first) = self.runtimes.first().map(Arc::clone) else { return };
        loop {
            let (reported, by_clock) = (Instant::now(), first.clock.now());
            // With a clock that is turned by hand nobody knows when it is turned.
            let is_over = || match (by_clock, first.clock.now()) {
                (Some(then), Some(now)) => (now - then).unsigned_abs() >= RelayInfo::EVERY,
                _ => reported.elapsed() >= RelayInfo::EVERY,
            };
            while !is_over() {
                let rest = first.at_most(RelayInfo::EVERY.saturating_sub(reported.elapsed()));
                tokio::select! {
                    () = tokio::time::sleep(rest.max(Duration::from_millis(1))) => {}
                    () = end.notified() => return,
                    () = self.changed.notified() => {
                        let soon = SHORTEST.saturating_sub(reported.elapsed());
                        if tokio::time::timeout(soon, end.notified()).await.is_ok() {
                            return;
                        }
                        break;
                    }
                }
            }
            self.say().await;
        }
    }

    /// Goes on saying how it is until `work` has ended.
    pub(crate) async fn say_during(&mut self, work: impl Future<Output = ()>) {
        tokio::pin!(work);
        while tokio::time::timeout(RelayInfo::EVERY, &mut work).await.is_err() {
            self.say().await;
        }
    }

    /// Says once how it is.
    pub(crate) async fn say(&mut self) {
        self.report.runs = self.runtimes.iter().map(|runtime| run(runtime)).collect();
        match self.coordinate.heartbeat(&self.report).await {
            Ok(relays) => {
                self.failing = false;
                for runtime in &self.runtimes {
                    runtime.run.shows.store(shows(self.report.id, &runtime.name, &relays), Ordering::Release);
                }
                self.compare(&relays);
                self.show_pauses().await;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(error = %error, "could not report that this relay is running; deliveries continue");
                }
            }
        }
    }

    /// Shows which subscriptions are paused: without a lane for their relays on purpose.
    async fn show_pauses(&self) {
        if self.runtimes.iter().all(|runtime| runtime.settings.figures.is_none()) {
            return;
        }
        let Ok(known) = self.inspect.subscriptions().await else { return };
        for runtime in &self.runtimes {
            let is_paused = known.iter().any(|info| info.paused && info.subscription.name == *runtime.name);
            paused(&runtime.name).set(f64::from(u8::from(is_paused)));
        }
    }

    /// Says of what other relays do otherwise, once each.
    fn compare(&mut self, relays: &[RelayInfo]) {
        let Self { report, said, .. } = self;
        let Some(this) = relays.iter().find(|relay| relay.report.id == report.id) else { return };
        for other in relays.iter().filter(|other| other.report.id != report.id && other.is_beside(this)) {
            let (name, host) = (&other.report.name, &other.report.host);
            if *name == report.name && said.insert(other.report.id.to_string()) {
                tracing::warn!(relay = %name, host = %host,
                    "another relay has the same name; relay names must be unique");
            }
            for run in &report.runs {
                let Some(theirs) = other.run(&run.subscription) else { continue };
                let keys = run.differing(theirs);
                if !keys.is_empty()
                    && said.insert(format!("{} {} {keys:?}", other.report.id, run.subscription))
                {
                    tracing::warn!(subscription = %run.subscription, relay = %name, host = %host, settings = ?keys,
                        "another relay has different settings for this subscription");
                }
            }
        }
    }
}

fn run(runtime: &SubscriptionRuntime) -> RelayRun {
    RelayRun {
        subscription: runtime.name.to_string(),
        lanes: runtime.run.lanes(),
        settings: runtime.run.settings.clone(),
        away: runtime.breaker.away().filter(|_| runtime.run.holds.load(Ordering::Acquire)),
    }
}

/// Whether a relay shows the gauges of a subscription: the one that has its first lane, or, while nobody has, as when it is paused,
/// the first of those that are there.
fn shows(id: Uuid, subscription: &str, relays: &[RelayInfo]) -> bool {
    let there: Vec<_> = relays.iter().filter(|relay| relay.attends(subscription)).collect();
    let has_first = |relay: &&&RelayInfo| relay.run(subscription).is_some_and(|run| run.lanes.contains(&0));
    let first = there.iter().find(has_first).or_else(|| there.iter().min_by_key(|relay| relay.report.id));
    first.is_some_and(|relay| relay.report.id == id)
}

/// A machine that does not tell its name.
const UNKNOWN: &str = "unknown";

/// The name of this machine. The system is asked and no file: a unit of systemd may see none of `/proc/sys`.
fn host() -> String {
    let told = gethostname::gethostname();
    let told = told.to_string_lossy();
    let name: String = told.trim().chars().filter(|c| !c.is_control()).take(64).collect();
    if name.is_empty() { UNKNOWN.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use postrider_core::OffsetDateTime;

    use super::*;

    fn relay(id: u128, lanes: &[u32], live: bool) -> RelayInfo {
        let run = RelayRun { subscription: "mail".into(), lanes: lanes.to_vec(), ..RelayRun::default() };
        let report = RelayReport {
            id: Uuid::from_u128(id),
            name: id.to_string(),
            host: "h".into(),
            process: 1,
            version: "1".into(),
            runs: vec![run],
        };
        let at = OffsetDateTime::UNIX_EPOCH;
        RelayInfo { report, started_at: at, seen_at: at, live }
    }

    #[test]
    fn the_gauges_are_shown_by_who_has_the_first_lane_and_else_by_the_first_that_is_there() {
        let shown_by = |relays: &[RelayInfo]| -> Vec<u128> {
            let ids = relays.iter().map(|relay| relay.report.id);
            ids.filter(|id| shows(*id, "mail", relays)).map(|id| id.as_u128()).collect()
        };
        assert_eq!(shown_by(&[relay(1, &[1], true), relay(2, &[0], true)]), [2]);
        assert_eq!(shown_by(&[relay(1, &[], true), relay(2, &[], true)]), [1], "nobody has it: paused");
        assert_eq!(shown_by(&[relay(1, &[0], false), relay(2, &[], true)]), [2], "who had it is gone");
    }

    #[test]
    fn this_machine_has_a_name() {
        assert_eq!(host(), gethostname::gethostname().to_string_lossy());
        assert_ne!(host(), UNKNOWN);
    }
}
