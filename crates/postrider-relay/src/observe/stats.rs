//! What a settled batch causes: log lines, metrics, and calls of the hook for deaths.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{Lease, OffsetDateTime, ReadEvent, Recorded};
use time::format_description::well_known::Rfc3339;

use crate::engine::retry_policy::Decision;
use crate::engine::runtime::SubscriptionRuntime;
use crate::engine::work::Work;
use crate::observe::death::Death;
use crate::observe::line::line;
use crate::observe::metrics::LaneMetrics;

/// A busy lane sums up this often.
const EVERY: Duration = Duration::from_secs(1);
/// So much of a position is in a line.
const LONGEST_POSITION: usize = 100;

/// What one lane has done lately.
pub(crate) struct BatchStats {
    runtime: Arc<SubscriptionRuntime>,
    metrics: LaneMetrics,
    since: Option<Instant>,
    batches: u64,
    delivered: u64,
    duplicates: u64,
    retried: u64,
    dead: u64,
}

impl BatchStats {
    pub(crate) fn new(runtime: &Arc<SubscriptionRuntime>) -> Self {
        Self {
            metrics: LaneMetrics::new(&runtime.name),
            runtime: Arc::clone(runtime),
            since: None,
            batches: 0,
            delivered: 0,
            duplicates: 0,
            retried: 0,
            dead: 0,
        }
    }

    /// A batch was read.
    pub(crate) fn batch(&mut self, events: &[ReadEvent]) {
        self.metrics.batch.record(events.len() as f64);
        events.iter().for_each(|read| self.metrics.read(&read.event.stream));
        self.batches += 1;
    }

    /// This was settled, under this lease.
    pub(crate) fn settled(&mut self, work: &Work, lease: &Lease, now: OffsetDateTime) {
        let runtime = Arc::clone(&self.runtime);
        let name = &runtime.name;
        for item in &work.items {
            let event = &item.event;
            match &item.decision {
                None => {}
                Some(Decision::Delivered { attempts, duplicate }) => {
                    self.delivered(event, *attempts, *duplicate, now);
                    if *duplicate {
                        line!(debug, name, event, attempts, "duplicate", {}, "already handled; skipped");
                    } else {
                        line!(debug, name, event, attempts, "delivered", {}, "delivered");
                    }
                }
                Some(Decision::Retry { attempts, pause, failure }) => {
                    self.retried += 1;
                    self.metrics.stream(&event.stream).retried.increment(1);
                    line!(warn, name, event, attempts, "retry",
                        { next_in_seconds = pause.as_secs_f64(), error_code = %failure.code, error = %failure.message, },
                        "failed; it will be retried");
                }
                Some(Decision::Dead { attempts, failure, age }) => {
                    self.dead += 1;
                    self.metrics.deaths.increment(1);
                    let metrics = self.metrics.stream(&event.stream);
                    metrics.rejected.increment(1);
                    metrics.attempts.record(f64::from(*attempts));
                    match age {
                        Some(age) => line!(warn, name, event, attempts, "dead",
                            { age_seconds = age.as_secs_f64(), occurred_at = rfc3339(event.occurred_at),
                              recorded_at = rfc3339(event.recorded_at), error_code = %failure.code,
                              error = %failure.message, },
                            "expired; it is dead until an operator acts"),
                        None => line!(warn, name, event, attempts, "dead",
                            { error_code = %failure.code, error = %failure.message, },
                            "dead until an operator acts"),
                    }
                }
            }
        }
        self.deaths(work);
        if let (Some(last), true) = (work.items.last(), work.next.is_some()) {
            self.metrics.lag.set(seconds(now, last.event.recorded_at));
        }
        if self.since.get_or_insert_with(Instant::now).elapsed() >= EVERY {
            self.say(lease);
        }
    }

    /// Gives its deaths to the hook.
    pub(crate) fn deaths(&self, work: &Work) {
        for item in &work.items {
            if let Some(Decision::Dead { attempts, failure, .. }) = &item.decision {
                let (subscription, event) = (Arc::clone(&self.runtime.name), Arc::clone(&item.event));
                self.runtime.on_death.tell(Death {
                    subscription,
                    event,
                    failure: failure.clone(),
                    attempts: *attempts,
                });
            }
        }
    }

    fn delivered(&mut self, event: &Recorded, attempts: u32, duplicate: bool, now: OffsetDateTime) {
        let metrics = self.metrics.stream(&event.stream);
        if duplicate {
            self.duplicates += 1;
            metrics.duplicates.increment(1);
            return;
        }
        self.delivered += 1;
        metrics.delivered.increment(1);
        metrics.attempts.record(f64::from(attempts));
        metrics.delivery_seconds.record(seconds(now, event.recorded_at));
    }

    /// Sums up, if there was anything, and says where the lane stands.
    pub(crate) fn say(&mut self, lease: &Lease) {
        let Self { batches, delivered, duplicates, retried, dead, .. } = *self;
        if delivered + duplicates + retried + dead > 0 {
            tracing::info!(subscription = %self.runtime.name, lane = lease.lane, batches, delivered, duplicates, retried, dead,
                position = beginning(lease.position.as_str()), "delivered");
        }
        self.since = None;
        (self.batches, self.delivered, self.duplicates, self.retried, self.dead) = (0, 0, 0, 0, 0);
    }
}

/// A position as a line has it: on PostgreSQL it lists the transactions that were open, and there may be many.
fn beginning(position: &str) -> &str {
    position.get(..LONGEST_POSITION).unwrap_or(position)
}

fn rfc3339(time: OffsetDateTime) -> String {
    time.format(&Rfc3339).unwrap_or_default()
}

fn seconds(now: OffsetDateTime, since: OffsetDateTime) -> f64 {
    (now - since).as_seconds_f64().max(0.0)
}
