//! Rows that can't be read, or that nobody would write on purpose: each stops nothing but itself.

mod support;

use postrider_conformance::TestLog;
use postrider_conformance::relay::{LONG, claim, commit_one, drain, event, ids, read, settle, subscribe};
use postrider_core::{
    ArchiveOptions, Clock, DeliveryChange, DeliveryFailure, EventLog, EventQuery, Inspect, Lease,
    LeaseStatus, Mask, OpenDeliveryQuery, Operate, OutboxSource, ReadEvent, Replay, ReplayFrom, ResolveDead,
    Settlement, StateQuery, Subscription, Sweep, Uuid,
};
use sqlx::Row;
use support::{Pg, PgLog, new_database};

/// Lets rows in as they were before they were refused.
async fn admit(log: &PgLog) {
    log.run(
        "create or replace function {schema}.check_time(occurred_at timestamptz) returns void language plpgsql as \
         $$ begin end $$;
         drop trigger if exists check_text on {schema}.event;",
    )
    .await;
}

/// Inserts a row by hand, with one column's value as SQL, and returns its event id.
async fn insert(log: &PgLog, column: &str, value: &str) -> Uuid {
    let mut columns = vec![
        ("event_type", "'Odd'"),
        ("aggregate_type", "'A'"),
        ("aggregate_id", "'odd'"),
        ("payload", "'{\"n\":1}'"),
    ];
    columns.retain(|(name, _)| *name != column);
    columns.push((column, value));
    let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let sql = format!(
        "insert into {{schema}}.event ({}) values ({}) returning event_id",
        names.join(", "),
        values.join(", ")
    );
    sqlx::query(log.sql(&sql)).fetch_one(&log.pool).await.expect(value).get(0)
}

fn reasons(events: &[ReadEvent]) -> Vec<(Uuid, Option<&str>)> {
    events.iter().map(|read| (read.event.event_id, read.unreadable.as_deref())).collect()
}

/// Infinity, or milliseconds that were taken for seconds, can't be shown by any reader.
#[tokio::test]
async fn a_time_that_nobody_can_show_is_refused_where_it_is_recorded() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    for time in ["infinity", "-infinity", "0044-03-15 00:00:00+00 BC", "56000-01-01 00:00:00+00"] {
        for sql in [
            format!(
                "insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload, occurred_at) \
                 values ('T', 'A', '1', '1', '{time}')"
            ),
            format!("select {{schema}}.record('s', 'T', 'A', '1', '1', occurred_at => '{time}')"),
        ] {
            let error = sqlx::raw_sql(log.sql(&sql)).execute(&log.pool).await.expect_err(time).to_string();
            assert!(error.contains("occurred_at must be a time between the years 1 and 9999"), "{error}");
        }
    }
    let first = insert(&log, "occurred_at", "'0001-01-01 00:00:00+00'").await;
    let last = insert(&log, "occurred_at", "'9999-12-30 23:59:59.999999+00'").await;
    assert_eq!(ids(&drain(&log.store, "s").await), [first, last], "what can be shown is recorded");
}

/// Such rows may be in the log from before.
#[tokio::test]
async fn a_time_out_of_range_becomes_the_recorded_time_and_stops_nobody() {
    let log = Pg::default().pg_log(Clock::Database).await;
    admit(&log).await;
    subscribe(&log.store, "s").await;
    let mut expected = vec![commit_one(&log, "a").await];
    for time in ["infinity", "-infinity", "4000-01-01 BC", "56000-01-01"] {
        expected.push(insert(&log, "occurred_at", &format!("'{time}'")).await);
    }
    expected.push(commit_one(&log, "a").await);
    let lease = claim(&log.store, "s").await;
    let batch = read(&log.store, &lease, 100).await;
    assert_eq!(reasons(&batch.events), expected.iter().map(|id| (*id, None)).collect::<Vec<_>>());
    assert!(batch.events[1..5].iter().all(|read| read.event.occurred_at == read.event.recorded_at));
    let found = log.store.events(&EventQuery::default()).await.expect("events");
    assert_eq!(found.events.len(), expected.len());
}

/// Whatever a role that may only record can insert, each row comes with its number and its id, and so do those behind it.
#[tokio::test]
async fn nothing_that_a_publisher_can_insert_stops_a_subscription_or_a_search() {
    let log = Pg::default().pg_log(Clock::Database).await;
    log.store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    log.run("select {schema}.set_max_payload(1073741824)").await;
    let deep = format!("'{}1{}'", "[".repeat(5000), "]".repeat(5000));
    let four_bytes = format!("'{}'", "😀".repeat(500));
    let large = format!("'\"{}\"'", "x".repeat(20_000_000));
    let mut expected = vec![commit_one(&log, "a").await];
    for (column, value) in [
        ("headers", "'[]'"),
        ("headers", "'1'"),
        ("headers", "'null'"),
        ("headers", r#"'{"source":{"a":[1]},"source":2}'"#),
        ("headers", r#"'{"correlation_id":"a\u0000b"}'"#),
        ("headers", r#"'{"correlation_id":"\ud800"}'"#),
        ("headers", &format!(r#"'{{"correlation_id":{}}}'"#, deep.trim_matches('\''))),
        ("payload", r#"'"\u0000"'"#),
        ("payload", r#"'"\ud800 \udc00\udc00"'"#),
        ("payload", "'1e999999999'"),
        ("payload", "'-0.00000000000000000000000000000000000000000000000000000000001'"),
        ("payload", &deep),
        ("payload", &large),
        ("content_type", "'application/avro'"),
        ("content_type", "''"),
        ("content", "'\\xff'"),
        ("stream", "''"),
        ("event_type", "''"),
        ("aggregate_type", "''"),
        ("aggregate_id", "''"),
        ("ordering_key", "''"),
        ("aggregate_id", &four_bytes),
        ("ordering_key", &four_bytes),
        ("max_attempts", "-5"),
        ("max_attempts", "0"),
        ("max_attempts", "2147483647"),
        ("sequence", "-9223372036854775808"),
        ("event_id", "'00000000-0000-0000-0000-000000000000'"),
    ] {
        expected.push(insert(&log, column, value).await);
    }
    expected.push(commit_one(&log, "a").await);
    let mut got = Vec::new();
    while let Some(lease) = log.store.claim("s", "relay", LONG).await.expect("claim") {
        // One of them is larger than what a lane takes at once.
        let lease = Lease { bytes: u64::MAX, ..lease };
        let batch = read(&log.store, &lease, 100).await;
        assert!(batch.events.iter().all(|read| read.unreadable.is_none()), "{:?}", reasons(&batch.events));
        assert!(batch.events.iter().all(|read| read.event.max_attempts.is_none_or(|most| most > 0)));
        got.extend(batch.events.iter().map(|read| (read.event.id, read.event.event_id)));
    }
    got.sort_unstable();
    assert_eq!(got.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), expected);
    everybody_can_look(&log, expected.len()).await;
}

/// Searches, states, figures and the view go on, over so many events.
async fn everybody_can_look(log: &PgLog, events: usize) {
    let search = EventQuery { correlation_id: Some("a".into()), ..EventQuery::default() };
    assert_eq!(log.store.events(&search).await.expect("search").looked, events as u64);
    let caused = EventQuery { caused: true, ..EventQuery::default() };
    log.store.events(&caused).await.expect("those with a cause");
    assert_eq!(log.outbox.recorded(0, 100).await.expect("recorded").len(), events);
    log.store.states(&StateQuery::default()).await.expect("states");
    log.store.figures("s").await.expect("figures");
    log.run("select * from {schema}.event_state").await;
}

/// Why an event can't be read.
const REASON: &str = "can't send it as UTF-8";

/// Everything that reads events, on a log whose database takes a text that can't be sent: `bad` is such a text as SQL.
async fn goes_on(encoding: &str, bad: &str) {
    let database = new_database(encoding).await;
    let log = Pg::default().log_on(database.options(), Clock::Database).await;
    admit(&log).await;
    subscribe(&log.store, "all").await;
    let laned = Subscription::new("laned").lanes(2).streams(["*", "orders"]);
    log.store.subscribe(&laned).await.expect("subscribe");
    let mut late = log.pool.begin().await.expect("begin");
    let sql = format!(
        "insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload) values ('T', 'A', {bad}, '1') \
         returning event_id"
    );
    let late_id: Uuid = sqlx::query(log.sql(&sql)).fetch_one(&mut *late).await.expect("insert").get(0);
    let before = commit_one(&log, "a").await;
    let mut lease = claim(&log.store, "all").await;
    let batch = read(&log.store, &lease, 100).await;
    assert_eq!(settle(&log.store, &mut lease, &batch).await, LeaseStatus::Held);
    late.commit().await.expect("commit");

    let json = format!("to_json('x'::text || {bad})");
    let headers = format!("json_build_object('source', {bad})");
    let mut unreadable = vec![late_id];
    for (column, value) in [
        ("stream", bad),
        ("event_type", bad),
        ("aggregate_type", bad),
        ("aggregate_id", bad),
        ("ordering_key", bad),
        ("content_type", bad),
        ("payload", json.as_str()),
        ("headers", headers.as_str()),
    ] {
        unreadable.push(insert(&log, column, value).await);
    }
    let after = commit_one(&log, "b").await;

    let batch = read(&log.store, &lease, 100).await;
    let got = reasons(&batch.events);
    assert_eq!(got.len(), unreadable.len() + 1);
    for (id, why) in &got {
        if *id == after {
            assert_eq!(*why, None, "others come as they are");
        } else {
            assert!(unreadable.contains(id) && why.is_some_and(|why| why.contains(REASON)), "{why:?}");
        }
    }
    let intact = &batch.events.last().expect("the last").event;
    assert_eq!((intact.event_id, intact.aggregate_id.as_str()), (after, "b"));
    // Each becomes its own dead delivery, and the lane goes on.
    let mut settlement = Settlement::of(&batch);
    let failure = || DeliveryFailure::new("unreadable", "can't be read");
    let dead = batch.events.iter().filter(|read| read.unreadable.is_some());
    settlement.deliveries.extend(dead.map(|read| DeliveryChange::dead(&read.event, 0, failure())));
    assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);

    every_lane_comes_to_the_end(&log).await;
    operators_see_them(&log, &mut lease, &unreadable).await;
    log.store.release(lease).await.expect("release");
    a_replay_and_a_sweep_go_on(&log, before).await;
}

/// The other subscription reads by lanes and a filter, in small portions.
async fn every_lane_comes_to_the_end(log: &PgLog) {
    let mut laned = Vec::new();
    while let Some(mut lease) = log.store.claim("laned", "relay", LONG).await.expect("claim") {
        loop {
            let batch = read(&log.store, &lease, 2).await;
            laned.extend(batch.events.iter().map(|read| read.event.event_id));
            if batch.from == batch.next {
                break;
            }
            settle(&log.store, &mut lease, &batch).await;
        }
    }
    let mut everything = log.event_ids().await;
    everything.sort_unstable();
    laned.sort_unstable();
    assert_eq!(laned, everything);
}

/// Operators see what can't be read, and may try it again.
async fn operators_see_them(log: &PgLog, lease: &mut Lease, unreadable: &[Uuid]) {
    let open = log
        .store
        .open_deliveries(&OpenDeliveryQuery {
            subscription: Some("all".into()),
            ..OpenDeliveryQuery::default()
        })
        .await;
    assert_eq!(open.expect("open deliveries").len(), unreadable.len());
    let action = ResolveDead::Requeue { subscription: "all".into(), events: Vec::new() };
    assert_eq!(log.store.resolve_dead(&action).await.expect("requeue"), unreadable.len() as u64);
    let due = log.store.due(lease, 100).await.expect("due").deliveries;
    assert!(!due.is_empty());
    assert!(due.iter().all(|due| due.unreadable.as_deref().is_some_and(|why| why.contains(REASON))));
    let failure = || DeliveryFailure::new("unreadable", "can't be read");
    let settlement = Settlement {
        deliveries: due.iter().map(|due| DeliveryChange::dead(&due.event, 1, failure())).collect(),
        ..Settlement::at(lease.position.clone())
    };
    assert_eq!(log.store.settle(lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    let found = log.store.events(&EventQuery::default()).await.expect("events");
    assert_eq!(found.events.len(), unreadable.len() + 2);
    let one = EventQuery { event_id: Some(unreadable[3]), ..EventQuery::default() };
    assert_eq!(log.store.events(&one).await.expect("event").events.len(), 1);
    assert_eq!(log.outbox.recorded(0, 100).await.expect("recorded").len(), unreadable.len() + 2);
    let states = log.store.states(&StateQuery::default()).await.expect("states");
    assert!(states.len() >= unreadable.len() * 2);
    assert!(!log.store.figures("all").await.expect("figures").is_empty());
    log.store.figures_up_to("all", 10).await.expect("figures");
}

async fn a_replay_and_a_sweep_go_on(log: &PgLog, before: Uuid) {
    let from = ReplayFrom::Event(before);
    let replay = Replay { subscription: "all".into(), from, effects_may_repeat: false, dry_run: false };
    assert!(log.store.replay(&replay).await.expect("replay").events > 0);
    let lease = &mut claim(&log.store, "all").await;
    loop {
        let batch = read(&log.store, lease, 100).await;
        if batch.from == batch.next {
            break;
        }
        settle(&log.store, lease, &batch).await;
    }
    let archiving = ArchiveOptions { mask: Mask::new(["n"]).expect("a mask"), ..ArchiveOptions::default() };
    let sweep = Sweep::Archive { older_than: std::time::Duration::ZERO, limit: 100, archiving };
    let swept = log.store.sweep(&sweep).await.expect("archive");
    assert!(swept.taken >= 2, "{swept:?}");
    assert!(
        log.store
            .events(&EventQuery::default())
            .await
            .expect("archived, too")
            .events
            .iter()
            .any(|e| e.archived)
    );
}

/// A database without an encoding keeps any byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_not_utf8_stops_nothing_but_itself() {
    goes_on("SQL_ASCII", "convert_from('\\x61ff62', 'SQL_ASCII')").await;
}

/// The server refuses a whole answer for one character that UTF-8 lacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_the_server_cannot_send_stops_nothing_but_itself() {
    goes_on("WIN1252", "convert_from('\\x618162', 'WIN1252')").await;
}

#[tokio::test]
async fn a_text_that_is_not_utf8_is_refused_where_it_is_recorded() {
    let database = new_database("SQL_ASCII").await;
    let log = Pg::default().log_on(database.options(), Clock::Database).await;
    for column in ["stream", "event_type", "aggregate_type", "aggregate_id", "ordering_key", "content_type"] {
        let sql = format!(
            "insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload) values ('T', 'A', '1', '1'); \
             insert into {{schema}}.event select (e).* from (select json_populate_record(e, json_build_object('{column}', \
             convert_from('\\xff', 'SQL_ASCII'), 'event_id', gen_random_uuid())) as e from {{schema}}.event e limit 1) as e"
        );
        let error = sqlx::raw_sql(log.sql(&sql)).execute(&log.pool).await.expect_err(column).to_string();
        assert!(error.contains("the texts of an event must be UTF-8"), "{column}: {error}");
    }
    let grün = event("grün", 1);
    log.outbox.record_outside_transaction(&grün).await.expect("UTF-8 is kept");
    let error = sqlx::raw_sql(
        log.sql("select {schema}.record('s', 'T', 'A', convert_from('\\xff', 'SQL_ASCII'), '1')"),
    )
    .execute(&log.pool)
    .await
    .map_err(|error| error.to_string());
    assert!(error.expect_err("refused").contains("must be UTF-8"));
}
