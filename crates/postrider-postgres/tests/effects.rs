//! The transactions that handlers are given: their marks, their lane, their timeouts; and the outbox as a bus.

mod support;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use postrider_conformance::relay::{
    LONG, claim, commit_one, drain, event, ids, read, settle, subscribe, until,
};
use postrider_core::{
    Clock, Effect, ErrorKind, EventBus, EventLog, Lease, LeaseStatus, ManualClock, OffsetDateTime, Operate,
    OutboxSource, Relane, Subscription, Uuid,
};
use postrider_postgres::Outbox;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgConnection, Row};
use support::{Pg, PgLog};

const LEASE: Duration = Duration::from_secs(30);
/// Longer than anything here takes that does not wait for a lock, and below the patience of a relay's session.
const SOON: Duration = Duration::from_secs(5);

fn effect<'a>(lease: Option<&'a Lease>, events: &'a [Uuid]) -> Effect<'a> {
    Effect { lease, consumer: "licences", events, timeout: Duration::from_secs(30) }
}

/// Begins a handler's transaction, which must work, and says which of its events are handled for the first time.
async fn begin(
    log: &PgLog,
    lease: Option<&Lease>,
    events: &[Uuid],
) -> (<Outbox as OutboxSource>::Transaction, Vec<bool>) {
    log.outbox.begin(effect(lease, events)).await.expect("begin")
}

async fn with_clock() -> (PgLog, ManualClock) {
    let clock =
        ManualClock::at(OffsetDateTime::now_utc().replace_nanosecond(0).expect("a second's beginning"));
    (Pg::default().pg_log(Clock::Manual(clock.clone())).await, clock)
}

#[tokio::test]
async fn marks_stand_if_and_only_if_their_transaction_commits() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let events: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let handled = async || log.outbox.handled("licences", &events).await.expect("handled");
    for end in ["rolled back", "dropped", "committed"] {
        let (mut tx, first) = begin(&log, None, &events[..2]).await;
        assert_eq!(first, [true, true], "before it is {end}");
        log.outbox.record_in(&mut tx, &event(end, 1)).await.expect("record");
        match end {
            "rolled back" => Outbox::rollback(tx).await.expect("rollback"),
            "committed" => {
                assert_eq!(handled().await, [false, false, false], "not yet");
                Outbox::commit(tx).await.expect("commit");
            }
            _ => drop(tx),
        }
    }
    assert_eq!(handled().await, [true, true, false]);
    assert_eq!(log.outbox.handled("another", &events).await.expect("handled"), [false; 3]);
    let (tx, first) = begin(&log, None, &events).await;
    assert_eq!(first, [false, false, true], "each is handled for the first time once");
    Outbox::rollback(tx).await.expect("rollback");
    let alone = log.outbox.record_alone(&event("alone", 1)).await.expect("record");
    let got = drain(&log.store, "s").await;
    assert_eq!((got[0].aggregate_id.as_str(), got.len()), ("committed", 2), "what it recorded goes with it");
    assert_eq!(got[1].event_id, alone);
    for consumer in ["", "a\0b", &"x".repeat(201)] {
        let nameless = Effect { consumer, ..effect(None, &events) };
        let refused = log.outbox.begin(nameless).await.err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::Invalid), "{consumer:?}");
    }
}

#[tokio::test]
async fn a_stale_lease_gets_no_transaction_and_marks_nothing() {
    let (log, clock) = with_clock().await;
    subscribe(&log.store, "s").await;
    let events = [commit_one(&log, "a").await];
    let stale = log.store.claim("s", "relay", LEASE).await.expect("claim").expect("a free lane");
    let (tx, _) = begin(&log, Some(&stale), &[]).await;
    Outbox::rollback(tx).await.expect("rollback");
    clock.advance(LEASE);
    let next_holder = log.store.claim("s", "relay", LEASE).await.expect("claim").expect("it has run out");
    let error = log.outbox.begin(effect(Some(&stale), &events)).await.expect_err("the lease is stale");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::LeaseLost, "begin"), "{error}");
    assert_eq!(log.outbox.handled("licences", &events).await.expect("handled"), [false]);
    let (tx, first) = begin(&log, Some(&next_holder), &events).await;
    assert_eq!(first, [true]);
    Outbox::commit(tx).await.expect("commit");
}

#[tokio::test]
async fn a_lane_is_not_claimed_while_a_handlers_transaction_is_open() {
    let (log, clock) = with_clock().await;
    let other = log.outbox.store().await.expect("store");
    subscribe(&log.store, "s").await;
    let lease = log.store.claim("s", "slow", LEASE).await.expect("claim").expect("a free lane");
    let events = [commit_one(&log, "a").await];
    let (tx, _) = begin(&log, Some(&lease), &events).await;
    clock.advance(LEASE);
    let passed_over =
        tokio::time::timeout(SOON, other.claim("s", "next", LEASE)).await.expect("it waits for nobody");
    assert!(passed_over.expect("claim").is_none(), "the lease has run out, but its transaction is open");
    Outbox::commit(tx).await.expect("commit");
    assert!(other.claim("s", "next", LEASE).await.expect("claim").is_some(), "now it is free");
    assert_eq!(
        log.outbox.handled("licences", &events).await.expect("handled"),
        [true],
        "the next holder finds it handled"
    );
}

/// The holder of a lane goes on while its handlers' transactions are open, and a change of lanes gets its answer.
#[tokio::test]
async fn an_open_transaction_hinders_neither_settle_nor_extend() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let first = commit_one(&log, "a").await;
    let mut lease = claim(&log.store, "s").await;
    let batch = read(&log.store, &lease, 10).await;
    let (one, _) = begin(&log, Some(&lease), &[first]).await;
    let (two, _) = begin(&log, Some(&lease), &[Uuid::now_v7()]).await;
    let work = async {
        assert_eq!(settle(&log.store, &mut lease, &batch).await, LeaseStatus::Held);
        assert_eq!(log.store.extend(&mut lease, LONG, None).await.expect("extend"), LeaseStatus::Held);
        assert_eq!(log.store.relane("s", 2).await.expect("relane"), Relane::Recalling);
        assert!(log.store.claim("s", "other", LONG).await.expect("claim").is_none());
        assert_eq!(log.store.extend(&mut lease, LONG, None).await.expect("extend"), LeaseStatus::Recalled);
        let (three, _) = begin(&log, Some(&lease), &[Uuid::now_v7()]).await;
        Outbox::commit(three).await.expect("commit");
    };
    tokio::time::timeout(SOON, work).await.expect("nothing waits for the open transactions");
    Outbox::commit(one).await.expect("commit");
    Outbox::rollback(two).await.expect("rollback");
}

/// How many sessions wait in the statement that begins a handler's transaction.
async fn waiting(log: &PgLog) -> i64 {
    let query = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%for key share%' \
                 and query like '%' || $1 || '.inbox%'";
    sqlx::query(query).bind(&log.schema).fetch_one(&log.pool).await.expect("look").get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_race_for_an_event_the_second_waits_and_then_knows() {
    let log = Arc::new(Pg::default().pg_log(Clock::Database).await);
    for commits in [true, false] {
        let events = Arc::new([Uuid::now_v7(), Uuid::now_v7()]);
        let (tx, first) = begin(&log, None, &events[..1]).await;
        assert_eq!(first, [true]);
        let second = tokio::spawn({
            let (log, events) = (Arc::clone(&log), Arc::clone(&events));
            async move {
                let (tx, first) = begin(&log, None, &*events).await;
                Outbox::commit(tx).await.expect("commit");
                first
            }
        });
        until("the second waits", || async { waiting(&log).await == 1 }).await;
        if commits {
            Outbox::commit(tx).await.expect("commit");
        } else {
            Outbox::rollback(tx).await.expect("rollback");
        }
        assert_eq!(second.await.expect("the second"), [!commits, true]);
    }
}

/// A claim that is under way is waited for: who then begins under the old lease learns that it is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_is_under_way_is_not_overlooked() {
    let (log, clock) = with_clock().await;
    let log = Arc::new(log);
    subscribe(&log.store, "s").await;
    let stale = log.store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    clock.advance(LEASE);
    let mut claim = log.pool.begin().await.expect("begin");
    let claimed = "update {schema}.lane set lease_epoch = lease_epoch + 1, lease_owner = 'two' \
                   where ctid in (select ctid from {schema}.lane for update)";
    sqlx::raw_sql(log.sql(claimed)).execute(&mut *claim).await.expect("a claim that takes a while");
    let late = tokio::spawn({
        let log = Arc::clone(&log);
        async move {
            log.outbox.begin(effect(Some(&stale), &[Uuid::now_v7()])).await.err().map(|error| error.kind())
        }
    });
    until("the late one waits", || async { waiting(&log).await == 1 }).await;
    claim.commit().await.expect("commit");
    assert_eq!(late.await.expect("the late one"), Some(ErrorKind::LeaseLost));
}

#[tokio::test]
async fn statements_of_a_handler_take_no_longer_than_its_timeout() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let setting = async |connection: &mut PgConnection, name: &str| -> String {
        let query = sqlx::query("select current_setting($1)").bind(name.to_owned());
        query.fetch_one(connection).await.expect("a setting").get(0)
    };
    for (timeout, statement, pause) in [(30, "30s", "35s"), (4, "4s", "9s")] {
        let timed = Effect { timeout: Duration::from_secs(timeout), ..effect(None, &[]) };
        let (mut tx, _) = log.outbox.begin(timed).await.expect("begin");
        assert_eq!(setting(&mut tx, "statement_timeout").await, statement);
        assert_eq!(setting(&mut tx, "idle_in_transaction_session_timeout").await, pause);
    }
    let short = Effect { timeout: Duration::from_millis(200), ..effect(None, &[]) };
    let (mut tx, _) = log.outbox.begin(short).await.expect("begin");
    let cancelled =
        sqlx::raw_sql("select pg_sleep(60)").execute(&mut *tx).await.expect_err("it takes too long");
    assert!(cancelled.to_string().contains("statement timeout"), "{cancelled}");
    Outbox::rollback(tx).await.expect("rollback");
    let mut after = log.pool.acquire().await.expect("a connection");
    assert_eq!(setting(&mut after, "statement_timeout").await, "0", "for that transaction only");
}

#[tokio::test]
async fn a_relay_opens_the_log_of_its_source() {
    let (log, clock) = with_clock().await;
    let store = log.outbox.open().await.expect("open");
    subscribe(&*store, "s").await;
    let recorded = commit_one(&log, "a").await;
    assert_eq!(ids(&drain(&*store, "s").await), [recorded]);
    assert_eq!(OutboxSource::clock(&log.outbox).now(), Some(clock.now()));
}

/// What an application publishes through a bus is published if its transaction commits.
#[tokio::test]
async fn an_outbox_is_a_bus() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let bus: Arc<dyn EventBus<PgConnection>> = Arc::new(log.outbox.clone());
    let mut published = Vec::new();
    for commits in [true, false] {
        let mut tx = log.pool.begin().await.expect("begin");
        let id = bus.publish(&mut tx, &event("a", 1)).await.expect("publish");
        if commits {
            tx.commit().await.expect("commit");
            published.push(id);
        } else {
            tx.rollback().await.expect("rollback");
        }
    }
    assert_eq!(ids(&drain(&log.store, "s").await), published);
}

/// Whoever waits for a begin may be called away in the middle of it; the next one must not be in its transaction. A handler's is on a
/// connection of the application.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_begin_that_is_dropped_half_way_leaves_no_transaction_behind() {
    let log = Pg::default().pg_log(Clock::Database).await;
    log.run("create table {schema}.kept (n integer)").await;
    subscribe(&log.store, "s").await;
    let options = log.pool.connect_options().as_ref().clone();
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let outbox = Outbox::builder().schema(&log.schema).connect(&pool).await.expect("an outbox");
    let (mut handlers, mut changes) = (0, 0);
    for round in 0..300 {
        handlers += u32::from(left_after(round % 10, outbox.begin(effect(None, &[]))).await);
        sqlx::raw_sql(log.sql("insert into {schema}.kept values (1)")).execute(&pool).await.expect("insert");
        let kept = sqlx::query(log.sql("select count(*) from {schema}.kept")).fetch_one(&log.pool).await;
        assert_eq!(kept.expect("a count").get::<i64, _>(0), round + 1, "the application's own is committed");

        changes += u32::from(left_after(round % 10, log.store.subscribe(&Subscription::new("s"))).await);
        for paused in [true, false] {
            log.store
                .pause("s", paused.then(|| postrider_core::Pause::by("ada")).as_ref())
                .await
                .expect("pause");
            let look = sqlx::query(log.sql("select paused from {schema}.subscription")).fetch_one(&log.pool);
            assert_eq!(
                look.await.expect("a row").get::<bool, _>(0),
                paused,
                "round {round}: it is committed"
            );
        }
    }
    assert!(handlers > 50 && changes > 50, "{handlers} and {changes} were dropped");
}

/// Leaves a call after so many steps, unless it has ended by then; whether it was left.
async fn left_after<T>(mut steps: i64, call: impl Future<Output = T>) -> bool {
    let mut call = Box::pin(call);
    std::future::poll_fn(|context| {
        steps -= 1;
        if steps < 0 { Poll::Ready(true) } else { call.as_mut().poll(context).map(|_| false) }
    })
    .await
}
