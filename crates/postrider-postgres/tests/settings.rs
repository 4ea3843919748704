//! The settings of an outbox.

mod support;

use std::sync::Mutex;
use std::time::Duration;

use postrider_conformance::relay::{change_lanes, drain, event, ids, subscribe};
use postrider_core::{
    ArchiveOptions, Clock, Effect, ErrorKind, EventLog, EventQuery, Inspect, Limits, NewEvent,
    OffsetDateTime, OpenDeliveryQuery, Operate, OutboxSource, Replay, ReplayFrom, Severity, StateQuery,
    Subscription, Sweep,
};
use postrider_postgres::{Outbox, migration_sql};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Row};
use support::{Pg, new_database};

async fn connect(options: PgConnectOptions, most: u32) -> PgPool {
    PgPoolOptions::new().max_connections(most).connect_with(options).await.expect("connect")
}

/// Everything that a relay and an operator do, once.
async fn works_in(pool: &PgPool, outbox: &Outbox) {
    let store = outbox.store().await.expect("store");
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut expected = Vec::new();
    for n in 0..4 {
        let mut tx = pool.begin_with("begin read write").await.expect("begin");
        expected.push(outbox.record(&mut tx, &event(&format!("a{n}"), n).sequenced()).await.expect("record"));
        tx.commit().await.expect("commit");
    }
    let mut got = ids(&drain(&store, "s").await);
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected);
    let from = ReplayFrom::Event(expected[0]);
    let replay = Replay { subscription: "s".into(), from, effects_may_repeat: false, dry_run: false };
    assert_eq!(store.replay(&replay).await.expect("replay").events, 4);
    assert_eq!(drain(&store, "s").await.len(), 4);
    change_lanes(&store, "s", 1).await;
    assert_eq!(store.states(&StateQuery::default()).await.expect("states").len(), 4);
    assert_eq!(store.events(&EventQuery::default()).await.expect("events").events.len(), 4);
    store.open_deliveries(&OpenDeliveryQuery::default()).await.expect("open deliveries");
    store.figures("s").await.expect("figures");
    for check in store.checks(OffsetDateTime::now_utc()).await.expect("checks") {
        assert_ne!(check.severity, Severity::Bad, "{check:?}");
    }
    store.pause("s", Some(&postrider_core::Pause::by("ada"))).await.expect("pause");
    assert_eq!(outbox.recorded(0, 100).await.expect("recorded").len(), 4);
    let effect = Effect { consumer: "c", events: &expected, lease: None, timeout: Duration::from_secs(10) };
    let (transaction, first) = outbox.begin(effect).await.expect("a handler's transaction");
    assert_eq!(first, [true; 4]);
    Outbox::commit(transaction).await.expect("commit");
    let sweep =
        Sweep::Archive { older_than: Duration::ZERO, limit: 100, archiving: ArchiveOptions::default() };
    assert_eq!(store.sweep(&sweep).await.expect("archive").taken, 4);
    store.remove("s", true).await.expect("remove");
}

/// A schema may have the name of any word of SQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_may_be_named_like_a_word_of_sql() {
    let database = new_database("UTF8").await;
    let pool = connect(database.options(), 10).await;
    let outbox = Outbox::builder().schema("order").migrated(&pool).await.expect("migrate");
    Outbox::builder().schema("order").migrated(&pool).await.expect("again");
    works_in(&pool, &outbox).await;
    outbox.grant_record("postgres").await.expect("grant");
    outbox.grant_relay("postgres").await.expect("grant");
    let sql = migration_sql("user").expect("SQL");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.expect("what is printed runs");
    let outbox = Outbox::builder().schema("user").connect(&pool).await.expect("outbox");
    works_in(&pool, &outbox).await;
}

/// What a database sets for every session, each of which has stopped somebody's relay.
const ODD: &[&str] = &[
    "standard_conforming_strings = off",
    "default_transaction_isolation = serializable",
    "default_transaction_read_only = on",
    "default_transaction_deferrable = on",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '60s'",
    "search_path = ''",
    "row_security = off",
    "client_encoding = LATIN1",
    "\"DateStyle\" = 'German'",
    "\"IntervalStyle\" = sql_standard",
    "bytea_output = escape",
    "\"TimeZone\" = 'Pacific/Kiritimati'",
    "extra_float_digits = -15",
    "array_nulls = off",
    "transform_null_equals = on",
    "plan_cache_mode = force_custom_plan",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_works_whatever_the_database_sets_for_its_sessions() {
    let database = new_database("UTF8").await;
    let plain = connect(database.options(), 1).await;
    for setting in ODD {
        let sql = format!(
            "do $$ begin execute format('alter database %I set {}', current_database()); end $$",
            setting.replace('\'', "''")
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&plain).await.expect(setting);
    }
    let pool = connect(database.options(), 10).await;
    let row = sqlx::query("select current_setting('default_transaction_read_only')").fetch_one(&pool).await;
    assert_eq!(row.expect("a setting").get::<String, _>(0), "on");
    let outbox = Outbox::migrated(&pool).await.expect("migrate");
    works_in(&pool, &outbox).await;
    // The application's own transactions are its own: it is told what is in the way.
    let error = outbox.record_outside_transaction(&event("a", 1)).await.expect_err("read-only");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("set default_transaction_read_only to off"), "{error}");
    // Publishers in any language, with strings of the old kind.
    let mut tx = pool.begin_with("begin read write").await.expect("begin");
    let sql = "select postrider.record('s', 'T', 'A', '1', $1::json)";
    sqlx::query(sql).bind(r#"{"path":"C:\\u0000"}"#).execute(&mut *tx).await.expect("a backslash is no NUL");
    let nul = sqlx::query(sql).bind(r#"{"nul":"\u0000"}"#).execute(&mut *tx).await.expect_err("a NUL");
    assert!(nul.to_string().contains("NUL character"), "{nul}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_timeout_of_the_role_ends_no_statement_of_a_relay() {
    let database = new_database("UTF8").await;
    let options = database.options().options([("statement_timeout", "2s")]);
    let pool = connect(options, 4).await;
    let store = Outbox::migrated(&pool).await.expect("migrate").store().await.expect("store");
    sqlx::query("select pg_sleep(2.5)")
        .execute(store.pool())
        .await
        .expect("a relay's statement takes its time");
    let error = sqlx::query("select pg_sleep(2.5)").execute(&pool).await.expect_err("the application's ends");
    assert!(error.to_string().contains("statement timeout"), "{error}");
}

/// Where no trigger runs, no number is given: that is said, not found out later.
#[tokio::test]
async fn a_role_without_triggers_is_refused_at_start() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let options = support::server().options([("session_replication_role", "replica")]);
    let pool = connect(options, 2).await;
    let outbox = Outbox::builder().schema(&log.schema).connect(&pool).await.expect("outbox");
    let error = outbox.store().await.err().expect("refused");
    assert!(error.to_string().contains("session_replication_role is replica"), "{error}");
}

/// A session goes back to the application's pool as it came.
#[tokio::test]
async fn nothing_that_is_set_for_a_statement_stays_in_the_application_s_session() {
    let database = new_database("UTF8").await;
    let pool = connect(database.options(), 1).await;
    let settings = async || {
        let sql = "select string_agg(name || '=' || setting, ' ' order by name) from pg_settings";
        sqlx::query(sql).fetch_one(&pool).await.expect("settings").get::<String, _>(0)
    };
    // The language has settings of its own, there from its first use on.
    sqlx::query("do $$ begin end $$").execute(&pool).await.expect("PL/pgSQL");
    let before = settings().await;
    let outbox = Outbox::migrated(&pool).await.expect("migrate");
    outbox.record_outside_transaction(&event("a", 1).sequenced()).await.expect("record");
    let effect = Effect { consumer: "c", events: &[], lease: None, timeout: Duration::from_secs(10) };
    let (transaction, _) = outbox.begin(effect).await.expect("a handler's transaction");
    Outbox::commit(transaction).await.expect("commit");
    outbox.recorded(0, 10).await.expect("recorded");
    assert_eq!(settings().await, before);
}

/// The source of an outbox is a header of its events, unless they have one.
#[tokio::test]
async fn the_outbox_adds_its_source() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let outbox =
        Outbox::builder().schema(&log.schema).source("billing").connect(&log.pool).await.expect("outbox");
    outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
    outbox.record_outside_transaction(&event("a", 2).with_header("source", "own")).await.expect("record");
    let read = drain(&log.store, "s").await;
    assert_eq!((read[0].headers.source(), read[1].headers.source()), (Some("billing"), Some("own")));
}

/// One setting for all publishers: the library, the function, and a plain insert, with the same sentence.
#[tokio::test]
async fn the_limit_of_a_payload_is_one_setting_for_all_publishers() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let json = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let tried = async |outbox: &Outbox, bytes: usize| -> [Result<(), String>; 4] {
        let event = NewEvent::of("s", "T", "A", "1", &"x".repeat(bytes - 2)).expect("JSON");
        let by_library =
            outbox.record_outside_transaction(&event).await.map(|_| ()).map_err(|error| error.to_string());
        let sql = async |text: &str, bytes: usize| {
            let query = sqlx::query(log.sql(text)).bind(json(bytes));
            query.execute(&log.pool).await.map(|_| ()).map_err(|error| error.to_string())
        };
        let by_function = sql("select {schema}.record('s', 'T', 'A', '1', $1::json)", bytes).await;
        let insert = "insert into {schema}.event (event_type, aggregate_type, aggregate_id, payload) values ('T', 'A', '1', $1::json)";
        let content = "insert into {schema}.event (event_type, aggregate_type, aggregate_id, content_type, content) \
             values ('T', 'A', '1', 'text/plain', convert_to($1::text, 'UTF8'))";
        [by_library, by_function, sql(insert, bytes).await, sql(content, bytes).await]
    };
    let all_meet = async |outbox: &Outbox, limit: usize| {
        for outcome in tried(outbox, limit).await {
            outcome.expect("within the limit");
        }
        let sentence = format!(
            "the payload has {} bytes, more than the limit of {limit}; raise the limit or store it elsewhere and record a reference",
            limit + 1
        );
        for outcome in tried(outbox, limit + 1).await {
            let said = outcome.expect_err("above the limit");
            assert!(said.contains(&sentence), "{said}");
        }
    };
    all_meet(&log.outbox, 1 << 20).await;
    let limits = |payload| Limits { payload, ..Limits::default() };
    let raised = Outbox::builder().schema(&log.schema).limits(limits(3_000_000)).migrated(&log.pool).await;
    all_meet(&raised.expect("migrated"), 3_000_000).await;
    // Everybody else meets it, also those who ask for more; migrating again without a word of it leaves it.
    let builder = Outbox::builder().schema(&log.schema);
    all_meet(
        &builder.clone().limits(limits(9_000_000)).connect(&log.pool).await.expect("connect"),
        3_000_000,
    )
    .await;
    all_meet(&builder.migrated(&log.pool).await.expect("migrate"), 3_000_000).await;
    // One that comes compressed from another table is as large as it is, however small it was made. (PostgreSQL 13 has PGLZ alone.)
    for compression in ["pglz", "lz4"] {
        let copied = format!(
            "do $$ begin perform set_config('default_toast_compression', '{compression}', true); exception when others then null; end $$; \
             create temporary table kept_{compression} as select to_json(repeat('x', 3000000)) as payload; \
             insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload) \
             select 'T', 'A', '1', payload from kept_{compression}"
        );
        let tried = sqlx::raw_sql(log.sql(&copied)).execute(&log.pool).await;
        let said = tried.map(|_| ()).expect_err("above the limit").to_string();
        assert!(said.contains("the payload has 3000002 bytes"), "{compression}: {said}");
    }
}

/// The trace of the code that records is a header of its events, unless they have one; it never stops them.
#[tokio::test]
async fn the_outbox_asks_for_the_current_trace() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let traces =
        Mutex::new(vec![Some("a\0b".to_owned()), None, Some("00-2-2-01".into()), Some("00-1-1-01".into())]);
    let current = move || {
        traces.lock().expect("a list").pop().expect("asked for no more often than events are recorded")
    };
    let builder = Outbox::builder().schema(&log.schema).source("billing").trace(current);
    let outbox = builder.clone().connect(&log.pool).await.expect("outbox");
    let mut tx = log.pool.begin().await.expect("begin");
    outbox.record(&mut tx, &event("a", 1)).await.expect("record");
    outbox.record(&mut tx, &event("a", 2).with_header("traceparent", "00-own")).await.expect("record");
    outbox.clone().record_all(&mut tx, &[event("a", 3), event("a", 4), event("a", 5)]).await.expect("record");
    tx.commit().await.expect("commit");
    let read = drain(&log.store, "s").await;
    let traces: Vec<_> = read.iter().map(|event| event.headers.traceparent()).collect();
    assert_eq!(traces, [Some("00-1-1-01"), Some("00-own"), Some("00-2-2-01"), None, None]);
    assert!(read.iter().all(|event| event.headers.source() == Some("billing")));
    assert!(!format!("{outbox:?} {builder:?}").is_empty());
}

/// E18: an outbox refuses what its publisher may not record, whichever way it is recorded.
#[tokio::test]
async fn an_outbox_refuses_streams_and_types_that_are_not_allowed() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let builder = Outbox::builder().schema(&log.schema).allowed_streams(["orders"]).allowed_types(["Order*"]);
    let outbox = builder.connect(&log.pool).await.expect("outbox");
    let ticker = NewEvent::of("market", "TickerReceived", "Market", "KRW-BTC", &1).expect("JSON");
    let order = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("JSON");
    let refused = outbox.record_outside_transaction(&ticker).await.expect_err("not its stream");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("the stream \"market\" is not allowed"), "{refused}");
    let other = NewEvent { event_type: "TickerReceived".into(), ..order.clone() };
    let mut tx = log.pool.begin().await.expect("a transaction");
    assert!(outbox.record(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_once(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_all(&mut tx, &[order.clone(), ticker]).await.is_err(), "one is not its own");
    outbox.record(&mut tx, &order).await.expect("the transaction goes on");
    tx.commit().await.expect("commit");
    assert_eq!(ids(&drain(&log.store, "s").await), [order.event_id]);
}
