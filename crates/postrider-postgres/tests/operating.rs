//! What operators promises on PostgreSQL beyond the suite: running relays, roles, checks that find something, planted bugs.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use postrider_conformance::TestLog;
use postrider_conformance::engine::clock;
use postrider_conformance::engine::operating::{
    a_destination_that_is_away_shows, a_pause_waits_for_what_runs,
    a_relay_is_known_and_says_when_its_subscription_is_removed, a_relay_that_still_counts_is_known,
    a_sleeping_relay_notices_its_operator, a_try_under_suspicion_is_on_record, idle, the_last_tries_show,
};
use postrider_conformance::promises::{relays, replay_among_writers};
use postrider_conformance::relay::{
    LONG, claim, commit_one, drain, event, ids, log_with_clock, read, settle, subscribe,
};
use postrider_core::{
    AuditEntry, Check, Clock, Effect, ErrorKind, EventLog, EventQuery, Inspect, OffsetDateTime,
    OpenDeliveryQuery, Operate, OutboxSource, Replay, ReplayFrom, Severity, Sweep, Uuid,
};
use postrider_postgres::{Outbox, StoreOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use support::{Pg, PgLog, server};
use xtask::postgres::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeping_relay_notices_a_replay_a_pause_and_a_resume() {
    let log = Pg::default().pg_log(Clock::Database).await;
    a_sleeping_relay_notices_its_operator(&log.outbox, Arc::new(log.store.clone())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_is_known_and_says_when_its_subscription_is_removed_by_force() {
    let log = Pg::default().pg_log(Clock::Database).await;
    a_relay_is_known_and_says_when_its_subscription_is_removed(&log.outbox, Arc::new(log.store.clone()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_still_counts_a_long_log_is_known_and_keeps_its_subscription() {
    let log = Pg::default().pg_log(Clock::Database).await;
    // It writes down what it counted.
    let mut hand = log.pool.begin().await.expect("begin");
    sqlx::query(log.sql("lock table {schema}.audit")).execute(&mut *hand).await.expect("a lock");
    let counts = async || -> bool {
        let waits = "select exists (select from pg_locks where not granted and relation = '{schema}.audit'::regclass)";
        sqlx::query_scalar(log.sql(waits)).fetch_one(&log.pool).await.expect("locks")
    };
    let end = async { hand.rollback().await.expect("rollback") };
    a_relay_that_still_counts_is_known(&log.outbox, Arc::new(log.store.clone()), counts, end).await;
}

/// Everything that its sessions send counts, on a server of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_relay_sends_at_most_one_statement_a_second() {
    // A few naps and reports long: a shorter one may begin and end with both.
    const WINDOW: Duration = Duration::from_secs(40);
    let cluster =
        Cluster::create(&[("log_statement", "all")]).expect("this test has a PostgreSQL of its own");
    let address: PgConnectOptions = cluster.url("postgres").parse().expect("an address");
    let log = Pg::default().log_on(address, Clock::Database).await;
    let running = idle(&log.outbox, Arc::new(log.store.clone())).await;
    let sent = || {
        let lines = std::fs::read_to_string(cluster.log()).expect("the server's log");
        let is_statement =
            |line: &&str| line.contains("LOG:  statement: ") || line.contains("LOG:  execute ");
        lines.lines().filter(is_statement).map(ToOwned::to_owned).collect::<Vec<String>>()
    };
    let before = sent().len();
    assert!(before > 10, "{before}: what a relay does when it starts is logged");
    tokio::time::sleep(WINDOW).await;
    let sent = sent().split_off(before);
    assert!((2..=WINDOW.as_secs() as usize).contains(&sent.len()), "{}: {sent:#?}", sent.len());
    running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_waits_for_what_is_running() {
    let log = Pg::default().pg_log(Clock::Database).await;
    a_pause_waits_for_what_runs(&log.outbox, Arc::new(log.store.clone())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_is_away_shows_until_it_is_back() {
    let log = Pg::default().pg_log(Clock::Database).await;
    a_destination_that_is_away_shows(&log.outbox, Arc::new(log.store.clone())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_tries_of_a_delivery_that_failed_show() {
    let clock = clock();
    let log = Pg::default().pg_log(Clock::Manual(clock.clone())).await;
    the_last_tries_show(&log.outbox, Arc::new(log.store.clone()), clock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_under_suspicion_is_on_record_before_it_begins() {
    let log = Pg::default().pg_log(Clock::Database).await;
    a_try_under_suspicion_is_on_record(&log.outbox, Arc::new(log.store.clone())).await;
}

fn from(event: Uuid) -> Replay {
    Replay {
        subscription: "s".into(),
        from: ReplayFrom::Event(event),
        effects_may_repeat: false,
        dry_run: false,
    }
}

/// The obvious replay takes the snapshot of now: what committed late and was not read yet would count as read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_to_the_snapshot_of_now_is_found() {
    let obvious: postrider_postgres::Patch = |name, text| {
        let kept = r"regexp_replace(position, '^(-?[0-9]+)/[0-9]+/', '\1/' || $2::bigint::text || '/') else position end";
        let taken = r"regexp_replace(position, '^(-?[0-9]+)/[0-9]+/[^/]*/[0-9]+', '\1/' || $2::bigint::text || '/' || pg_current_snapshot()::text || '/' || pg_current_xact_id()::text) else position end, snapshot = pg_current_snapshot()";
        (name == "replay" && text.contains("lease_epoch")).then(|| {
            assert!(text.contains(kept), "plant the bug anew");
            text.replace(kept, taken)
        })
    };
    let harness = Pg { patch: Some(obvious), ..Pg::default() };
    let outcome =
        tokio::spawn(async move { replay_among_writers::a_replay_forgets_no_late_event(&harness).await })
            .await;
    let panic = outcome.expect_err("the bug was not found").into_panic();
    let said = panic.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
    assert!(said.starts_with("1 lanes: "), "it failed because: {said}");
}

/// A lane that is in the middle of many late rows: those that it has not read come, on both sides of the point.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_in_the_middle_of_many_late_events_loses_none() {
    for point in [10, 25, 59] {
        let log = Pg::default().pg_log(Clock::Database).await;
        subscribe(&log.store, "s").await;
        let mut late = log.begin().await;
        let mut all = Vec::new();
        for n in 0..50 {
            all.push(late.record(&event(&format!("late{n}"), 1)).await.expect("record"));
        }
        for _ in 0..10 {
            all.push(commit_one(&log, "prompt").await);
        }
        let mut lease = claim(&log.store, "s").await;
        let batch = read(&log.store, &lease, 100).await;
        settle(&log.store, &mut lease, &batch).await;
        late.commit().await.expect("commit");
        let mut came: HashSet<Uuid> = batch.events.iter().map(|read| read.event.event_id).collect();
        for _ in 0..2 {
            let batch = read(&log.store, &lease, 10).await;
            settle(&log.store, &mut lease, &batch).await;
            came.extend(batch.events.iter().map(|read| read.event.event_id));
        }
        assert_eq!(came.len(), 30, "in the middle of them");
        log.store.replay(&from(all[point])).await.expect("replay");
        let again = ids(&drain(&log.store, "s").await);
        let after: HashSet<Uuid> = again.iter().copied().collect();
        assert_eq!(again.len(), after.len(), "none twice from {point}");
        assert!(all[point..].iter().all(|id| after.contains(id)), "all from {point} on");
        assert!(all.iter().all(|id| came.contains(id) || after.contains(id)), "none is lost from {point}");
        let not_wanted = all[..point].iter().filter(|id| came.contains(id) && after.contains(id)).count();
        assert_eq!(not_wanted, 0, "and nothing before {point} comes twice");
    }
}

fn verdict<'c>(checks: &'c [Check], name: &str) -> (Severity, &'c str) {
    let check = checks.iter().find(|check| check.name == name).expect(name);
    (check.severity, &check.what)
}

async fn checks(log: &PgLog) -> Vec<Check> {
    log.store.checks(OffsetDateTime::now_utc()).await.expect("checks")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_find_what_is_wrong() {
    let (clock_log, clock) = log_with_clock(&Pg::default()).await;
    drop(clock_log);
    let log = Pg { silent: true, ..Pg::default() }.pg_log(Clock::Manual(clock.clone())).await;
    subscribe(&log.store, "s").await;
    let event = commit_one(&log, "a").await;
    clock.advance(LONG);
    let found = checks(&log).await;
    assert_eq!(verdict(&found, "lanes"), (Severity::Warn, "no relay reads the waiting events of: s"));
    assert_eq!(verdict(&found, "bell").0, Severity::Warn);
    assert_eq!(verdict(&found, "clock").0, Severity::Good);
    let skewed = log.store.checks(OffsetDateTime::now_utc() - Duration::from_secs(60)).await.expect("checks");
    assert_eq!(verdict(&skewed, "clock").0, Severity::Warn);

    drain(&log.store, "s").await;
    let mut writer = log.begin().await;
    assert!(writer.first_time("s", event).await.expect("mark"));
    writer.commit().await.expect("commit");
    assert_eq!(verdict(&checks(&log).await, "inbox").0, Severity::Good);
    clock.advance(LONG);
    let taken = log.store.sweep(&Sweep::Inbox { older_than: LONG, limit: 10 }).await.expect("sweep").taken;
    assert_eq!(taken, 1);
    let found = checks(&log).await;
    assert_eq!((verdict(&found, "inbox").0, verdict(&found, "lanes").0), (Severity::Warn, Severity::Good));

    log.run("alter sequence {schema}.event_id cache 10").await;
    assert_eq!(verdict(&checks(&log).await, "sequence").0, Severity::Bad);
    log.run("alter sequence {schema}.event_id cache 1; update {schema}.lane set frontier = 1000").await;
    assert!(verdict(&checks(&log).await, "sequence").1.contains("behind the log at 1000"));
    log.run("delete from {schema}.migration where version > 1").await;
    assert_eq!(verdict(&checks(&log).await, "schema").0, Severity::Bad);
}

/// Nobody waits for five minutes here: the clock that the check reads is an hour ahead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_open_for_long_is_noticed_and_its_end() {
    let ahead: postrider_postgres::Patch = |name, text| {
        let now = "clock_timestamp() - min(a.xact_start)";
        (name == "checks").then(|| {
            assert!(text.contains(now), "turn the clock anew");
            text.replace(now, "clock_timestamp() + interval '1 hour' - min(a.xact_start)")
                .replace("a.datname = current_database()", "a.application_name = 'long'")
        })
    };
    let log = Pg { patch: Some(ahead), ..Pg::default() }.pg_log(Clock::Database).await;
    assert_eq!(verdict(&checks(&log).await, "long transactions").0, Severity::Good);
    let mut open = log.pool.begin().await.expect("a transaction");
    for sql in ["set local application_name = 'long'", "select 1"] {
        sqlx::query(sql).execute(&mut *open).await.expect(sql);
    }
    let found = checks(&log).await;
    let (found, what) = verdict(&found, "long transactions");
    assert_eq!(found, Severity::Warn);
    assert!(what.contains("a transaction has been open for 36") && what.contains("dead rows"), "{what}");
    open.rollback().await.expect("rolled back");
    assert_eq!(verdict(&checks(&log).await, "long transactions").0, Severity::Good);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_relays_may_operate_and_change_no_audit() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let role = format!("r{}", Uuid::new_v4().simple());
    log.run(&format!("create role {role} login")).await;
    log.outbox.grant_relay(&role).await.expect("grant");
    let pool = PgPoolOptions::new().max_connections(4).connect_with(server().username(&role)).await;
    let pool = pool.expect("a login");
    let outbox = Outbox::builder().schema(&log.schema).connect(&pool).await.expect("connect");
    let store = outbox.store_with(&StoreOptions::default()).await.expect("store");
    subscribe(&store, "s").await;
    let event = commit_one(&log, "a").await;
    drain(&store, "s").await;
    store.pause("s", Some(&postrider_core::Pause::by("ada"))).await.expect("pause");
    store.pause("s", None).await.expect("resume");
    assert_eq!(store.events(&EventQuery::default()).await.expect("events").events.len(), 1);
    assert_eq!(store.open_deliveries(&OpenDeliveryQuery::default()).await.expect("open deliveries"), []);
    assert_eq!(store.replay(&from(event)).await.expect("replay").events, 1);
    let entry = AuditEntry { who: "ada".into(), what: "replay".into(), ..AuditEntry::default() };
    store.audit(&entry).await.expect("audit");
    let found = store.checks(OffsetDateTime::now_utc()).await.expect("checks");
    assert!(found.iter().all(|check| check.severity < Severity::Bad), "{found:#?}");
    assert_eq!(verdict(&found, "bell"), (Severity::Good, "notifications arrive"));
    store.remove("s", false).await.expect("remove");
    for change in ["update {schema}.audit set who = 'bob'", "delete from {schema}.audit"] {
        sqlx::query(log.sql(change)).execute(&pool).await.expect_err("not for this role");
        let error = sqlx::query(log.sql(change)).execute(&log.pool).await.expect_err("nor for any other");
        assert!(error.to_string().contains("stays written"), "{error}");
    }
    assert_eq!(store.audits(10).await.expect("audits")[0].entry, entry);
    pool.close().await;
    store.pool().close().await;
    log.run(&format!("drop owned by {role}; drop role {role}")).await;
}

/// A handler's transaction that is open when the replay comes keeps the next holder out, and its effect happens once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_is_at_work_during_a_replay_is_waited_for() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let event = commit_one(&log, "a").await;
    let mut lease = claim(&log.store, "s").await;
    let batch = read(&log.store, &lease, 10).await;
    settle(&log.store, &mut lease, &batch).await;
    let events = [event];
    let effect = |lease| Effect { lease: Some(lease), consumer: "s", events: &events, timeout: LONG };
    let (open, first) = log.outbox.begin(effect(&lease)).await.expect("begin");
    assert_eq!(first, [true]);
    assert_eq!(log.store.replay(&from(event)).await.expect("replay").events, 1);
    assert!(log.store.claim("s", "next", LONG).await.expect("claim").is_none(), "it is still at work");
    Outbox::commit(open).await.expect("commit");
    let error = log.outbox.begin(effect(&lease)).await.expect_err("the lane was taken away");
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    let next_holder = claim(&log.store, "s").await;
    assert_eq!(read(&log.store, &next_holder, 10).await.events[0].event.event_id, event, "it comes again");
    let (again, first) = log.outbox.begin(effect(&next_holder)).await.expect("begin");
    assert_eq!(first, [false], "and its effect does not");
    Outbox::rollback(again).await.expect("rollback");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_no_relay_has_is_said_to_be_unread() {
    relays::only_what_no_relay_has_is_said_to_be_unread(&Pg::default()).await;
}
