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
pub(crate) struct Stands {
    /// It is away.
    pub(crate) open: bool,
    /// It said so of itself while these were tried.
    pub(crate) refused: bool,
    /// When it last came back.
    pub(crate) back: Option<Instant>,
    /// What has no answer yet: keys, and when their tries began.
    pub(crate) under_way: Vec<(u64, Instant)>,
}

impl Stands {
    /// Whether another key has waited for its answer about as long as this try did.
    fn keeps_another_waiting(&self, each: &Try) -> bool {
        let Report { began, ended, .. } = each.report;
        let as_long = |since: Instant| ended.saturating_duration_since(since) * 2 >= ended - began;
        self.under_way.iter().any(|(key, since)| *key != each.key && as_long(*since))
    }
}

/// What was decided of tries.
pub(crate) struct Sifted {
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
    pub(crate) fn sift(&self, tries: Vec<Option<Try>>, stands: Stands) -> Sifted {
        let mut known = self.known();
        let ended = || tries.iter().flatten();
        let failed = || ended().filter(|each| matches!(each.report.outcome, Outcome::Unclear { .. }));
        let mut succeeded = false;
        for each in ended().filter(|each| each.report.outcome.is_delivered()) {
            known.succeeded(each.key, each.report.ended);
            succeeded = true;
        }
        let early = |report: &Report| stands.back.is_some_and(|back| report.began <= back);
        let failed = || failed().filter(|each| !early(&each.report));
        failed().for_each(|each| known.failed(each));
        let has_contrast = |each: &Try| known.has_contrast(each.key, stands.keeps_another_waiting(each));
        let away = stands.refused || (stands.open && !succeeded) || failed().any(|each| !has_contrast(each));
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
        Sifted { reports, undecided, again }
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
mod tests {
    use std::time::Duration;

    use postrider_core::DeliveryFailure;

    use super::*;

    /// A destination that is tried at set times, in milliseconds.
    struct Scene {
        contrast: Contrast,
        start: Instant,
        back: Option<Instant>,
    }

    /// A try: key, when it began and ended, and what became of it.
    type Tried = (char, u64, u64, Outcome);

    fn ok() -> Outcome {
        Outcome::Delivered
    }

    fn unclear() -> Outcome {
        Outcome::unclear(DeliveryFailure::new("http_404", "the endpoint answered 404"))
    }

    impl Scene {
        fn new() -> Self {
            Self { contrast: Contrast::default(), start: Instant::now(), back: None }
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        /// Whether each is decided. A key has one event.
        fn sift(&self, tries: impl IntoIterator<Item = Tried>, open: bool) -> Vec<bool> {
            let tries = tries.into_iter().map(|(key, began, ended, outcome)| {
                let report = Report { outcome, began: self.at(began), ended: self.at(ended) };
                Some(Try { key: key as u64, event_id: Uuid::from_u128(key as u128), report })
            });
            let stands = Stands { open, back: self.back, ..Stands::default() };
            let sifted = self.contrast.sift(tries.collect(), stands);
            let decided: Vec<bool> = sifted.reports.iter().map(Option::is_some).collect();
            assert_eq!(sifted.undecided.is_some() || sifted.again, decided.contains(&false));
            decided
        }
    }

    #[test]
    fn a_failure_is_the_destinations_until_another_key_succeeds() {
        let scene = Scene::new();
        assert_eq!(scene.sift([('a', 10, 11, ok())], false), [true]);
        assert_eq!(
            scene.sift([('x', 20, 21, unclear())], false),
            [false],
            "a success before it proves nothing"
        );
        assert_eq!(scene.sift([('x', 30, 31, unclear())], true), [false]);
        assert_eq!(scene.sift([('a', 40, 41, ok())], true), [true]);
        assert_eq!(
            scene.sift([('x', 50, 51, unclear())], false),
            [true],
            "another has succeeded since it began"
        );
        assert_eq!(scene.sift([('x', 60, 61, unclear())], false), [true], "and it is its own from then on");
    }

    #[test]
    fn its_own_success_is_no_contrast_and_begins_it_anew() {
        let scene = Scene::new();
        assert_eq!(scene.sift([('x', 10, 11, unclear())], false), [false]);
        assert_eq!(scene.sift([('x', 20, 21, ok())], true), [true]);
        assert_eq!(scene.sift([('x', 30, 31, unclear())], false), [false]);
        assert_eq!(scene.sift([('a', 40, 41, ok()), ('x', 42, 43, ok())], true), [true, true]);
        assert_eq!(
            scene.sift([('x', 50, 51, unclear())], false),
            [false],
            "the contrast was before it began"
        );
    }

    #[test]
    fn a_success_while_the_failing_one_was_under_way_is_a_contrast() {
        let scene = Scene::new();
        let tries = [('x', 10, 500, unclear()), ('a', 10, 12, ok()), ('b', 11, 13, ok())];
        assert_eq!(scene.sift(tries, false), [true, true, true]);
        // The same over two deliveries.
        assert_eq!(scene.sift([('c', 600, 601, ok())], false), [true]);
        assert_eq!(scene.sift([('y', 590, 1100, unclear())], false), [true]);
    }

    #[test]
    fn what_was_under_way_when_the_destination_went_away_is_not_charged() {
        let scene = Scene::new();
        // It went away at 12: x had begun before a succeeded, y afterwards.
        let tries = [('a', 10, 12, ok()), ('x', 11, 13, unclear()), ('y', 13, 14, unclear())];
        assert_eq!(scene.sift(tries, false), [true, false, false]);
        assert_eq!(
            scene.sift([('x', 300, 301, unclear())], true),
            [false],
            "while it is away nothing is charged"
        );
        assert_eq!(scene.sift([('y', 600, 601, ok())], true), [true]);
        assert_eq!(scene.sift([('x', 602, 603, ok())], false), [true]);
    }

    /// All of them were under way when it went away, so that a's success is later than their begin; and nothing new comes.
    #[test]
    fn what_fails_with_others_after_the_last_success_is_not_charged_however_often() {
        let scene = Scene::new();
        let tries = [('a', 10, 15, ok()), ('b', 10, 16, unclear()), ('c', 11, 17, unclear())];
        assert_eq!(scene.sift(tries, false), [true, false, false]);
        for time in [100, 200, 300] {
            assert_eq!(scene.sift([('b', time, time + 1, unclear())], true), [false]);
            assert_eq!(scene.sift([('c', time, time + 1, unclear())], true), [false]);
        }
        assert_eq!(scene.sift([('b', 400, 401, ok())], true), [true]);
        assert_eq!(scene.sift([('c', 402, 403, unclear())], false), [true], "b was answered since");
    }

    #[test]
    fn what_fails_while_another_was_answered_since_is_charged_however_many_fail() {
        let scene = Scene::new();
        let all = |time| [('x', time, time + 1, unclear()), ('y', time, time + 1, unclear())];
        assert_eq!(scene.sift(all(10), false), [false, false]);
        assert_eq!(scene.sift([('a', 20, 21, ok())], true), [true]);
        assert_eq!(scene.sift(all(30), false), [true, true]);
        assert_eq!(scene.sift(all(40), false), [true, true]);
    }

    /// Several hang, and the first of them runs out of time: that it is alone says nothing.
    #[test]
    fn what_fails_first_of_several_that_wait_alike_is_not_charged() {
        let scene = Scene::new();
        let fails = |under_way: Vec<(u64, Instant)>| {
            let report = Report { outcome: unclear(), began: scene.at(10), ended: scene.at(3010) };
            let each = Try { key: 7, event_id: Uuid::nil(), report };
            let stands = Stands { under_way, ..Stands::default() };
            scene.contrast.sift(vec![Some(each)], stands).reports[0].is_some()
        };
        scene.sift([('a', 12, 15, ok())], false);
        assert!(!fails(vec![(8, scene.at(14))]));
        let scene = Scene::new();
        scene.sift([('a', 12, 15, ok())], false);
        let report = Report { outcome: unclear(), began: scene.at(10), ended: scene.at(3010) };
        let each = Try { key: 7, event_id: Uuid::nil(), report };
        let under_way = vec![(8, scene.at(3000)), (7, scene.at(10))];
        let sifted = scene.contrast.sift(vec![Some(each)], Stands { under_way, ..Stands::default() });
        assert!(sifted.reports[0].is_some(), "others are answered quickly");
    }

    #[test]
    fn what_fails_alone_among_successes_is_charged_also_when_it_ends_last() {
        let scene = Scene::new();
        let tries = [('a', 10, 15, ok()), ('b', 10, 16, ok()), ('c', 11, 17, unclear())];
        assert_eq!(scene.sift(tries, false), [true, true, true]);
        assert_eq!(scene.sift([('c', 100, 101, unclear())], false), [true], "nothing else fails");
        assert_eq!(scene.sift([('d', 200, 201, unclear())], false), [false]);
        assert_eq!(scene.sift([('c', 300, 301, unclear())], true), [false], "now it may be an outage");
    }

    #[test]
    fn nothing_is_charged_while_the_destination_says_that_it_is_away() {
        let scene = Scene::new();
        let tries = [('a', 10, 15, ok()), ('x', 10, 16, unclear())].map(|(key, began, ended, outcome)| {
            let report = Report { outcome, began: scene.at(began), ended: scene.at(ended) };
            Some(Try { key: key as u64, event_id: Uuid::from_u128(key as u128), report })
        });
        let refused = Stands { refused: true, ..Stands::default() };
        let sifted = scene.contrast.sift(tries.into(), refused);
        assert_eq!(sifted.reports.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn what_began_before_the_destination_was_back_is_tried_again() {
        let mut scene = Scene::new();
        assert_eq!(scene.sift([('x', 10, 310, unclear())], false), [false]);
        assert_eq!(scene.sift([('a', 350, 360, ok())], true), [true]);
        scene.back = Some(scene.at(360));
        // It hung while the destination was away, and its time was over when the destination was back.
        assert_eq!(scene.sift([('y', 290, 590, unclear())], false), [false]);
        assert_eq!(scene.sift([('x', 340, 640, unclear())], false), [false]);
        assert_eq!(scene.sift([('x', 650, 950, unclear())], false), [true], "now it is its own");
        assert_eq!(scene.sift([('y', 650, 950, unclear())], false), [false], "with x it may be an outage");
        assert_eq!(scene.sift([('a', 960, 970, ok())], true), [true]);
        scene.back = Some(scene.at(970));
        assert_eq!(scene.sift([('y', 980, 990, unclear())], false), [true]);
    }

    #[test]
    fn an_earlier_failure_of_its_key_is_not_its_own() {
        let scene = Scene::new();
        let of = |event: u128, began: u64| {
            let report = Report { outcome: unclear(), began: scene.at(began), ended: scene.at(began + 1) };
            let each = Try { key: 7, event_id: Uuid::from_u128(event), report };
            scene.contrast.sift(vec![Some(each), None], Stands::default()).reports[0].is_some()
        };
        assert!(!of(1, 10));
        scene.sift([('a', 20, 21, ok())], true);
        assert!(of(1, 30), "it is charged, and dies");
        assert!(!of(2, 40), "the next one of its key has no contrast yet");
    }

    #[test]
    fn others_that_answer_close_what_another_lane_has_opened() {
        let scene = Scene::new();
        let tries = [('x', 10, 13, unclear()), ('a', 11, 12, ok())];
        assert_eq!(scene.sift(tries, true), [true, true]);
    }

    #[test]
    fn the_longest_pause_that_was_asked_for_counts() {
        let scene = Scene::new();
        let busy = |seconds: u64| {
            let failure = DeliveryFailure::new("http_429", "the endpoint answered 429");
            let outcome =
                Outcome::Unclear { after: Some(Duration::from_secs(seconds)), failure, rejects: false };
            let report = Report { outcome, began: scene.at(1), ended: scene.at(2) };
            Some(Try { key: seconds, event_id: Uuid::from_u128(seconds.into()), report })
        };
        let tries = vec![busy(3), busy(9), busy(5)];
        let reason = scene.contrast.sift(tries, Stands::default()).undecided.expect("away");
        assert_eq!(reason.pause, Some(Duration::from_secs(9)));
        assert_eq!(reason.reason, "the endpoint answered 429, and nothing else has succeeded since");
    }

    #[test]
    fn probes_go_round() {
        let scene = Scene::new();
        let three = || ['a', 'b', 'c'].into_iter().map(|key| key as u64).enumerate();
        for (place, key) in ['a', 'b', 'c', 'a', 'b'].into_iter().enumerate() {
            assert_eq!(scene.contrast.probe(three()), Some(place % 3));
            scene.sift([(key, 1, 2, unclear())], true);
        }
        assert_eq!(scene.contrast.probe([]), None);
        assert!(scene.contrast.has_failed('a' as u64, Uuid::from_u128('a' as u128)));
        assert!(!scene.contrast.has_failed('a' as u64, Uuid::from_u128(1)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let scene = Scene::new();
        for key in 0..2 * MOST as u64 {
            let report = Report { outcome: unclear(), began: scene.start, ended: scene.start };
            let each = Try { key, event_id: Uuid::nil(), report };
            let open = Stands { open: true, ..Stands::default() };
            assert!(scene.contrast.sift(vec![Some(each)], open).undecided.is_some());
        }
        assert!(scene.contrast.known().failing.len() <= MOST);
    }
}
