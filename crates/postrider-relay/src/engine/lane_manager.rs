//! The lanes of one subscription in this relay: claimed, worked on, given back when idle, taken over from the dead.
//!
//! A lane that has been idle for a while is given back, so that an idle relay writes nothing. Its relay then sleeps on the
//! bell, looks at what it knows of the lane without holding it, and claims it when there is something to do. A lane that
//! somebody else holds is asked for from time to time, without the bell: who can't read anyway must not make every commit ring.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::Gauge;
use postrider_core::{Backoff, Bell, ErrorKind, Lease, Order};
use tokio::task::JoinSet;

use crate::engine::lane::{End, Lane};
use crate::engine::runtime::SubscriptionRuntime;
use crate::observe::gauges::GaugeReporter;
use crate::observe::metrics::{breaker, lanes};
use crate::observe::presence::was_removed;

/// After a recall the lane is left to others for a moment.
const COURTESY: Duration = Duration::from_millis(200);
/// The shortest time between two questions for a lane.
const SOON: Duration = Duration::from_millis(10);
/// The longest time between two questions for a lane, whatever the lease.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

pub(crate) struct LaneManager {
    runtime: Arc<SubscriptionRuntime>,
    lanes: JoinSet<(u32, End)>,
    held: HashSet<u32>,
    /// What is known of lanes that were given back because they were idle.
    idle: HashMap<u32, Lease>,
    /// How many lanes there are, once one was claimed.
    total: Option<u32>,
    bell: Box<dyn Bell>,
    /// When to ask again for lanes that others hold.
    ask_at: Instant,
    /// How many lanes to take at once: one, and twice as many each time, so that relays that start together share them.
    claims_at_once: u32,
    /// How long until a lane that others hold is asked for again: soon at first, because who holds too many gives one up when it
    /// is told to.
    ask_again: Backoff,
    /// There is something to do: ask now.
    ask_now: bool,
    gauges: GaugeReporter,
    /// How many lanes this relay has.
    gauge: Gauge,
    /// Whether the destination is unavailable.
    away: Gauge,
}

impl LaneManager {
    pub(crate) fn new(runtime: Arc<SubscriptionRuntime>) -> Self {
        let longest = (runtime.settings.lease / 10).clamp(SOON, LONGEST_WAIT);
        Self {
            bell: runtime.store.bell(),
            lanes: JoinSet::new(),
            held: HashSet::new(),
            idle: HashMap::new(),
            total: None,
            ask_at: Instant::now(),
            claims_at_once: 1,
            ask_again: Backoff::new(SOON, longest),
            ask_now: true,
            gauges: GaugeReporter::new(&runtime),
            gauge: lanes(&runtime.name),
            away: breaker(&runtime.name),
            runtime,
        }
    }

    /// Keeps the lanes until the relay stops, and then waits for them.
    pub(crate) async fn keep(mut self) {
        let runtime = Arc::clone(&self.runtime);
        while !runtime.is_stopping() {
            if std::mem::take(&mut self.ask_now) || (self.wants_more() && Instant::now() >= self.ask_at) {
                self.claim().await;
            }
            let ask = self.ask_at.saturating_duration_since(Instant::now());
            let has: BTreeSet<u32> = self.held.iter().chain(self.idle.keys()).copied().collect();
            self.gauges.is_ours(has.contains(&0) || runtime.run.shows());
            runtime.run.has(has, !self.held.is_empty());
            self.gauge.set((self.held.len() + self.idle.len()) as f64);
            // Who holds no lane asks nobody, and does not know how the destination is.
            let is_away = runtime.breaker.is_open() && !self.held.is_empty();
            self.away.set(f64::from(u8::from(is_away)));
            let wants_more = self.wants_more();
            tokio::select! {
                Some(joined) = self.lanes.join_next(), if !self.lanes.is_empty() => match joined {
                    Ok((lane, end)) => self.ended(lane, end),
                    Err(error) => {
                        tracing::error!(subscription = %runtime.name, error = %error, "a lane's task ended unexpectedly");
                        self.held.clear();
                        self.idle.clear();
                    }
                },
                () = runtime.stopped() => {}
                () = tokio::time::sleep(runtime.at_most(ask)), if wants_more => {}
                something = Self::look(&runtime, &mut *self.bell, &self.idle), if !self.idle.is_empty() => {
                    self.ask_now = something;
                }
            }
        }
        let grace = runtime.settings.grace + runtime.settings.lease;
        let all = async { while self.lanes.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!(subscription = %runtime.name, "lanes did not stop within the grace period; the relay stops without them");
            self.lanes.abort_all();
        }
        self.gauge.set(0.0);
        self.away.set(0.0);
    }

    /// Whether there are lanes that are neither held nor known to be idle.
    fn wants_more(&self) -> bool {
        let known = self.held.len() + self.idle.len();
        self.total.is_none_or(|total| known < total as usize)
    }

    /// Claims what is free.
    async fn claim(&mut self) {
        let runtime = Arc::clone(&self.runtime);
        let mut taken = 0;
        let wait = loop {
            let asked = Instant::now();
            match runtime.store.claim(&runtime.name, &runtime.owner, runtime.settings.lease).await {
                Ok(Some(lease)) => {
                    self.is_there();
                    if self.total.replace(lease.lanes).is_some_and(|total| total != lease.lanes) {
                        self.idle.clear();
                    }
                    let lane = lease.lane;
                    self.ask_again.reset();
                    self.idle.remove(&lane);
                    self.held.insert(lane);
                    let work = Lane::new(Arc::clone(&runtime), lease, asked).work();
                    self.lanes.spawn(async move { (lane, work.await) });
                    taken += 1;
                    if self.total.is_some_and(|total| self.held.len() >= total as usize) {
                        break SOON;
                    }
                    if taken >= self.claims_at_once {
                        self.claims_at_once = self.claims_at_once.saturating_mul(2);
                        self.ask_at = Instant::now() + SOON;
                        return;
                    }
                }
                Ok(None) => {
                    self.is_there();
                    // What others hold is theirs to sleep for.
                    self.idle.clear();
                    self.claims_at_once = 1;
                    break self.ask_again.next_delay();
                }
                Err(error) => {
                    if error.kind() == ErrorKind::NotFound {
                        runtime.outage.is_over();
                        if runtime.run.is_removed(true) {
                            tracing::error!(subscription = %runtime.name, "{}", was_removed(&runtime.name));
                        }
                    } else {
                        runtime.outage.begins(&error);
                    }
                    // Nothing is known of any lane until the database answers.
                    self.idle.clear();
                    self.total = None;
                    break self.ask_again.next_delay();
                }
            }
            if runtime.is_stopping() {
                break SOON;
            }
        };
        self.ask_at = Instant::now() + wait;
    }

    /// The database answers, and has the subscription.
    fn is_there(&self) {
        self.runtime.outage.is_over();
        if self.runtime.run.is_removed(false) {
            tracing::info!(subscription = %self.runtime.name, "the subscription exists again; resuming");
        }
    }

    fn ended(&mut self, lane: u32, end: End) {
        self.held.remove(&lane);
        match end {
            End::Idle(lease) => {
                self.idle.insert(lane, *lease);
            }
            End::Recalled => {
                self.idle.clear();
                self.total = None;
                self.ask_again.reset();
                self.ask_at = Instant::now() + COURTESY;
            }
            End::Lost => self.ask_now = true,
            End::Stopped => {}
        }
    }

    /// Sleeps on the bell and looks whether there is something to do in the lanes that were given back.
    async fn look(runtime: &SubscriptionRuntime, bell: &mut dyn Bell, idle: &HashMap<u32, Lease>) -> bool {
        let mut next = runtime.settings.poll;
        loop {
            for lease in idle.values() {
                let holds = match runtime.store.due(lease, 1).await {
                    Ok(due) if due.deliveries.is_empty() => {
                        next = next.min(due.next_in.unwrap_or(next));
                        due.holds
                    }
                    // There is something; or the database does not answer, and a claim will tell.
                    _ => return true,
                };
                match runtime.store.read(lease, &lease.position, 1).await {
                    Ok(batch) if batch.is_idle() && !batch.recalled => {}
                    // A strict lane reads nothing while something holds it.
                    Ok(batch) if holds && runtime.order == Order::Strict && !batch.recalled => {}
                    _ => return true,
                }
            }
            let longest = runtime.at_most(next.max(Duration::from_millis(1)));
            next = runtime.settings.poll;
            // Cut short, the wait forgets nothing.
            if let Ok(Err(error)) = tokio::time::timeout(longest, bell.wait(runtime.settings.poll)).await {
                runtime.outage.begins(&error);
                runtime.rest(Duration::from_millis(200)).await;
            }
        }
    }
}
