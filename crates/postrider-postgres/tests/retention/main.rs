//! Retention on PostgreSQL: months of the archive, tables of the application, and who waits for what.

#[path = "../support/mod.rs"]
mod support;
mod targets;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_conformance::relay::{commit_one, drain, event, subscribe, until};
use postrider_core::{
    ArchiveOptions, Clock, DeliveryChange, DeliveryFailure, ErrorKind, EventLog, EventQuery, Inspect,
    ManualClock, OffsetDateTime, Operate, ResolveDead, Settlement, Sweep,
};
use sqlx::Row;
use support::{Pg, PgLog};

const DAY: Duration = Duration::from_secs(86_400);

fn archive(archiving: ArchiveOptions) -> Sweep {
    Sweep::Archive { older_than: DAY, limit: 100, archiving }
}

/// A log with a clock, and some events that were settled a day ago.
async fn settled(events: usize) -> (PgLog, ManualClock) {
    let clock = ManualClock::at(OffsetDateTime::now_utc());
    let log = Pg::default().pg_log(Clock::Manual(clock.clone())).await;
    subscribe(&log.store, "s").await;
    for _ in 0..events {
        commit_one(&log, "a").await;
    }
    drain(&log.store, "s").await;
    clock.advance(DAY);
    (log, clock)
}

/// Months of the archive, each with some events, made as a sweep makes them.
async fn months(log: &PgLog, months: u32, events: u32) {
    log.run(&format!(
        "do $$ declare ids bigint[]; begin
             alter table {{schema}}.event disable trigger before_record;
             for n in 1 .. {months} loop
                 with new as (
                     insert into {{schema}}.event (id, tx_id, event_type, aggregate_type, aggregate_id, recorded_at)
                     select nextval('{{schema}}.event_id'), '3', 'OrderPaid', 'Order', i::text,
                            date_trunc('month', now(), 'UTC') - n * interval '1 month' + interval '12 days'
                     from generate_series(1, {events}) i returning id
                 )
                 select array_agg(id) into ids from new;
                 perform {{schema}}.archive_months(ids);
                 insert into {{schema}}.archive
                     select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, max_attempts,
                            occurred_at, recorded_at, headers, payload, content_type, content, now()
                     from {{schema}}.event where id = any (ids);
                 perform {{schema}}.delete_events(ids);
             end loop;
             alter table {{schema}}.event enable trigger before_record;
         end $$"
    ))
    .await;
}

async fn count(log: &PgLog, text: &str) -> i64 {
    sqlx::query_scalar(log.sql(text)).fetch_one(&log.pool).await.expect(text)
}

const PARTS: &str = "select count(*) from pg_inherits where inhparent = '{schema}.archive'::regclass";

/// L13, L14: of six years, one goes: quickly, while publishers and readers of the archive go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_months_are_dropped_while_publishers_and_readers_go_on() {
    let log = Arc::new(Pg::default().pg_log(Clock::Database).await);
    subscribe(&log.store, "s").await;
    months(&log, 72, 20).await;
    assert_eq!(count(&log, PARTS).await, 72);
    let ended = Arc::new(AtomicBool::new(false));
    let worked: [Arc<(AtomicU64, AtomicU64)>; 2] = Default::default();
    let mut tasks = Vec::new();
    for (reads, worked) in worked.iter().enumerate() {
        let (log, ended, worked) = (Arc::clone(&log), Arc::clone(&ended), Arc::clone(worked));
        tasks.push(tokio::spawn(async move {
            while !ended.load(Ordering::Acquire) {
                let began = Instant::now();
                if reads == 1 {
                    let query = EventQuery { oldest_first: true, limit: 5, ..EventQuery::default() };
                    assert!(!log.store.events(&query).await.expect("events").events.is_empty());
                } else {
                    log.outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
                }
                let took = u64::try_from(began.elapsed().as_millis()).expect("a time");
                worked.0.fetch_add(1, Ordering::AcqRel);
                worked.1.fetch_max(took, Ordering::AcqRel);
            }
        }));
    }
    until("both work", || async { worked.iter().all(|worked| worked.0.load(Ordering::Acquire) > 5) }).await;
    let before: Vec<u64> = worked.iter().map(|worked| worked.0.load(Ordering::Acquire)).collect();
    let old = Sweep::Archived { older_than: DAY * 365 * 5, limit: 10 };
    let (mut taken, began) = (0, Instant::now());
    loop {
        match log.store.sweep(&old).await {
            Ok(swept) => {
                taken += swept.taken;
                if !swept.more {
                    break;
                }
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
    let took = began.elapsed();
    until("both still work", || async {
        worked.iter().zip(&before).all(|(worked, before)| worked.0.load(Ordering::Acquire) > before + 5)
    })
    .await;
    ended.store(true, Ordering::Release);
    for task in tasks {
        task.await.expect("it works");
    }
    let left = count(&log, PARTS).await;
    assert!((60..=61).contains(&left), "{left} months are left of six years");
    assert_eq!(i64::try_from(taken).expect("a number"), (72 - left) * 20);
    assert_eq!(count(&log, "select sum(events)::bigint from {schema}.archive_month").await, left * 20);
    assert_eq!(count(&log, "select count(*) from {schema}.archive").await, left * 20);
    let slowest: Vec<u64> = worked.iter().map(|worked| worked.1.load(Ordering::Acquire)).collect();
    assert!(took < Duration::from_secs(20), "dropping took {took:?}");
    assert!(slowest.iter().all(|slowest| *slowest < 5000), "somebody waited: {slowest:?} ms");
}

/// A reader that takes its time holds up the drop of a month, and nobody behind it; a new month does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_reader_of_the_archive_stops_nobody() {
    let (log, _clock) = settled(1).await;
    months(&log, 3, 1).await;
    let mut reader = log.pool.begin().await.expect("begin");
    sqlx::query(log.sql("select * from {schema}.archive")).fetch_all(&mut *reader).await.expect("read");
    assert_eq!(
        log.store.sweep(&archive(ArchiveOptions::default())).await.expect("archive").taken,
        1,
        "a new month"
    );
    // The clock is a day ahead, which on a month's last day is in the next one: the event's own month is not over a day before.
    let old = Sweep::Archived { older_than: DAY, limit: 10 };
    let began = Instant::now();
    let error = log.store.sweep(&old).await.expect_err("somebody reads it");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "it gives up soon: {:?}", began.elapsed());
    let found = log.store.events(&EventQuery::default()).await.expect("others read");
    assert_eq!(found.events.len(), 4);
    log.outbox.record_outside_transaction(&event("a", 1)).await.expect("others publish");
    reader.rollback().await.expect("rollback");
    let taken = AtomicU64::new(0);
    until("the months are dropped", || async {
        match log.store.sweep(&old).await {
            Ok(swept) => {
                taken.fetch_add(swept.taken, Ordering::AcqRel);
                !swept.more
            }
            // The one that failed may still be letting go of its lock.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                false
            }
        }
    })
    .await;
    assert_eq!(taken.load(Ordering::Acquire), 3);
}

/// A month that somebody has detached, to keep it elsewhere, is theirs: it is not dropped.
#[tokio::test]
async fn a_detached_month_is_left_alone() {
    let log = Pg::default().pg_log(Clock::Database).await;
    months(&log, 3, 5).await;
    log.run(
        "do $$ begin
             execute format('alter table {schema}.archive detach partition {schema}.archive_%s',
                            to_char(date_trunc('month', now() at time zone 'UTC') - interval '2 months', 'YYYY_MM'));
         end $$",
    )
    .await;
    let old = Sweep::Archived { older_than: Duration::ZERO, limit: 10 };
    while log.store.sweep(&old).await.expect("sweep").more {}
    assert_eq!(count(&log, "select count(*) from {schema}.archive").await, 0);
    let tables = "select count(*) from pg_class where relnamespace = '{schema}'::regnamespace and relkind = 'r' and relname like 'archive_2%'";
    assert_eq!(count(&log, tables).await, 1, "the detached month");
}

/// An event is found in the archive by an index, in every month.
#[tokio::test]
async fn an_archived_event_is_found_by_an_index() {
    let log = Pg::default().pg_log(Clock::Database).await;
    months(&log, 6, 1000).await;
    for text in [
        "select id from {schema}.archive where event_id = '00000000-0000-0000-0000-000000000000'",
        "select id from {schema}.archive where id > 100 order by id limit 10",
    ] {
        let plan = sqlx::query(log.sql(&format!("explain {text}")))
            .fetch_all(log.store.pool())
            .await
            .expect("a plan");
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        assert!(plan.iter().any(|line| line.contains("Index")), "{plan:#?}");
        assert!(!plan.iter().any(|line| line.contains("Seq Scan") || line.contains("->  Sort")), "{plan:#?}");
    }
}

/// A round begins where the one before it ended, also while a snapshot keeps what was deleted in the index.
#[tokio::test]
async fn a_sweep_does_not_look_again_at_what_it_has_taken() {
    let (log, clock) = settled(0).await;
    log.run("insert into {schema}.event (event_type, aggregate_type, aggregate_id) select 'T', 'A', n::text from generate_series(1, 20000) n")
        .await;
    drain(&log.store, "s").await;
    clock.advance(DAY);
    let mut snapshot = log.pool.begin().await.expect("begin");
    sqlx::query("set transaction isolation level repeatable read")
        .execute(&mut *snapshot)
        .await
        .expect("set");
    sqlx::query("select 1").execute(&mut *snapshot).await.expect("a snapshot");
    let prune = Sweep::Prune { older_than: DAY, limit: 1000 };
    let mut rounds = 0;
    while log.store.sweep(&prune).await.expect("prune").more {
        rounds += 1;
        if rounds == 15 {
            break;
        }
    }
    // How many pages a round looks at from where it is, and from the start of the log: once a session knows the function, and the
    // catalogs have been read.
    let mut session = log.store.pool().acquire().await.expect("a session");
    let mut pages = async |after: i64| {
        let text = format!(
            "explain (analyze, buffers) select count(*) from {{schema}}.sweepable(now() + interval '1 day', {after}, 1)"
        );
        let plan = sqlx::query(log.sql(&text)).fetch_all(&mut *session).await.expect("a plan");
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let buffers =
            plan.iter().find_map(|line| line.trim().strip_prefix("Buffers: shared ")).expect("buffers");
        let pages = buffers.split(' ').filter_map(|part| part.split_once('='));
        pages
            .filter(|(kind, _)| ["hit", "read"].contains(kind))
            .map(|(_, pages)| pages.parse::<u64>().expect("pages"))
            .sum::<u64>()
    };
    pages(0).await;
    let (from_the_start, from_here) = (pages(0).await, pages(15_000).await);
    assert!(from_here * 5 < from_the_start, "{from_here} pages from here, {from_the_start} from the start");
    snapshot.rollback().await.expect("rollback");
    while log.store.sweep(&prune).await.expect("prune").more {}
    assert_eq!(count(&log, "select count(*) from {schema}.event").await, 0);
}

/// The store itself goes on behind its last round: what becomes free before that point is left to the next sweep.
#[tokio::test]
async fn the_next_round_begins_behind_the_last_one() {
    let (log, clock) = settled(0).await;
    for _ in 0..6 {
        commit_one(&log, "a").await;
    }
    let mut lease = log.store.claim("s", "relay", DAY * 9).await.expect("claim").expect("a free lane");
    let batch = log.store.read(&lease, &lease.position.clone(), 10).await.expect("read");
    let first = &batch.events[0].event;
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::dead(first, 1, DeliveryFailure::new("x", "y")));
    log.store.settle(&mut lease, &settlement).await.expect("settle");
    clock.advance(DAY);
    let prune = Sweep::Prune { older_than: DAY, limit: 2 };
    assert!(log.store.sweep(&prune).await.expect("prune").more);
    let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![first.event_id] };
    assert_eq!(log.store.resolve_dead(&discard).await.expect("discard"), 1);
    while log.store.sweep(&prune).await.expect("prune").more {}
    assert_eq!(count(&log, "select count(*) from {schema}.event").await, 1, "it lies behind this sweep");
    while log.store.sweep(&prune).await.expect("prune").more {}
    assert_eq!(count(&log, "select count(*) from {schema}.event").await, 0, "and before the next one");
}

/// The history of what is gone goes, too, in as many rounds as it takes; but not the last batch, which the next sweep goes by.
#[tokio::test]
async fn the_history_goes_with_its_events() {
    let (log, clock) = settled(0).await;
    for _ in 0..7 {
        commit_one(&log, "a").await;
        drain(&log.store, "s").await;
        clock.advance(Duration::from_secs(1));
    }
    clock.advance(DAY);
    let prune = Sweep::Prune { older_than: DAY, limit: 2 };
    let mut rounds = 1;
    while log.store.sweep(&prune).await.expect("prune").more {
        rounds += 1;
    }
    assert_eq!(count(&log, "select count(*) from {schema}.event").await, 0);
    assert_eq!(count(&log, "select count(*) from {schema}.settled_batch").await, 1, "after {rounds} rounds");
}
