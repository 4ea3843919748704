//! What is promised of leader leases: one process at a time does what is done for all.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::{ErrorKind, LeaderLease};

use crate::harness::Harness;
use crate::relay::{log, log_with_clock};

const MINUTE: Duration = Duration::from_secs(60);

/// Who holds a leader lease keeps it as long as it extends it; another gets it when it has run out or was given back.
pub async fn a_task_is_done_by_one_at_a_time(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (first, second) = (log.store(), log.second_store().await);
    let held =
        first.acquire_leader_lease("retention", "a", MINUTE).await.expect("taken").expect("it was free");
    assert_eq!((held.at, held.until, held.note), (clock.now(), clock.now() + MINUTE, None));
    assert_eq!(second.acquire_leader_lease("retention", "b", MINUTE).await.expect("asked"), None);
    second
        .acquire_leader_lease("alerts", "b", MINUTE)
        .await
        .expect("asked")
        .expect("another task has another lease");
    clock.advance(MINUTE / 2);
    let held = first
        .acquire_leader_lease("retention", "a", MINUTE)
        .await
        .expect("extended")
        .expect("it is still held");
    assert_eq!(held.until, clock.now() + MINUTE);
    clock.advance(MINUTE / 2);
    assert_eq!(
        second.acquire_leader_lease("retention", "b", MINUTE).await.expect("asked"),
        None,
        "it was extended"
    );
    clock.advance(MINUTE / 2);
    second.acquire_leader_lease("retention", "b", MINUTE).await.expect("asked").expect("it has run out");
    assert_eq!(first.acquire_leader_lease("retention", "a", MINUTE).await.expect("asked"), None);
    first.release_leader_lease("retention", "a").await.expect("another's stays");
    assert_eq!(first.acquire_leader_lease("retention", "a", MINUTE).await.expect("asked"), None);
    second.release_leader_lease("retention", "b").await.expect("given back");
    first.acquire_leader_lease("retention", "a", MINUTE).await.expect("asked").expect("it was given back");
}

/// What a holder noted is read by the next one, and one that holds it no longer changes nothing.
pub async fn the_next_leader_reads_what_was_noted(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (first, second) = (log.store(), log.second_store().await);
    assert!(!first.save_leader_note("alerts", "a", "{}").await.expect("asked"), "nobody holds it");
    first.acquire_leader_lease("alerts", "a", MINUTE).await.expect("asked").expect("taken");
    assert!(first.save_leader_note("alerts", "a", "one").await.expect("noted"));
    assert!(!second.save_leader_note("alerts", "b", "two").await.expect("asked"), "another holds it");
    let extended = first.acquire_leader_lease("alerts", "a", MINUTE).await.expect("asked").expect("extended");
    assert_eq!(extended.note.as_deref(), Some("one"));
    clock.advance(MINUTE);
    assert!(!first.save_leader_note("alerts", "a", "late").await.expect("asked"), "it has run out");
    let taken = second.acquire_leader_lease("alerts", "b", MINUTE).await.expect("asked").expect("taken over");
    assert_eq!(taken.note.as_deref(), Some("one"));
    assert!(!first.save_leader_note("alerts", "a", "later").await.expect("asked"), "it is another's");
    assert!(second.save_leader_note("alerts", "b", "three").await.expect("noted"));
    second.release_leader_lease("alerts", "b").await.expect("given back");
    let taken = first.acquire_leader_lease("alerts", "a", MINUTE).await.expect("asked").expect("taken");
    assert_eq!(taken.note.as_deref(), Some("three"));
    for (task, owner, note) in [("", "a", ""), ("alerts", "", ""), ("alerts", "a", "a\0b")] {
        let error = first.save_leader_note(task, owner, note).await.expect_err("must be refused");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

/// However many ask at once, and whatever the clock says, one gets it.
pub async fn of_sixteen_who_want_a_duty_one_gets_it(harness: &dyn Harness) {
    let log = log(harness).await;
    let operator = log.store();
    for round in 0..5 {
        let name = Arc::new(format!("task {round}"));
        let asking = (0..16).map(|number| {
            let (operator, name) = (Arc::clone(&operator), Arc::clone(&name));
            tokio::spawn(async move {
                operator.acquire_leader_lease(&name, &format!("owner {number}"), MINUTE).await
            })
        });
        let mut taken: Vec<LeaderLease> = Vec::new();
        for answer in asking.collect::<Vec<_>>() {
            taken.extend(answer.await.expect("a task").expect("asked"));
        }
        assert_eq!(taken.len(), 1, "{taken:?}");
    }
}
