//! Failures in every order, and whether the event or the destination is to blame.

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
    fn decide(&self, tries: impl IntoIterator<Item = Tried>, open: bool) -> Vec<bool> {
        let tries = tries.into_iter().map(|(key, began, ended, outcome)| {
            let report = Report { outcome, began: self.at(began), ended: self.at(ended) };
            Some(Try { key: key as u64, event_id: Uuid::from_u128(key as u128), report })
        });
        let state = DestinationState { open, back: self.back, ..DestinationState::default() };
        let interpreted = self.contrast.interpret(tries.collect(), state);
        let decided: Vec<bool> = interpreted.reports.iter().map(Option::is_some).collect();
        assert_eq!(interpreted.undecided.is_some() || interpreted.again, decided.contains(&false));
        decided
    }
}

#[test]
fn a_failure_is_the_destinations_until_another_key_succeeds() {
    let scene = Scene::new();
    assert_eq!(scene.decide([('a', 10, 11, ok())], false), [true]);
    assert_eq!(
        scene.decide([('x', 20, 21, unclear())], false),
        [false],
        "a success before it proves nothing"
    );
    assert_eq!(scene.decide([('x', 30, 31, unclear())], true), [false]);
    assert_eq!(scene.decide([('a', 40, 41, ok())], true), [true]);
    assert_eq!(
        scene.decide([('x', 50, 51, unclear())], false),
        [true],
        "another has succeeded since it began"
    );
    assert_eq!(scene.decide([('x', 60, 61, unclear())], false), [true], "and it is its own from then on");
}

#[test]
fn its_own_success_is_no_contrast_and_begins_it_anew() {
    let scene = Scene::new();
    assert_eq!(scene.decide([('x', 10, 11, unclear())], false), [false]);
    assert_eq!(scene.decide([('x', 20, 21, ok())], true), [true]);
    assert_eq!(scene.decide([('x', 30, 31, unclear())], false), [false]);
    assert_eq!(scene.decide([('a', 40, 41, ok()), ('x', 42, 43, ok())], true), [true, true]);
    assert_eq!(scene.decide([('x', 50, 51, unclear())], false), [false], "the contrast was before it began");
}

#[test]
fn a_success_while_the_failing_one_was_under_way_is_a_contrast() {
    let scene = Scene::new();
    let tries = [('x', 10, 500, unclear()), ('a', 10, 12, ok()), ('b', 11, 13, ok())];
    assert_eq!(scene.decide(tries, false), [true, true, true]);
    // The same over two deliveries.
    assert_eq!(scene.decide([('c', 600, 601, ok())], false), [true]);
    assert_eq!(scene.decide([('y', 590, 1100, unclear())], false), [true]);
}

#[test]
fn what_was_under_way_when_the_destination_went_away_is_not_charged() {
    let scene = Scene::new();
    // It went away at 12: x had begun before a succeeded, y afterwards.
    let tries = [('a', 10, 12, ok()), ('x', 11, 13, unclear()), ('y', 13, 14, unclear())];
    assert_eq!(scene.decide(tries, false), [true, false, false]);
    assert_eq!(
        scene.decide([('x', 300, 301, unclear())], true),
        [false],
        "while it is away nothing is charged"
    );
    assert_eq!(scene.decide([('y', 600, 601, ok())], true), [true]);
    assert_eq!(scene.decide([('x', 602, 603, ok())], false), [true]);
}

/// All of them were under way when it went away, so that a's success is later than their begin; and nothing new comes.
#[test]
fn what_fails_with_others_after_the_last_success_is_not_charged_however_often() {
    let scene = Scene::new();
    let tries = [('a', 10, 15, ok()), ('b', 10, 16, unclear()), ('c', 11, 17, unclear())];
    assert_eq!(scene.decide(tries, false), [true, false, false]);
    for time in [100, 200, 300] {
        assert_eq!(scene.decide([('b', time, time + 1, unclear())], true), [false]);
        assert_eq!(scene.decide([('c', time, time + 1, unclear())], true), [false]);
    }
    assert_eq!(scene.decide([('b', 400, 401, ok())], true), [true]);
    assert_eq!(scene.decide([('c', 402, 403, unclear())], false), [true], "b was answered since");
}

#[test]
fn what_fails_while_another_was_answered_since_is_charged_however_many_fail() {
    let scene = Scene::new();
    let all = |time| [('x', time, time + 1, unclear()), ('y', time, time + 1, unclear())];
    assert_eq!(scene.decide(all(10), false), [false, false]);
    assert_eq!(scene.decide([('a', 20, 21, ok())], true), [true]);
    assert_eq!(scene.decide(all(30), false), [true, true]);
    assert_eq!(scene.decide(all(40), false), [true, true]);
}

/// Several hang, and the first of them runs out of time: that it is alone says nothing.
#[test]
fn what_fails_first_of_several_that_wait_alike_is_not_charged() {
    let scene = Scene::new();
    let fails = |under_way: Vec<(u64, Instant)>| {
        let report = Report { outcome: unclear(), began: scene.at(10), ended: scene.at(3010) };
        let each = Try { key: 7, event_id: Uuid::nil(), report };
        let state = DestinationState { under_way, ..DestinationState::default() };
        scene.contrast.interpret(vec![Some(each)], state).reports[0].is_some()
    };
    scene.decide([('a', 12, 15, ok())], false);
    assert!(!fails(vec![(8, scene.at(14))]));
    let scene = Scene::new();
    scene.decide([('a', 12, 15, ok())], false);
    let report = Report { outcome: unclear(), began: scene.at(10), ended: scene.at(3010) };
    let each = Try { key: 7, event_id: Uuid::nil(), report };
    let under_way = vec![(8, scene.at(3000)), (7, scene.at(10))];
    let interpreted = scene
        .contrast
        .interpret(vec![Some(each)], DestinationState { under_way, ..DestinationState::default() });
    assert!(interpreted.reports[0].is_some(), "others are answered quickly");
}

#[test]
fn what_fails_alone_among_successes_is_charged_also_when_it_ends_last() {
    let scene = Scene::new();
    let tries = [('a', 10, 15, ok()), ('b', 10, 16, ok()), ('c', 11, 17, unclear())];
    assert_eq!(scene.decide(tries, false), [true, true, true]);
    assert_eq!(scene.decide([('c', 100, 101, unclear())], false), [true], "nothing else fails");
    assert_eq!(scene.decide([('d', 200, 201, unclear())], false), [false]);
    assert_eq!(scene.decide([('c', 300, 301, unclear())], true), [false], "now it may be an outage");
}

#[test]
fn nothing_is_charged_while_the_destination_says_that_it_is_away() {
    let scene = Scene::new();
    let tries = [('a', 10, 15, ok()), ('x', 10, 16, unclear())].map(|(key, began, ended, outcome)| {
        let report = Report { outcome, began: scene.at(began), ended: scene.at(ended) };
        Some(Try { key: key as u64, event_id: Uuid::from_u128(key as u128), report })
    });
    let refused = DestinationState { refused: true, ..DestinationState::default() };
    let interpreted = scene.contrast.interpret(tries.into(), refused);
    assert_eq!(interpreted.reports.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn what_began_before_the_destination_was_back_is_tried_again() {
    let mut scene = Scene::new();
    assert_eq!(scene.decide([('x', 10, 310, unclear())], false), [false]);
    assert_eq!(scene.decide([('a', 350, 360, ok())], true), [true]);
    scene.back = Some(scene.at(360));
    // It hung while the destination was away, and its time was over when the destination was back.
    assert_eq!(scene.decide([('y', 290, 590, unclear())], false), [false]);
    assert_eq!(scene.decide([('x', 340, 640, unclear())], false), [false]);
    assert_eq!(scene.decide([('x', 650, 950, unclear())], false), [true], "now it is its own");
    assert_eq!(scene.decide([('y', 650, 950, unclear())], false), [false], "with x it may be an outage");
    assert_eq!(scene.decide([('a', 960, 970, ok())], true), [true]);
    scene.back = Some(scene.at(970));
    assert_eq!(scene.decide([('y', 980, 990, unclear())], false), [true]);
}

#[test]
fn an_earlier_failure_of_its_key_is_not_its_own() {
    let scene = Scene::new();
    let of = |event: u128, began: u64| {
        let report = Report { outcome: unclear(), began: scene.at(began), ended: scene.at(began + 1) };
        let each = Try { key: 7, event_id: Uuid::from_u128(event), report };
        scene.contrast.interpret(vec![Some(each), None], DestinationState::default()).reports[0].is_some()
    };
    assert!(!of(1, 10));
    scene.decide([('a', 20, 21, ok())], true);
    assert!(of(1, 30), "it is charged, and dies");
    assert!(!of(2, 40), "the next one of its key has no contrast yet");
}

#[test]
fn others_that_answer_close_what_another_lane_has_opened() {
    let scene = Scene::new();
    let tries = [('x', 10, 13, unclear()), ('a', 11, 12, ok())];
    assert_eq!(scene.decide(tries, true), [true, true]);
}

#[test]
fn the_longest_pause_that_was_asked_for_counts() {
    let scene = Scene::new();
    let busy = |seconds: u64| {
        let failure = DeliveryFailure::new("http_429", "the endpoint answered 429");
        let outcome = Outcome::Unclear { after: Some(Duration::from_secs(seconds)), failure, rejects: false };
        let report = Report { outcome, began: scene.at(1), ended: scene.at(2) };
        Some(Try { key: seconds, event_id: Uuid::from_u128(seconds.into()), report })
    };
    let tries = vec![busy(3), busy(9), busy(5)];
    let reason = scene.contrast.interpret(tries, DestinationState::default()).undecided.expect("away");
    assert_eq!(reason.pause, Some(Duration::from_secs(9)));
    assert_eq!(reason.reason, "the endpoint answered 429, and nothing else has succeeded since");
}

#[test]
fn probes_go_round() {
    let scene = Scene::new();
    let three = || ['a', 'b', 'c'].into_iter().map(|key| key as u64).enumerate();
    for (place, key) in ['a', 'b', 'c', 'a', 'b'].into_iter().enumerate() {
        assert_eq!(scene.contrast.probe(three()), Some(place % 3));
        scene.decide([(key, 1, 2, unclear())], true);
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
        let open = DestinationState { open: true, ..DestinationState::default() };
        assert!(scene.contrast.interpret(vec![Some(each)], open).undecided.is_some());
    }
    assert!(scene.contrast.known().failing.len() <= MOST);
}
