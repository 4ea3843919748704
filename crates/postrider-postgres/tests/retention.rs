//! Retention on PostgreSQL: months of the archive, tables of the application, and who waits for what.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_conformance::relay::{commit_one, drain, event, subscribe, until};
use postrider_core::{
    ArchiveOptions, ArchiveTable, Clock, DeliveryChange, DeliveryFailure, ErrorKind, EventLog, EventQuery,
    Field, Inspect, ManualClock, Mask, NewEvent, OffsetDateTime, Operate, Payload, ResolveDead, Settlement,
    Sweep, Uuid,
};
use postrider_postgres::Outbox;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Row};
use support::{Pg, PgLog, server};

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

fn target(table: &str, columns: &[(&str, Field)]) -> ArchiveOptions {
    let columns = columns.iter().map(|(column, field)| ((*column).to_owned(), *field));
    let target = ArchiveTable::new(table, columns).expect("a target");
    ArchiveOptions {
        target: Some(target),
        mask: Mask::new(["email"]).expect("a mask"),
        ..ArchiveOptions::default()
    }
}

/// An application's table with its own names and types takes every field, masked, in the transaction of the sweep.
#[tokio::test]
async fn archived_events_go_to_a_table_of_the_application() {
    let (log, clock) = settled(0).await;
    let schema = log.schema.clone();
    let table = format!("{schema}_audit.Entries \"new\"");
    log.run(
        "create schema {schema}_audit;
         create table {schema}_audit.\"Entries \"\"new\"\"\" (
             entry bigint generated always as identity, no bigint, id uuid primary key, \"Kind\" varchar(50) not null, stream text,
             what text, which text, key text, number integer, body jsonb, format text, raw bytea, beside jsonb,
             happened timestamptz, at timestamp, filed_at text, by text not null default 'postrider')",
    )
    .await;
    let archiving = target(
        &table,
        &[
            ("no", Field::Id),
            ("id", Field::EventId),
            ("Kind", Field::EventType),
            ("stream", Field::Stream),
            ("what", Field::AggregateType),
            ("which", Field::AggregateId),
            ("key", Field::OrderingKey),
            ("number", Field::Sequence),
            ("body", Field::Payload),
            ("format", Field::ContentType),
            ("raw", Field::Content),
            ("beside", Field::Headers),
            ("happened", Field::OccurredAt),
            ("at", Field::RecordedAt),
            ("filed_at", Field::ArchivedAt),
        ],
    );
    log.store.check_archive(&archiving).await.expect("it fits");
    let mut json = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("JSON").sequenced();
    json.payload = Payload::json_text(r#"{"email": "ada@example.org", "sum": 1}"#).expect("JSON");
    let mut bytes =
        NewEvent::of("orders", "OrderPaid", "Order", "8", &1).expect("JSON").ordered_by("account");
    bytes.payload = Payload::bytes("text/csv", b"a,b".to_vec()).expect("bytes");
    for event in [&json, &bytes] {
        log.outbox.record_outside_transaction(event).await.expect("record");
    }
    drain(&log.store, "s").await;
    clock.advance(DAY);
    assert_eq!(log.store.sweep(&archive(archiving.clone())).await.expect("archive").taken, 2);
    let rows = sqlx::query(log.sql(
        "select id, \"Kind\", key, number, body::text, format, raw, by, entry from {schema}_audit.\"Entries \"\"new\"\"\" order by no",
    ));
    let rows = rows.fetch_all(&log.pool).await.expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].get::<Uuid, _>(0), json.event_id);
    assert_eq!((rows[0].get::<&str, _>(1), rows[0].get::<&str, _>(2)), ("OrderPaid", "Order:7"));
    assert_eq!(rows[0].get::<Option<i32>, _>(3), Some(1));
    assert_eq!(rows[0].get::<Option<&str>, _>(4), Some("{\"sum\": 1, \"email\": \"***\"}"));
    assert_eq!(rows[0].get::<&str, _>(7), "postrider");
    assert_eq!((rows[1].get::<&str, _>(2), rows[1].get::<Option<&str>, _>(4)), ("account", None));
    assert_eq!(
        (rows[1].get::<&str, _>(5), rows[1].get::<&[u8], _>(6)),
        ("text/csv", &b""[..]),
        "it can't be masked"
    );
    let left: i64 = sqlx::query_scalar(
        log.sql("select (select count(*) from {schema}.event) + (select count(*) from {schema}.archive)"),
    )
    .fetch_one(&log.pool)
    .await
    .expect("count");
    assert_eq!(left, 0, "they are neither in the log nor in the archive");

    // What a row does not fit into is refused, and nothing is gone.
    log.outbox.record_outside_transaction(&event("long", 1)).await.expect("record");
    log.run("alter table {schema}_audit.\"Entries \"\"new\"\"\" alter \"Kind\" type varchar(10) using left(\"Kind\", 10)").await;
    drain(&log.store, "s").await;
    clock.advance(DAY);
    let error = log.store.sweep(&archive(archiving)).await.expect_err("OrderChanged has 12 letters");
    assert!(error.message().contains(&format!("can't archive into {table}")), "{error}");
    let left: i64 = sqlx::query_scalar(log.sql("select count(*) from {schema}.event"))
        .fetch_one(&log.pool)
        .await
        .expect("count");
    assert_eq!(left, 1);
    log.run("drop schema {schema}_audit cascade").await;
}

/// What is wrong with a table is found before the night, and said in a sentence.
#[tokio::test]
async fn a_table_that_cannot_take_events_is_refused_in_a_sentence() {
    let (log, _clock) = settled(0).await;
    log.run("create table {schema}_t (id uuid, \"n\" integer not null, body boolean)").await;
    let table = format!("{}_t", log.schema);
    for (archiving, part) in [
        (target("nowhere.events", &[("id", Field::EventId)]), "there is no table nowhere.events"),
        (
            target(&table, &[("ident", Field::EventId)]),
            "has no column \"ident\"; its columns are id, n, body",
        ),
        (target(&table, &[("id", Field::EventId)]), "the column \"n\""),
        (
            target(&table, &[("id", Field::EventId), ("n", Field::Sequence), ("body", Field::Payload)]),
            "column \"body\" is of type boolean",
        ),
        (target(&format!("{}.event", log.schema), &[("event_id", Field::EventId)]), "belongs to Postrider"),
    ] {
        let error = log.store.check_archive(&archiving).await.expect_err(part);
        assert!(error.message().contains(part), "{error}");
    }
    log.run("drop table {schema}_t").await;
}

async fn as_role(log: &PgLog, role: &str) -> (Outbox, PgPool) {
    let pool =
        PgPoolOptions::new().max_connections(3).connect_with(server().username(role)).await.expect("login");
    (Outbox::builder().schema(&log.schema).connect(&pool).await.expect("connect"), pool)
}

/// A table of the application is written by the relay's own rights, not by those of the schema's owner.
#[tokio::test]
async fn a_target_is_no_way_to_write_as_the_owner() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let role = format!("r{}", Uuid::new_v4().simple());
    log.run(&format!(
        "create role {role} login; select {{schema}}.grant_relay('{role}');
         create table {{schema}}.secrets (id uuid); create table {{schema}}_a (id uuid)"
    ))
    .await;
    let (outbox, pool) = as_role(&log, &role).await;
    let store = outbox.store().await.expect("store");
    store.subscribe(&postrider_core::Subscription::new("s")).await.expect("subscribe");
    for _ in 0..3 {
        outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
    }
    drain(&store, "s").await;
    let now = |archiving| Sweep::Archive { older_than: Duration::ZERO, limit: 1, archiving };
    let archiving = target(&format!("{}_a", log.schema), &[("id", Field::EventId)]);
    for denied in
        [store.check_archive(&archiving).await.err(), store.sweep(&now(archiving.clone())).await.err()]
    {
        let denied = denied.expect("it may not");
        assert_eq!(denied.kind(), ErrorKind::Denied, "{denied}");
        assert!(denied.message().contains("grant it usage of the schema and insert"), "{denied}");
    }
    log.run(&format!("grant insert on {{schema}}_a to {role}")).await;
    store.check_archive(&archiving).await.expect("it may");
    assert_eq!(store.sweep(&now(archiving)).await.expect("archive").taken, 1);
    // Into the archive it may: masked, and as it is; and it may drop months.
    let masked = ArchiveOptions { mask: Mask::new(["email"]).expect("a mask"), ..ArchiveOptions::default() };
    assert_eq!(store.sweep(&now(masked)).await.expect("archive").taken, 1);
    assert_eq!(store.sweep(&now(ArchiveOptions::default())).await.expect("archive").taken, 1);
    let months = Sweep::Archived { older_than: Duration::ZERO, limit: 1 };
    assert_eq!(store.sweep(&months).await.expect("months").taken, 0, "this month is not over");
    for text in [
        "delete from {schema}.archive",
        "update {schema}.archive set payload = '0'",
        "drop table {schema}.archive",
        "delete from {schema}.archive_month",
        "select {schema}.delete_events(array[1])",
        "insert into {schema}.secrets values (null)",
    ] {
        let said = sqlx::raw_sql(log.sql(text)).execute(&pool).await.expect_err(text).to_string();
        assert!(said.contains("permission denied") || said.contains("must be owner"), "{text}: {said}");
    }
    pool.close().await;
    drop(store);
    log.run(&format!("drop table {{schema}}_a; drop owned by {role}; drop role {role}")).await;
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
