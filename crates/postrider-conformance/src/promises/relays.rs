//! What is promised of relays that make themselves known, and of what is told by it.

use std::time::Duration;

use postrider_core::{
    ErrorKind, OffsetDateTime, Pause, RelayInfo, RelayReport, RelayRun, Severity, Store, Subscribed,
    Subscription, Uuid,
};

use crate::harness::Harness;
use crate::relay::{LONG, commit_one, log_with_clock, subscribe};

const SECOND: Duration = Duration::from_secs(1);

fn report(name: &str, subscriptions: &[&str]) -> RelayReport {
    let run = |name: &&str| RelayRun { subscription: (*name).to_owned(), ..RelayRun::default() };
    RelayReport {
        id: Uuid::now_v7(),
        name: name.to_owned(),
        host: "shop-1".to_owned(),
        process: 4711,
        version: "0.1.0".to_owned(),
        runs: subscriptions.iter().map(run).collect(),
    }
}

async fn names(operator: &dyn Store) -> Vec<(String, bool)> {
    let relays = operator.relays().await.expect("relays");
    relays.into_iter().map(|relay| (relay.report.name, relay.live)).collect()
}

/// A relay is known by what it said last, since its first report, until it says that it ends.
pub async fn a_relay_is_known_by_what_it_said_last_until_it_ends(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator, other) = (log.store(), log.second_store().await, log.second_store().await);
    assert_eq!(operator.relays().await.expect("relays"), []);
    let started_at = clock.now();
    let mut first = report("b", &["mail", "\u{fc}ber \"alles\""]);
    let known = store.heartbeat(&first).await.expect("heartbeat");
    assert_eq!(known.len(), 1, "it hears of itself");
    clock.advance(SECOND * 20);
    first.runs[0].lanes = vec![0, 3];
    first.runs[0].settings.insert("timeout".into(), "30s".into());
    let second = report("b", &[]);
    other.heartbeat(&second).await.expect("another of the same name");
    let known = store.heartbeat(&first).await.expect("heartbeat");
    assert_eq!(known.len(), 2, "it hears of the other");
    let seen_at = clock.now();
    let expected = RelayInfo { report: first.clone(), started_at, seen_at, live: true };
    let shown = operator.relays().await.expect("relays");
    assert_eq!(shown, [expected, RelayInfo { report: second, started_at: seen_at, seen_at, live: true }]);
    store.deregister(first.id).await.expect("it ends");
    store.deregister(first.id).await.expect("to say it twice is to say it once");
    assert_eq!(operator.relays().await.expect("relays").len(), 1, "the other of that name stays");
    let nameless = RelayReport { name: String::new(), ..first };
    assert_eq!(store.heartbeat(&nameless).await.expect_err("no name").kind(), ErrorKind::Invalid);
}

/// A relay that misses its reports is gone, and forgotten after a day; one whose report is of the future is not there, and
/// forgotten as well.
pub async fn a_relay_that_misses_its_reports_is_gone(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    store.heartbeat(&report("killed", &["mail"])).await.expect("heartbeat");
    let alive = report("alive", &["mail"]);
    clock.advance(RelayInfo::GONE_AFTER - SECOND);
    store.heartbeat(&alive).await.expect("heartbeat");
    assert_eq!(names(&*operator).await, [("alive".into(), true), ("killed".into(), true)]);
    clock.advance(SECOND * 2);
    assert_eq!(names(&*operator).await, [("alive".into(), true), ("killed".into(), false)]);
    clock.advance(RelayInfo::FORGOTTEN_AFTER - RelayInfo::GONE_AFTER);
    assert_eq!(names(&*operator).await, [("alive".into(), false)], "a day is over, and no relay is there");
    clock.advance(RelayInfo::GONE_AFTER);
    assert_eq!(names(&*operator).await, []);
    let known = store.heartbeat(&alive).await.expect("heartbeat");
    assert_eq!((known.len(), names(&*operator).await), (1, vec![("alive".into(), true)]));
    clock.set(clock.now() - RelayInfo::FORGOTTEN_AFTER);
    assert_eq!(names(&*operator).await, [("alive".into(), false)], "the database was set back");
    clock.set(clock.now() - SECOND);
    assert_eq!(names(&*operator).await, [], "by more than a day: whoever is there says so again");
    assert_eq!(store.heartbeat(&report("later", &[])).await.expect("heartbeat").len(), 1);
    clock.advance(SECOND * 3);
    assert_eq!(names(&*operator).await, [("later".into(), true)], "it is not kept for later");
}

/// What a live relay has is removed by force only, though nobody holds a lane of it.
pub async fn what_a_live_relay_has_is_removed_by_force_only(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    for name in ["mail", "other", "third"] {
        subscribe(&*store, name).await;
    }
    store.heartbeat(&report("night-1", &["mail", "other"])).await.expect("heartbeat");
    let error = operator.remove("mail", false).await.expect_err("an idle relay has it");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("\"night-1\" on shop-1"), "{error}");
    operator.remove("third", false).await.expect("nobody has it");
    operator.remove("other", true).await.expect("forced");
    clock.advance(RelayInfo::GONE_AFTER);
    operator.remove("mail", false).await.expect("the relay is gone");
    assert_eq!(operator.subscriptions().await.expect("subscriptions"), []);
}

/// Who paused a subscription, when and why is kept until it goes on; who pauses it again changes nothing.
pub async fn who_paused_a_subscription_is_kept_until_it_goes_on(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    let shown = async || {
        let info = operator.subscriptions().await.expect("subscriptions").remove(0);
        (info.paused, info.pause)
    };
    assert_eq!(shown().await, (false, None));
    let first = Pause { who: "ada@shop".into(), why: Some("the supplier migrates; \u{2615}".into()) };
    let since = clock.now();
    operator.pause("s", Some(&first)).await.expect("pause");
    clock.advance(SECOND);
    operator.pause("s", Some(&Pause::by("grace"))).await.expect("again");
    let (paused, pause) = shown().await;
    let pause = pause.expect("somebody paused it");
    assert!(paused);
    assert_eq!((pause.by, pause.since), (first, since));
    operator.pause("s", None).await.expect("resume");
    assert_eq!(shown().await, (false, None));
    clock.advance(SECOND);
    operator.pause("s", Some(&Pause::by("grace"))).await.expect("pause");
    let pause = shown().await.1.expect("somebody paused it");
    assert_eq!((pause.by, pause.since), (Pause::by("grace"), clock.now()));
    let nobody = Pause::by("");
    assert_eq!(operator.pause("s", Some(&nobody)).await.expect_err("nobody").kind(), ErrorKind::Invalid);
}

/// Of many who ask for a subscription at once, one is told that it is new.
pub async fn one_is_told_that_a_subscription_is_new(harness: &dyn Harness) {
    let (log, _) = log_with_clock(harness).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = log.second_store().await;
        asking.spawn(async move { store.subscribe(&Subscription::new("s")).await.expect("subscribe") });
    }
    let told = asking.join_all().await;
    assert_eq!(told.iter().filter(|told| **told == Subscribed::New).count(), 1, "{told:?}");
    let again = log.store().subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    assert_eq!(again, Subscribed::Known);
}

/// What no relay reads is found, and only that: a relay that has a subscription may hold no lane of it, while it waits for a retry or for a
/// person. Of stores that look for it.
pub async fn only_what_no_relay_has_is_said_to_be_unread(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    let unread = async || {
        let checks = operator.checks(OffsetDateTime::now_utc()).await.expect("checks");
        let lanes = checks.into_iter().find(|check| check.name == "lanes").expect("a look at the lanes");
        (lanes.severity, lanes.what)
    };
    let all_read = (Severity::Good, "every subscription with events to read has a relay".to_owned());
    let unread_of = |names: &str| (Severity::Warn, format!("no relay reads the waiting events of: {names}"));
    for name in ["\u{fc}ber \"alles\", und mehr", "mail"] {
        subscribe(&*store, name).await;
    }
    commit_one(&*log, "a").await;
    assert_eq!(unread().await, all_read, "just recorded");
    clock.advance(LONG);
    assert_eq!(unread().await, unread_of("mail, \u{fc}ber \"alles\", und mehr"));
    store.heartbeat(&report("night-1", &["\u{fc}ber \"alles\", und mehr"])).await.expect("heartbeat");
    assert_eq!(unread().await, unread_of("mail"));
    store.heartbeat(&report("night-2", &["mail"])).await.expect("heartbeat");
    assert_eq!(unread().await, all_read);
    clock.advance(RelayInfo::GONE_AFTER);
    assert_eq!(unread().await, unread_of("mail, \u{fc}ber \"alles\", und mehr"), "they are gone");
}
