//! Whether a failure is the event's or the destination's, decided by contrast with what else succeeds. Nothing here does I/O.
//!
//! One failure that may be either says little. It is the destination's for as long as no other key has succeeded since the
//! event's first failing try began: the event loses no attempt. Once another key has, the failure is the event's own.
//!
//! A destination may go away while several are under way. So a success after the event's first failing answer counts, and one before
//! that only while the event fails alone: no other key has failed since that success, and none waits for its answer as long as
//! the failing one did. A failure for which there is no contrast speaks for all that failed with it, and so does a destination
//! that can't be reached.
//!
//! What is known is this relay's, shared by the lanes of a subscription, and forgotten when the relay ends: a new one decides
//! nothing until it has seen a success.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use postrider_core::{Outcome, Report, Unavailable};
use uuid::Uuid;

/// Keys that are remembered as failing. Forgetting one charges nobody: its next failure begins anew.
const MOST: usize = 50_000;

/// What is known of a destination, shared by the lanes of a subscription in this relay.
#[derive(Default)]
pub(crate) struct Contrast {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The latest successes of two different keys, the later one first.
    successes: Latest,
    /// The latest failures, likewise.
    failures: Latest,
    failing: HashMap<u64, Failing>,
    /// Counts the tries that failed.
    tries: u64,
}

/// The event at which a key stands.
struct Failing {
    event_id: Uuid,
    /// When its first try that failed began, and when it ended.
    began: Instant,
    ended: Instant,
    /// The number of its last try.
    tried: u64,
}

/// When something last happened to two different keys, the later one first: enough to know when it last happened to another key.
#[derive(Default)]
struct Latest([Option<(u64, Instant)>; 2]);

impl Latest {
    fn add(&mut self, key: u64, at: Instant) {
        let [first, second] = &mut self.0;
        match first {
            Some((latest, time)) if *latest == key => *time = at.max(*time),
            Some((_, time)) if at < *time => match second {
                Some((_, time)) if at < *time => {}
                _ => *second = Some((key, at)),
            },
            _ => *second = first.replace((key, at)),
        }
    }

    /// When it last happened to another key than this.
    fn of_another(&self, key: u64) -> Option<Instant> {
        self.0.iter().flatten().find(|(other, _)| *other != key).map(|(_, at)| *at)
    }
}

/// One event's try, as it ended.
pub(crate) struct Try {
    pub(crate) key: u64,
    pub(crate) event_id: Uuid,
    pub(crate) report: Report,
}

/// How a destination stands when tries have ended.
#[derive(Debug, Default)]
pub(crate) struct DestinationState {
    /// It is away.
    pub(crate) open: bool,
    /// It said so of itself while these were tried.
    pub(crate) refused: bool,
    /// When it last came back.
    pub(crate) back: Option<Instant>,
    /// What has no answer yet: keys, and when their tries began.
    pub(crate) under_way: Vec<(u64, Instant)>,
}

impl DestinationState {
    /// Whether another key has waited for its answer about as long as this try did.
    fn keeps_another_waiting(&self, each: &Try) -> bool {
        let Report { began, ended, .. } = each.report;
        let as_long = |since: Instant| ended.saturating_duration_since(since) * 2 >= ended - began;
        self.under_way.iter().any(|(key, since)| *key != each.key && as_long(*since))
    }
}

/// What was decided about tries that ended.
pub(crate) struct Interpreted {
    /// In the order of the tries: what is to be judged, the event being to blame for what was unclear. Nothing for what was
    /// not tried, and for what is undecided.
    pub(crate) reports: Vec<Option<Report>>,
    /// Why the destination seems to be away, if anything is undecided.
    pub(crate) undecided: Option<Unavailable>,
    /// Whether anything failed that had begun before the destination was back: it is neither charged nor held against the
    /// destination, and tried again.
    pub(crate) again: bool,
}

impl Contrast {
    /// Decides what tries that ended mean, by how the destination stands.
    pub(crate) fn interpret(&self, tries: Vec<Option<Try>>, state: DestinationState) -> Interpreted {
        let mut known = self.known();
        let ended = || tries.iter().flatten();
        let failed = || ended().filter(|each| matches!(each.report.outcome, Outcome::Unclear { .. }));
        let mut succeeded = false;
        for each in ended().filter(|each| each.report.outcome.is_delivered()) {
            known.succeeded(each.key, each.report.ended);
            succeeded = true;
        }
        let early = |report: &Report| state.back.is_some_and(|back| report.began <= back);
        let failed = || failed().filter(|each| !early(&each.report));
        failed().for_each(|each| known.failed(each));
        let has_contrast = |each: &Try| known.has_contrast(each.key, state.keeps_another_waiting(each));
        let away = state.refused || (state.open && !succeeded) || failed().any(|each| !has_contrast(each));
        drop(known);
        let (mut undecided, mut again): (Option<Unavailable>, bool) = (None, false);
        let mut decide = |report: Report| match report.outcome {
            Outcome::Unclear { .. } if !away && early(&report) => {
                again = true;
                None
            }
            Outcome::Unclear { after, failure, .. } if away => {
                let reason = undecided.get_or_insert_with(|| {
                    Unavailable::new(format!("{}, and nothing else has succeeded since", failure.message))
                });
                reason.pause = reason.pause.max(after);
                None
            }
            outcome => Some(Report { outcome, ..report }),
        };
        let reports = tries.into_iter().map(|each| decide(each?.report)).collect();
        Interpreted { reports, undecided, again }
    }

    /// Which of these to ask a destination with that seems to be away: one that has not failed, or whose last try is the
    /// longest ago. Each is a place and a key.
    pub(crate) fn probe(&self, candidates: impl IntoIterator<Item = (usize, u64)>) -> Option<usize> {
        let known = self.known();
        let last_try = |key: &u64| known.failing.get(key).map_or(0, |failing| failing.tried);
        candidates.into_iter().min_by_key(|(_, key)| last_try(key)).map(|(place, _)| place)
    }

    /// Whether the last try of a key was of this event, and failed.
    pub(crate) fn has_failed(&self, key: u64, event_id: Uuid) -> bool {
        self.known().failing.get(&key).is_some_and(|failing| failing.event_id == event_id)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn succeeded(&mut self, key: u64, at: Instant) {
        if !self.failing.is_empty() {
            self.failing.remove(&key);
        }
        self.successes.add(key, at);
    }

    /// An event failed again, or for the first time.
    fn failed(&mut self, each: &Try) {
        self.tries += 1;
        let tried = self.tries;
        let &Try { key, event_id, report: Report { began, ended, .. } } = each;
        self.failures.add(key, ended);
        match self.failing.get_mut(&key) {
            Some(failing) if failing.event_id == event_id => failing.tried = tried,
            _ => {
                if self.failing.len() >= MOST {
                    self.failing.retain(|_, failing| failing.tried + MOST as u64 / 2 > tried);
                }
                self.failing.insert(key, Failing { event_id, began, ended, tried });
            }
        }
    }

    /// Whether what another key has done shows that the failing event of this one is to blame, `others_wait` saying whether
    /// others wait for their answers as it did.
    fn has_contrast(&self, key: u64, others_wait: bool) -> bool {
        let (Some(failing), Some(success)) = (self.failing.get(&key), self.successes.of_another(key)) else {
            return false;
        };
        let alone = !others_wait && self.failures.of_another(key).is_none_or(|failure| failure <= success);
        success > failing.ended || (success > failing.began && alone)
    }
}

#[cfg(test)]
mod tests;
