//! What is PostgreSQL's own: publishers in any language, isolation levels, roles, migrations, bad input.

mod support;

use std::sync::Arc;
use std::time::Duration;

use postrider_conformance::TestLog;
use postrider_conformance::relay::{LONG, claim, commit_one, drain, drain_lane, event, ids, subscribe};
use postrider_core::{
    Clock, Effect, ErrorKind, EventLog, Inspect, Operate, OutboxSource, Subscription, Uuid,
};
use postrider_postgres::Outbox;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Row};
use support::{Pg, PgLog, server};
use tokio::task::JoinSet;

/// Any language: the SQL function, with its defaults, and with everything.
#[tokio::test]
async fn the_sql_function_records_for_publishers_in_any_language() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    log.run("select {schema}.record('orders', 'OrderPaid', 'Order', '7', '{ \"n\":1}')").await;
    log.run(
        "select {schema}.record('orders', 'OrderPaid', 'Order', '8', '2', headers => '{\"tenant\":\"acme\"}', \
         event_id => '0192f0c1-2345-7abc-8def-0123456789ab', occurred_at => '2026-01-02 03:04:05.678901+09', \
         ordering_key => 'k', sequenced => true, max_attempts => 3)",
    )
    .await;
    let read = drain(&log.store, "s").await;
    assert_eq!(read[0].payload.as_json(), Some("{ \"n\":1}"), "byte for byte");
    assert_eq!(read[0].event_id.get_version_num(), 7);
    assert!(read[0].occurred_at <= read[0].recorded_at, "the time of recording, unless given");
    assert_eq!(read[1].event_id.to_string(), "0192f0c1-2345-7abc-8def-0123456789ab");
    assert_eq!((read[1].headers.tenant(), &*read[1].key()), (Some("acme"), "k"));
    assert_eq!((read[1].sequence, read[1].max_attempts), (Some(1), Some(3)));
    assert_eq!(read[1].occurred_at.unix_timestamp_nanos(), 1_767_290_645_678_901_000);
    // Two ids of one moment differ, and the time in them is the database's.
    let millis = u64::try_from(read[0].recorded_at.unix_timestamp_nanos() / 1_000_000).expect("a time");
    let (seconds, nanos) = read[0].event_id.get_timestamp().expect("version 7").to_unix();
    assert!((seconds * 1000 + u64::from(nanos) / 1_000_000).abs_diff(millis) <= 1000);
}

/// `COPY` goes through the same triggers.
#[tokio::test]
async fn copy_is_right_as_well() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let mut lease = claim(&log.store, "s").await;
    let (mut late, mut copy) = (log.begin().await, log.pool.begin().await.expect("begin"));
    late.record(&event("late", 1)).await.expect("record");
    let sql = log
        .sql("copy {schema}.event (id, tx_id, event_type, aggregate_type, aggregate_id, payload) from stdin");
    let mut stream = copy.copy_in_raw(&sql.0).await.expect("copy");
    let rows: String = (0..1000).map(|n| format!("{}\t3\tCopied\tA\ta{n}\t{n}\n", n % 10)).collect();
    stream.send(rows.as_bytes()).await.expect("send");
    assert_eq!(stream.finish().await.expect("finish"), 1000);
    commit_one(&log, "prompt").await;
    assert_eq!(drain_lane(&log.store, &mut lease, 100).await.len(), 1);
    copy.commit().await.expect("commit");
    let copied = drain_lane(&log.store, &mut lease, 300).await;
    assert_eq!(copied.len(), 1000);
    assert!(copied.iter().enumerate().all(|(n, event)| event.aggregate_id == format!("a{n}")), "in order");
    late.commit().await.expect("commit");
    assert_eq!(drain_lane(&log.store, &mut lease, 100).await.len(), 1);
}

/// Two-phase commit: a prepared transaction is one that is open; the bell is off, as PREPARE forbids NOTIFY.
#[tokio::test]
async fn a_prepared_transaction_is_delivered_when_it_commits() {
    let log = Pg { silent: true, ..Pg::default() }.pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let mut lease = claim(&log.store, "s").await;
    let name = format!("p{}", Uuid::new_v4().simple());
    log.run(&format!(
        "begin; insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload) values ('T', 'A', 'x', '1'); \
         prepare transaction '{name}'"
    ))
    .await;
    let prompt = commit_one(&log, "prompt").await;
    let mut bell = log.store.bell();
    for _ in 0..10 {
        bell.wait(Duration::from_millis(20)).await.expect("wait");
    }
    assert_eq!(ids(&drain_lane(&log.store, &mut lease, 10).await), [prompt]);
    log.run(&format!("commit prepared '{name}'")).await;
    assert_eq!(drain_lane(&log.store, &mut lease, 10).await[0].aggregate_id, "x");
    assert_eq!(log.rings().await, Some(0), "nobody rang");
}

/// Writers at every isolation level, with savepoints and early transaction ids, one open throughout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_every_isolation_level_lose_nothing() {
    let log = Arc::new(Pg::default().pg_log(Clock::Database).await);
    subscribe(&log.store, "s").await;
    let mut throughout = log.begin().await;
    let held_back = throughout.record(&event("throughout", 1)).await.expect("record");
    let mut writers = JoinSet::new();
    for (number, level) in
        ["read committed", "repeatable read", "serializable"].into_iter().cycle().take(9).enumerate()
    {
        let log = Arc::clone(&log);
        writers.spawn(async move {
            let mut committed = Vec::new();
            for n in 0..60 {
                let begin = format!("begin isolation level {level}");
                let mut tx = log.pool.begin_with(AssertSqlSafe(begin)).await.expect("begin");
                sqlx::query("select pg_current_xact_id()").execute(&mut *tx).await.expect("an early xid");
                let first = event(&format!("w{number}"), n);
                log.outbox.record(&mut tx, &first).await.expect("record");
                sqlx::raw_sql("savepoint a").execute(&mut *tx).await.expect("savepoint");
                log.outbox.record(&mut tx, &event("gone", n)).await.expect("record");
                sqlx::raw_sql("rollback to savepoint a").execute(&mut *tx).await.expect("rollback");
                let second = event(&format!("v{number}"), n);
                log.outbox.record(&mut tx, &second).await.expect("record");
                if n % 4 == 0 {
                    tx.rollback().await.expect("rollback");
                } else if tx.commit().await.is_ok() {
                    committed.extend([first.event_id, second.event_id]);
                }
            }
            committed
        });
    }
    let reader = tokio::spawn({
        let log = Arc::clone(&log);
        async move {
            let mut got = Vec::new();
            let mut lease = claim(&log.store, "s").await;
            while got.len() < 9 * 45 * 2 + 1 {
                got.extend(ids(&drain_lane(&log.store, &mut lease, 25).await));
                tokio::task::yield_now().await;
            }
            got.extend(ids(&drain_lane(&log.store, &mut lease, 25).await));
            got
        }
    });
    let mut committed: Vec<Uuid> = writers.join_all().await.into_iter().flatten().collect();
    throughout.commit().await.expect("commit");
    committed.push(held_back);
    let mut got =
        tokio::time::timeout(Duration::from_secs(60), reader).await.expect("all are read").expect("reader");
    got.sort_unstable();
    committed.sort_unstable();
    assert_eq!(got, committed);
}

/// A duplicate that is not committed yet: the second waits for the first and then knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_for_one_event_id_has_one_winner() {
    let log = Arc::new(Pg::default().pg_log(Clock::Database).await);
    for sequenced in [false, true] {
        let mut contested = event("a", 1);
        contested.sequenced = sequenced;
        let mut racers = JoinSet::new();
        for _ in 0..8 {
            let (log, contested) = (Arc::clone(&log), contested.clone());
            racers.spawn(async move {
                let mut writer = log.begin().await;
                let won = writer.record_once(&contested).await.expect("record");
                writer.commit().await.expect("commit");
                usize::from(won)
            });
        }
        assert_eq!(racers.join_all().await.into_iter().sum::<usize>(), 1);
    }
    commit_one(&*log, "b").await;
    let mut writer = log.begin().await;
    writer.record(&event("a", 2).sequenced()).await.expect("record");
    writer.commit().await.expect("commit");
    subscribe(&log.store, "s").await;
    let numbers: Vec<_> = drain(&log.store, "s").await.iter().filter_map(|event| event.sequence).collect();
    assert_eq!(numbers, [1, 2], "the losers used up no number");
}

/// Sequenced events are in order although the application takes no lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequenced_events_are_in_order_without_a_lock_of_the_application() {
    let log = Arc::new(Pg::default().pg_log(Clock::Database).await);
    subscribe(&log.store, "s").await;
    let mut writers = JoinSet::new();
    for n in 0..8 {
        let log = Arc::clone(&log);
        writers.spawn(async move {
            for turn in 0..30 {
                let mut writer = log.begin().await;
                let event = event(&format!("tx-{n}-{turn}"), 1).ordered_by("account").sequenced();
                writer.record(&event).await.expect("record");
                if turn % 5 == 0 { writer.rollback().await } else { writer.commit().await.expect("commit") }
            }
        });
    }
    let mut got = Vec::new();
    let mut lease = claim(&log.store, "s").await;
    while !writers.is_empty() {
        got.extend(drain_lane(&log.store, &mut lease, 7).await);
        writers.try_join_next().transpose().expect("a writer must not fail");
    }
    got.extend(drain_lane(&log.store, &mut lease, 7).await);
    assert_eq!(
        got.iter().filter_map(|event| event.sequence).collect::<Vec<_>>(),
        (1..=192).collect::<Vec<_>>()
    );
}

/// Least privilege: who records can't read, change, relay; who relays can't change or delete events.
#[tokio::test]
async fn each_of_the_two_roles_may_do_its_work_and_nothing_else() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let suffix = &log.schema[..12];
    let (recorder, relay) = (format!("recorder_{suffix}"), format!("relay_{suffix}"));
    log.run(&format!("create role {recorder} login; create role {relay} login")).await;
    log.outbox.grant_record(&recorder).await.expect("grant");
    log.outbox.grant_relay(&relay).await.expect("grant");
    assert!(log.outbox.grant_record("nobody of that name").await.is_err());

    let (outbox, pool) = as_role(&log, &recorder).await;
    let mut tx = pool.begin().await.expect("begin");
    let first = outbox.record(&mut tx, &event("a", 1).sequenced()).await.expect("record");
    outbox.record_once(&mut tx, &event("a", 2)).await.expect("record once");
    outbox.record_all(&mut tx, &[event("a", 3), event("a", 4).sequenced()]).await.expect("record all");
    tx.commit().await.expect("commit");
    let denied = [
        "select payload from {schema}.event",
        "update {schema}.event set payload = '0'",
        "delete from {schema}.event",
        "truncate {schema}.event",
        "update {schema}.counter set value = 0",
        "select * from {schema}.lane",
        "update {schema}.lane set position = ''",
        "insert into {schema}.inbox values ('c', gen_random_uuid(), now())",
        "select setval('{schema}.bell', 0)",
        "select setval('{schema}.event_id', 1)",
        "select {schema}.sweep(false, now(), now(), 0, 10)",
        "select {schema}.take_events(false, now(), 0, 10)",
        "select {schema}.sweep_history(now(), 10)",
        "select {schema}.sweep_archive(now())",
        "select {schema}.sweep_inbox(now(), '-infinity', 10)",
        "insert into {schema}.archive select from {schema}.archive",
    ];
    assert_denied(&log, &pool, &denied, "can't be changed").await;
    assert_eq!(outbox.store().await.err().map(|error| error.kind()), Some(ErrorKind::Denied));

    let (outbox, pool) = as_role(&log, &relay).await;
    assert_who_relays_may_do_only_that(&log, &outbox, &pool, first).await;
    pool.close().await;
    log.run(&format!("drop owned by {recorder}; drop owned by {relay}")).await;
    let roles = format!("drop role {recorder}; drop role {relay}");
    let _ = sqlx::raw_sql(AssertSqlSafe(roles)).execute(&log.pool).await;
}

async fn as_role(log: &PgLog, role: &str) -> (Outbox, PgPool) {
    let pool = PgPoolOptions::new().max_connections(4).connect_with(server().username(role));
    let pool = pool.await.expect("connect");
    (Outbox::builder().schema(&log.schema).connect(&pool).await.expect("outbox"), pool)
}

/// Each of these statements is denied, or refused with these words.
async fn assert_denied(log: &PgLog, pool: &PgPool, statements: &[&str], or_words: &str) {
    for text in statements {
        let said = sqlx::raw_sql(log.sql(text)).execute(pool).await.expect_err(text).to_string();
        assert!(said.contains("permission denied") || said.contains(or_words), "{text}: {said}");
    }
}

/// `recorded` is one of the four events in the log.
async fn assert_who_relays_may_do_only_that(log: &PgLog, outbox: &Outbox, pool: &PgPool, recorded: Uuid) {
    let store = outbox.store().await.expect("store");
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let got = drain(&store, "s").await;
    assert_eq!(got.len(), 4);
    assert!(ids(&got).contains(&recorded));
    let mut bell = store.bell();
    for _ in 0..20 {
        bell.wait(Duration::from_millis(20)).await.expect("the bell");
    }
    let mut connection = pool.acquire().await.expect("connection");
    assert!(outbox.inbox("c").first_time(&mut connection, recorded).await.expect("inbox"));
    drop(connection);
    let lease = claim(&store, "s").await;
    let marked = Effect { lease: Some(&lease), consumer: "d", events: &[recorded], timeout: LONG };
    let (mut tx, _) = outbox.begin(marked).await.expect("a handler's transaction");
    outbox.record_in(&mut tx, &event("b", 1)).await.expect("record");
    Outbox::rollback(tx).await.expect("rollback");
    assert_eq!(outbox.handled("d", &[recorded]).await.expect("handled"), [false]);
    store.release(lease).await.expect("release");
    assert!(store.figures("s").await.expect("figures").iter().all(|figures| figures.undelivered() == 0));
    let prune = postrider_core::Sweep::Prune { older_than: Duration::ZERO, limit: 10 };
    assert_eq!(store.sweep(&prune).await.expect("sweep").taken, 4);
    outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
    let denied = [
        "update {schema}.event set payload = '0'",
        "delete from {schema}.event",
        "set postrider.sweeping = 'on'; delete from {schema}.event",
        "truncate {schema}.event",
        "drop trigger before_record on {schema}.event",
    ];
    assert_denied(log, pool, &denied, "must be owner").await;
}

/// What publishers in any language get wrong is refused in a sentence that says so.
#[tokio::test]
async fn what_the_sql_function_cannot_record_is_refused_in_a_sentence() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let long = "x".repeat(501);
    for (arguments, part) in [
        ("'', 'T', 'A', '1', '1'", "stream must have 1 to 200 bytes"),
        ("'s', null, 'A', '1', '1'", "event_type must have 1 to 200 bytes"),
        ("'s', 'T', 'A', '', '1'", "aggregate_id must have 1 to 500 bytes"),
        (
            &format!("'s', 'T', 'A', '1', '1', ordering_key => '{long}'"),
            "ordering_key must have 1 to 500 bytes",
        ),
        ("'s', 'T', 'A', '1', null", "payload must not be null"),
        ("'s', 'T', 'A', '1', '\"\\u0000\"'", "NUL character"),
        ("'s', 'T', 'A', '1', '{'", "invalid input syntax for type json"),
        ("'s', 'T', 'A', '1', '1', headers => '[]'", "headers must be a JSON object"),
        ("'s', 'T', 'A', '1', '1', max_attempts => 0", "max_attempts must be at least 1"),
    ] {
        let sql = log.sql(&format!("select {{schema}}.record({arguments})"));
        let said = sqlx::raw_sql(sql).execute(&log.pool).await.expect_err(part).to_string();
        assert!(said.contains(part), "{arguments}: {said}");
    }
    log.run("select {schema}.record('s', 'T', 'A', '1', '\"\\\\u0000\"')").await;
    log.run("select {schema}.record('s', 'T', 'A', '1', '1e9999999')").await;
    subscribe(&log.store, "s").await;
    let shown = sqlx::query(log.sql("select count(*), count(payload) from {schema}.event_state"))
        .fetch_one(&log.pool)
        .await;
    let shown = shown.expect("the view shows what jsonb can't");
    assert_eq!((shown.get::<i64, _>(0), shown.get::<i64, _>(1)), (2, 1));
}

/// A plain insert is held to what the log needs, and read as it is.
#[tokio::test]
async fn a_plain_insert_of_bytes_or_of_something_odd_is_read_as_it_is() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    log.run(
        "insert into {schema}.event (event_type, aggregate_type, aggregate_id, content_type, content) \
         values ('T', 'A', '1', 'application/avro', '\\x0001'); \
         insert into {schema}.event (event_type, aggregate_type, aggregate_id, headers) values ('T', 'A', '2', '[1]')",
    )
    .await;
    let read = drain(&log.store, "s").await;
    assert_eq!(
        (read[0].payload.content_type(), read[0].payload.as_bytes()),
        ("application/avro", &[0, 1][..])
    );
    assert_eq!((read[1].payload.as_json(), read[1].headers.iter().count()), (Some("null"), 0));
    for (column, value) in
        [("event_type", "null".to_owned()), ("aggregate_id", format!("'{}'", "x".repeat(501)))]
    {
        let sql = format!(
            "insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload) select {}, 'A', {}, '1'",
            if column == "event_type" { value.as_str() } else { "'T'" },
            if column == "aggregate_id" { value.as_str() } else { "'1'" }
        );
        sqlx::raw_sql(log.sql(&sql)).execute(&log.pool).await.expect_err(column);
    }
}

#[tokio::test]
async fn an_exhausted_pool_and_a_server_that_is_down_are_said_so() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let small = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_millis(100));
    let small = small.connect_with(server()).await.expect("connect");
    let outbox = Outbox::builder().schema(&log.schema).connect(&small).await.expect("outbox");
    let held = small.acquire().await.expect("the only connection");
    let error = outbox.record_outside_transaction(&event("a", 1)).await.expect_err("exhausted");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::PoolExhausted, true), "{error}");
    drop(held);
    let nobody = server().port(1).password("hunter2");
    let down = PgPoolOptions::new().acquire_timeout(Duration::from_secs(2)).connect_lazy_with(nobody);
    let error = Outbox::builder().schema(&log.schema).connect(&down).await.expect_err("down");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

/// A transaction that failed already says so instead of something puzzling.
#[tokio::test]
async fn a_failed_transaction_is_named() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let mut connection = PgConnection::connect_with(&server()).await.expect("connect");
    let mut tx = connection.begin().await.expect("begin");
    sqlx::raw_sql("select 1 / 0").execute(&mut *tx).await.expect_err("a failure");
    let error = log.outbox.record(&mut tx, &event("a", 1)).await.expect_err("the transaction failed");
    assert!(error.to_string().contains("earlier statement"), "{error}");
}
