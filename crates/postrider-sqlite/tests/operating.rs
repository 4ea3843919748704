//! What operators promises on SQLite beyond the suite: running relays, checks that find something, audits that stay.

mod support;

use std::sync::Arc;

use postrider_conformance::TestLog;
use postrider_conformance::engine::clock;
use postrider_conformance::engine::operating::{
    a_destination_that_is_away_shows, a_pause_waits_for_what_runs,
    a_relay_is_known_and_says_when_its_subscription_is_removed, a_sleeping_relay_notices_its_operator,
    a_try_under_suspicion_is_on_record, the_last_tries_show,
};
use postrider_conformance::promises::relays;
use postrider_conformance::relay::{LONG, commit_one, drain, log_with_clock, subscribe};
use postrider_core::{AuditEntry, Check, Clock, OffsetDateTime, Severity, Sweep};
use support::Lite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeping_relay_notices_a_replay_a_pause_and_a_resume() {
    let log = Lite::default().lite_log(Clock::Database).await;
    a_sleeping_relay_notices_its_operator(&log.outbox, Arc::new(log.outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_is_known_and_says_when_its_subscription_is_removed_by_force() {
    let log = Lite::default().lite_log(Clock::Database).await;
    a_relay_is_known_and_says_when_its_subscription_is_removed(&log.outbox, Arc::new(log.outbox.store()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_waits_for_what_is_running() {
    let log = Lite::default().lite_log(Clock::Database).await;
    a_pause_waits_for_what_runs(&log.outbox, Arc::new(log.outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_is_away_shows_until_it_is_back() {
    let log = Lite::default().lite_log(Clock::Database).await;
    a_destination_that_is_away_shows(&log.outbox, Arc::new(log.outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_tries_of_a_delivery_that_failed_show() {
    let clock = clock();
    let log = Lite::default().lite_log(Clock::Manual(clock.clone())).await;
    the_last_tries_show(&log.outbox, Arc::new(log.outbox.store()), clock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_under_suspicion_is_on_record_before_it_begins() {
    let log = Lite::default().lite_log(Clock::Database).await;
    a_try_under_suspicion_is_on_record(&log.outbox, Arc::new(log.outbox.store())).await;
}

#[tokio::test]
async fn what_operators_did_can_be_neither_changed_nor_deleted() {
    let log = Lite::default().lite_log(Clock::Database).await;
    let entry = AuditEntry { who: "ada".into(), what: "pause".into(), ..AuditEntry::default() };
    log.store().audit(&entry).await.expect("audit");
    for change in ["update postrider_audit set who = 'bob'", "delete from postrider_audit"] {
        let error = sqlx::query(change).execute(log.outbox.pool()).await.expect_err("refused");
        assert!(error.to_string().contains("stays written"), "{error}");
    }
    assert_eq!(log.store().audits(1).await.expect("audits")[0].entry, entry);
}

fn verdict<'c>(checks: &'c [Check], name: &str) -> (Severity, &'c str) {
    let check = checks.iter().find(|check| check.name == name).expect(name);
    (check.severity, &check.what)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_find_what_is_wrong() {
    let (log, clock) = log_with_clock(&Lite::default()).await;
    let (store, operator) = (log.store(), log.store());
    let checks = async || operator.checks(OffsetDateTime::now_utc()).await.expect("checks");
    subscribe(&*store, "s").await;
    let event = commit_one(&*log, "a").await;
    clock.advance(LONG);
    let found = checks().await;
    assert_eq!(verdict(&found, "lanes"), (Severity::Warn, "no relay reads the waiting events of: s"));
    assert_eq!(verdict(&found, "journal"), (Severity::Good, "write-ahead log (WAL)"));
    assert_eq!(verdict(&found, "file"), (Severity::Good, "it is intact"));
    assert_eq!(verdict(&found, "writing").0, Severity::Good);
    drain(&*store, "s").await;
    let mut writer = log.begin().await;
    assert!(writer.first_time("s", event).await.expect("mark"));
    writer.commit().await.expect("commit");
    assert_eq!(verdict(&checks().await, "inbox").0, Severity::Good);
    clock.advance(LONG);
    assert_eq!(store.sweep(&Sweep::Inbox { older_than: LONG, limit: 10 }).await.expect("sweep").taken, 1);
    let found = checks().await;
    assert_eq!((verdict(&found, "inbox").0, verdict(&found, "lanes").0), (Severity::Warn, Severity::Good));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_no_relay_has_is_said_to_be_unread() {
    relays::only_what_no_relay_has_is_said_to_be_unread(&Lite::default()).await;
}
