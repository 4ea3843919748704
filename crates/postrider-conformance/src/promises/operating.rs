//! What operators are promised: what they see is so, and what they do happens once and completely.

use std::time::Duration;

use postrider_core::{
    AuditEntry, DeliveryChange, DeliveryFailure, DeliveryState, ErrorKind, Lease, LeaseStatus, ManualClock,
    OffsetDateTime, OnDead, OpenDelivery, OpenDeliveryQuery, Order, Pattern, Settlement, Severity, Start,
    Store, Subscription, Sweep, Uuid,
};

use crate::harness::Harness;
use crate::relay::{LONG, claim, commit_one, drain, ids, log, log_with_clock, read, settle, subscribe};

const DAY: Duration = Duration::from_secs(86_400);

/// Every subscription as it is in force, and where its lanes stand.
pub async fn subscriptions_are_shown_with_their_lanes(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    assert_eq!(operator.subscriptions().await.expect("subscriptions"), []);
    let wanted = Subscription::new("b").streams(["or*"]).types(["OrderChanged", "100%_"]).lanes(2);
    let wanted = wanted.order(Order::Strict).on_dead(OnDead::Hold).replay(false);
    let made_at = clock.now();
    store.subscribe(&wanted).await.expect("subscribe");
    commit_one(&*log, "x").await;
    store.subscribe(&Subscription::new("a").start(Start::Now)).await.expect("subscribe");
    let since = clock.now() - DAY;
    store.subscribe(&Subscription::new("c").start(Start::At(since))).await.expect("subscribe");
    let shown = operator.subscriptions().await.expect("subscriptions");
    let names: Vec<&str> = shown.iter().map(|info| info.subscription.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(shown[1].subscription, wanted, "as it was asked for");
    assert_eq!((shown[0].subscription.start, shown[0].lanes[0].behind), (Start::Now, 0));
    assert_eq!(shown[2].subscription.start, Start::At(since));
    assert!(shown.iter().all(|info| info.created_at == made_at && !info.paused && info.lanes_next.is_none()));
    let lanes = &shown[1].lanes;
    assert_eq!(lanes.iter().map(|lane| lane.lane).collect::<Vec<_>>(), [0, 1]);
    assert!(lanes.iter().all(|lane| lane.behind == 1 && lane.reached == 0 && lane.owner.is_none()));
    assert!(lanes.iter().all(|lane| lane.settled_at.is_none() && lane.lease_until.is_none()));

    let mut lease = claim(&*store, "b").await;
    clock.advance(Duration::from_secs(1));
    let batch = read(&*store, &lease, 10).await;
    settle(&*store, &mut lease, &batch).await;
    store.relane("b", 3).await.expect("relane");
    let shown = operator.subscriptions().await.expect("subscriptions");
    let held = &shown[1].lanes[lease.lane as usize];
    assert_eq!((held.owner.as_deref(), held.lease_until), (Some("relay"), Some(lease.until)));
    assert_eq!((held.behind, held.settled_at), (0, Some(clock.now())));
    assert_eq!((shown[1].lanes.len(), shown[1].lanes_next), (2, Some(3)), "a change is under way");
    clock.advance(LONG * 2);
    let shown = operator.subscriptions().await.expect("subscriptions");
    assert!(shown[1].lanes.iter().all(|lane| lane.owner.is_none()), "the lease has run out");
}

/// What the holder of a lane says of its destination is shown, since when it says so, for as long as it holds the lane.
pub async fn a_destination_that_is_away_is_shown_until_it_is_back(harness: &dyn Harness) {
    const SECOND: Duration = Duration::from_secs(1);
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let shown = || away_as_shown(&*operator);
    let nothing = (vec![(None, None); 2], None);
    let mut lease = claim(&*store, "s").await;
    let lane = lease.lane as usize;
    assert_eq!((&lease.away, shown().await), (&None, nothing.clone()));

    clock.advance(SECOND);
    let since = clock.now();
    lease.away = Some("connection refused".into());
    extend(&*store, &mut lease).await;
    clock.advance(SECOND);
    let refused = ("connection refused".to_owned(), since);
    let (lanes, said) = shown().await;
    assert_eq!((&lanes[lane], &lanes[1 - lane]), (&(Some(refused.0.clone()), Some(since)), &(None, None)));
    assert_eq!(said, Some(refused.clone()));

    commit_one(&*log, "a").await;
    let batch = read(&*store, &lease, 10).await;
    settle(&*store, &mut lease, &batch).await;
    assert_eq!(shown().await.1, Some(refused), "a settle says nothing of it");

    lease.away = Some(format!("a\0b\n\u{e9}{}", "\u{1f40e}".repeat(500)));
    extend(&*store, &mut lease).await;
    let kept = format!("a b \u{e9}{}", "\u{1f40e}".repeat(295));
    assert_eq!(shown().await.1, Some((kept, since)), "another reason, cut; the time stays");

    lease.away = None;
    extend(&*store, &mut lease).await;
    assert_eq!(shown().await, nothing, "it is back");

    clock.advance(SECOND);
    lease.away = Some("again".into());
    extend(&*store, &mut lease).await;
    assert_eq!(shown().await.1, Some(("again".into(), clock.now())), "the time is counted anew");
    store.release(lease).await.expect("release");
    let mut other = claim(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    assert_eq!(shown().await, nothing, "a release takes it back");

    lease.away = Some("gone".into());
    extend(&*store, &mut lease).await;
    clock.advance(LONG);
    assert_eq!(shown().await, nothing, "nobody says so any more");
    assert_eq!(store.extend(&mut other, LONG, None).await.expect("extend"), LeaseStatus::Held);
    let next_holder = claim(&*store, "s").await;
    assert_eq!((next_holder.lane, next_holder.away), (lease.lane, None));
    assert_eq!(shown().await, nothing, "the next holder has not said so");
    assert_eq!(store.extend(&mut lease, LONG, None).await.expect("extend"), LeaseStatus::Lost);
    assert_eq!(shown().await, nothing, "and a stale one is not heard");
}

/// What the holder of a lane says of its destination, and since when.
type LaneAway = (Option<String>, Option<OffsetDateTime>);

/// What is shown of the first subscription's destination: lane by lane, and altogether.
async fn away_as_shown(operator: &dyn Store) -> (Vec<LaneAway>, Option<(String, OffsetDateTime)>) {
    let shown = operator.subscriptions().await.expect("subscriptions").remove(0);
    let said = shown.away().map(|(reason, since)| (reason.to_owned(), since));
    (shown.lanes.into_iter().map(|lane| (lane.away, lane.away_since)).collect(), said)
}

async fn extend(store: &dyn Store, lease: &mut Lease) {
    assert_eq!(store.extend(lease, LONG, None).await.expect("extend"), LeaseStatus::Held);
}

/// A paused subscription gives nothing out, tells its holders, and goes on where it stood.
pub async fn a_paused_subscription_rests_until_it_is_resumed(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    subscribe(&*store, "other").await;
    let first = commit_one(&*log, "a").await;
    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 10).await;
    for _ in 0..2 {
        operator.pause("s", Some(&postrider_core::Pause::by("ada"))).await.expect("pause");
        assert!(operator.subscriptions().await.expect("subscriptions")[1].paused);
    }
    assert!(read(&*store, &lease, 10).await.recalled, "told at the next read");
    assert_eq!(store.extend(&mut lease, LONG, None).await.expect("extend"), LeaseStatus::Recalled);
    assert_eq!(
        settle(&*store, &mut lease, &batch).await,
        LeaseStatus::Recalled,
        "what was in flight is kept"
    );
    store.release(lease.clone()).await.expect("release");
    assert!(store.claim("s", "relay", LONG).await.expect("claim").is_none());
    assert!(read(&*store, &lease, 10).await.recalled, "who only looks is told, too");
    assert_eq!(ids(&drain(&*store, "other").await), [first], "another is none of its business");
    let second = commit_one(&*log, "a").await;
    store.subscribe(&Subscription::new("s")).await.expect("subscribe again");
    assert!(store.claim("s", "relay", LONG).await.expect("claim").is_none(), "a restart does not resume it");
    for _ in 0..2 {
        operator.pause("s", None).await.expect("resume");
    }
    assert_eq!(ids(&drain(&*store, "s").await), [second]);
    for paused in [true, false] {
        let error = operator
            .pause("nobody", paused.then(|| postrider_core::Pause::by("ada")).as_ref())
            .await
            .expect_err("there is no such subscription");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("\"nobody\""), "{error}");
    }
}

/// A resume rings relays that sleep.
pub async fn a_resume_rings_sleeping_relays(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.second_store().await);
    subscribe(&*store, "s").await;
    operator.pause("s", Some(&postrider_core::Pause::by("ada"))).await.expect("pause");
    let mut bell = store.bell();
    // Until it sleeps: a wait that lasts.
    let (asleep, began) = (Duration::from_millis(300), std::time::Instant::now());
    while tokio::time::timeout(asleep, bell.wait(LONG)).await.is_ok() {
        assert!(began.elapsed() < Duration::from_secs(30), "it never fell asleep");
    }
    let waiting = tokio::spawn(async move { bell.wait(LONG).await });
    tokio::task::yield_now().await;
    operator.pause("s", None).await.expect("resume");
    let woken = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    woken.expect("it was not rung").expect("joined").expect("wait");
}

/// A removed subscription is gone with all that was its own, and nothing waits for it; its inbox stays.
pub async fn a_removed_subscription_holds_nothing_up(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    store.subscribe(&Subscription::new("old").lanes(2)).await.expect("subscribe");
    subscribe(&*store, "kept").await;
    let event = commit_one(&*log, "a").await;
    let mut writer = log.begin().await;
    assert!(writer.first_time("old", event).await.expect("mark"));
    writer.commit().await.expect("commit");
    let mut lease = claim(&*store, "old").await;
    let mut other = claim(&*store, "old").await;
    let batch = read(&*store, &lease, 10).await;
    let batch = if batch.events.is_empty() {
        std::mem::swap(&mut lease, &mut other);
        read(&*store, &lease, 10).await
    } else {
        batch
    };
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("refused", "no");
    settlement.deliveries.push(DeliveryChange::dead(&batch.events[0].event, 1, failure));
    store.settle(&mut lease, &settlement).await.expect("settle");

    let error = operator.remove("old", false).await.expect_err("it is held");
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("\"relay\""), "{error}");
    assert_eq!(operator.subscriptions().await.expect("subscriptions").len(), 2);
    operator.remove("old", true).await.expect("remove");
    assert_eq!(operator.remove("old", true).await.expect_err("gone").kind(), ErrorKind::NotFound);
    assert_eq!(store.extend(&mut other, LONG, None).await.expect("extend"), LeaseStatus::Lost);
    let settlement = Settlement::at(lease.position.clone());
    assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Lost);
    let told = match store.read(&lease, &lease.position, 1).await {
        Ok(batch) => batch.recalled,
        Err(error) => error.kind() == ErrorKind::LeaseLost,
    };
    assert!(told, "who only looks is told, too");
    assert_eq!(store.claim("old", "relay", LONG).await.expect_err("gone").kind(), ErrorKind::NotFound);
    let shown = operator.subscriptions().await.expect("subscriptions");
    assert_eq!(shown.len(), 1);
    assert_eq!(operator.open_deliveries(&OpenDeliveryQuery::default()).await.expect("open deliveries"), []);

    drain(&*store, "kept").await;
    clock.advance(DAY * 2);
    let prune = Sweep::Prune { older_than: DAY, limit: 10 };
    assert_eq!(store.sweep(&prune).await.expect("prune").taken, 1, "nothing waits for it any more");
    let mut writer = log.begin().await;
    assert!(!writer.first_time("old", event).await.expect("mark"), "its effects stay known");
    writer.rollback().await;
    subscribe(&*store, "old").await;
    let next = commit_one(&*log, "a").await;
    assert_eq!(ids(&drain(&*store, "old").await), [next], "made again, it begins anew");
    operator.remove("old", false).await.expect("nobody holds it");
}

/// What is dead or to be tried again, with its failure, by id; in pages, and by what is known of it.
pub async fn open_deliveries_are_listed_with_their_failures(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    for name in ["one", "two"] {
        subscribe(&*store, name).await;
    }
    for aggregate in ["a", "b", "c", "d", "done"] {
        commit_one(&*log, aggregate).await;
    }
    for name in ["two", "one"] {
        fail_what_is_read(&*store, name).await;
        clock.advance(Duration::from_secs(10));
    }
    let dead = list(&*operator, OpenDeliveryQuery::default()).await;
    assert_eq!(named(&dead), ["a/one", "a/two", "b/one", "b/two"]);
    let first = &dead[0];
    assert_eq!((first.state, first.attempts, first.next_at), (DeliveryState::Dead, 3, None));
    assert_eq!(first.error_code.as_deref(), Some("refused"));
    assert_eq!(first.error_message.as_deref(), Some("one said no"));
    assert_eq!(first.last_attempt_at, Some(clock.now() - Duration::from_secs(10)));
    assert_eq!(first.first_failed_at, first.last_attempt_at);
    assert_eq!(first.event.payload.as_json(), Some("1"));
    let retrying =
        list(&*operator, OpenDeliveryQuery { retrying: true, ..OpenDeliveryQuery::default() }).await;
    assert_eq!(named(&retrying), ["c/one", "c/two", "d/one", "d/two"]);
    assert_eq!((retrying[0].state, retrying[2].state), (DeliveryState::Retrying, DeliveryState::Waiting));
    assert_eq!(retrying[0].next_at, Some(clock.now() - Duration::from_secs(10) + LONG));

    let bare = list(&*operator, OpenDeliveryQuery { bare: true, ..OpenDeliveryQuery::default() }).await;
    assert_eq!(named(&bare), named(&dead));
    assert_eq!((bare[0].event.payload.as_json(), bare[0].event.headers.iter().count()), (Some("null"), 0));
    assert_eq!((bare[0].event.event_id, &bare[0].error_code), (first.event.event_id, &first.error_code));

    let page = list(&*operator, OpenDeliveryQuery { limit: 3, ..OpenDeliveryQuery::default() }).await;
    let last = &page[2];
    let after = Some((last.event.id, last.subscription.clone()));
    let rest = list(&*operator, OpenDeliveryQuery { after, ..OpenDeliveryQuery::default() }).await;
    assert_eq!(named(&rest), ["b/two"]);
    assert_open_deliveries_are_found(&*operator, &clock).await;
}

/// Settles five events: two are dead, one is to be tried again, one waits and one is done.
async fn fail_what_is_read(store: &dyn Store, name: &str) {
    let mut lease = claim(store, name).await;
    let batch = read(store, &lease, 10).await;
    let mut settlement = Settlement::of(&batch);
    let id = |n: usize| &batch.events[n].event;
    settlement.deliveries = vec![
        DeliveryChange::dead(id(0), 3, DeliveryFailure::new("refused", format!("{name} said no"))),
        DeliveryChange::dead(id(1), 5, DeliveryFailure::new("timeout", "too slow")),
        DeliveryChange::retrying(id(2), 1, LONG, DeliveryFailure::new("refused", "not now")),
        DeliveryChange::waiting(id(3)),
    ];
    store.settle(&mut lease, &settlement).await.expect("settle");
}

async fn list(operator: &dyn Store, query: OpenDeliveryQuery) -> Vec<OpenDelivery> {
    operator.open_deliveries(&query).await.expect("open deliveries")
}

/// Their aggregates and subscriptions.
fn named(open: &[OpenDelivery]) -> Vec<String> {
    open.iter().map(|open| format!("{}/{}", open.event.aggregate_id, open.subscription)).collect()
}

/// By their subscription, their failure's code, the event's type and the time.
async fn assert_open_deliveries_are_found(operator: &dyn Store, clock: &ManualClock) {
    let one = OpenDeliveryQuery { subscription: Some("one".into()), ..OpenDeliveryQuery::default() };
    assert_eq!(named(&list(operator, one.clone()).await), ["a/one", "b/one"]);
    let slow = OpenDeliveryQuery { error_code: Some("timeout".into()), ..one.clone() };
    assert_eq!(named(&list(operator, slow).await), ["b/one"]);
    for (pattern, expected) in [("Order*", 2), ("Bill*", 0)] {
        let query = OpenDeliveryQuery { event_type: Some(Pattern::new(pattern)), ..one.clone() };
        assert_eq!(list(operator, query).await.len(), expected, "{pattern}");
    }
    let middle = Some(clock.now() - Duration::from_secs(15));
    let late = list(operator, OpenDeliveryQuery { from: middle, ..OpenDeliveryQuery::default() }).await;
    assert_eq!(named(&late), ["a/one", "b/one"]);
    let early = list(operator, OpenDeliveryQuery { until: middle, ..OpenDeliveryQuery::default() }).await;
    assert_eq!(named(&early), ["a/two", "b/two"]);
    let none = OpenDeliveryQuery { subscription: Some("none".into()), ..OpenDeliveryQuery::default() };
    assert_eq!(list(operator, none).await, []);
}

/// Who did what and why is written down, newest first.
pub async fn what_operators_did_is_written_down(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let operator = log.store();
    assert_eq!(operator.audits(0).await.expect("audits"), []);
    let pause = AuditEntry {
        who: "ada".into(),
        what: "pause".into(),
        why: Some("the endpoint is being moved".into()),
        subscription: Some("s".into()),
        event_id: None,
    };
    let requeue = AuditEntry {
        who: "bob".into(),
        what: "requeue: 1".into(),
        event_id: Some(Uuid::now_v7()),
        ..AuditEntry::default()
    };
    operator.audit(&pause).await.expect("audit");
    clock.advance(DAY);
    operator.audit(&requeue).await.expect("audit");
    let audits = operator.audits(10).await.expect("audits");
    assert_eq!(audits.iter().map(|audit| &audit.entry).collect::<Vec<_>>(), [&requeue, &pause]);
    assert_eq!((audits[0].at, audits[1].at), (clock.now(), clock.now() - DAY));
    assert!(audits[0].id > audits[1].id);
    assert_eq!(operator.audits(1).await.expect("audits"), audits[..1]);
    let error = operator.audit(&AuditEntry::default()).await.expect_err("nobody did nothing");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// A new log, and one in use, have nothing bad; every check has a name of its own and a sentence.
pub async fn checks_find_nothing_bad_in_a_good_log(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    for round in 0..2 {
        let checks = operator.checks(OffsetDateTime::now_utc()).await.expect("checks");
        // All of nothing would be good, too.
        assert!(!checks.is_empty(), "round {round}: nothing was checked");
        assert!(checks.iter().all(|check| check.severity < Severity::Bad), "round {round}: {checks:#?}");
        assert!(checks.iter().all(|check| !check.what.is_empty()), "{checks:#?}");
        assert!(checks.iter().all(|check| check.remedy.is_some() == (check.severity > Severity::Good)));
        let mut names: Vec<_> = checks.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks.len(), "each once: {checks:#?}");
        subscribe(&*store, "s").await;
        commit_one(&*log, "a").await;
        drain(&*store, "s").await;
    }
}
