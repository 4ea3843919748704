//! Recording: from Rust, in the caller's transaction, and from plain SQL.

mod fixture;

use std::sync::Mutex;

use fixture::{Database, Fixture, event};
use postrider_core::{ErrorKind, EventLog, Limits, NewEvent, Payload, Subscription};
use postrider_sqlite::Outbox;
use time::macros::datetime;
use uuid::Uuid;

async fn only_event(fixture: &Fixture) -> postrider_core::Recorded {
    fixture.subscribe(Subscription::new("s")).await;
    let lease = fixture.hold().await;
    let mut batch = fixture.store.read(&lease, &lease.position, 10).await.expect("read");
    assert_eq!(batch.events.len(), 1);
    batch.events.remove(0).event
}

#[tokio::test]
async fn an_event_is_read_back_byte_for_byte() {
    let fixture = Fixture::new().await;
    let json = "{ \"b\":1,  \"ключ\" : 1.0e2, \"b\":12345678901234567890123 }";
    let mut new = NewEvent::new("orders", "OrderPaid", "Order", "7", Payload::json_text(json).expect("JSON"))
        .ordered_by("account-1")
        .with_header("market", "KRW-BTC")
        .max_attempts(3);
    new.occurred_at = Some(datetime!(2020-02-29 23:59:59.123456 UTC));
    let id = fixture.record(new.clone()).await;
    let read = only_event(&fixture).await;
    assert_eq!((read.event_id, &read.payload, &read.headers), (id, &new.payload, &new.headers));
    assert_eq!((Some(read.occurred_at), read.max_attempts), (new.occurred_at, Some(3)));
    assert_eq!((read.key().as_ref(), read.sequence), ("account-1", None));
}

#[tokio::test]
async fn bytes_keep_their_content_type() {
    let fixture = Fixture::new().await;
    let payload = Payload::bytes("application/avro", [0_u8, 255, 7]).expect("valid");
    fixture.record(NewEvent { payload: payload.clone(), ..event("1") }).await;
    assert_eq!(only_event(&fixture).await.payload, payload);
}

#[tokio::test]
async fn an_event_exists_if_its_transaction_commits() {
    let fixture = Fixture::new().await;
    let mut tx = fixture.outbox.begin().await.expect("begun");
    fixture.outbox.record(&mut tx, &event("1")).await.expect("recorded");
    tx.rollback().await.expect("rolled back");
    assert_eq!(fixture.number("select count(*) from postrider_event").await, 0);
    let mut tx = fixture.pool.begin().await.expect("begun");
    fixture.outbox.record(&mut tx, &event("1")).await.expect("recorded");
    tx.commit().await.expect("committed");
    assert_eq!(fixture.number("select count(*) from postrider_event").await, 1);
}

#[tokio::test]
async fn a_taken_id_is_refused_and_the_transaction_goes_on() {
    let fixture = Fixture::new().await;
    let first = event("1").sequenced();
    let mut tx = fixture.outbox.begin().await.expect("begun");
    fixture.outbox.record(&mut tx, &first).await.expect("recorded");
    let error = fixture.outbox.record(&mut tx, &first).await.expect_err("taken");
    assert_eq!(error.kind(), ErrorKind::AlreadyRecorded);
    assert!(!fixture.outbox.record_once(&mut tx, &first).await.expect("was there"));
    assert!(fixture.outbox.record_once(&mut tx, &event("1").sequenced()).await.expect("new"));
    tx.commit().await.expect("committed");
    assert_eq!(fixture.number("select group_concat(sequence) = '1,2' from postrider_event").await, 1);
}

#[tokio::test]
async fn many_events_are_recorded_all_or_none() {
    let fixture = Fixture::new().await;
    let mut conn = fixture.pool.acquire().await.expect("a connection");
    let events: Vec<NewEvent> = (0..6_000).map(|n| event(&n.to_string())).collect();
    let ids = fixture.outbox.record_all(&mut conn, &events).await.expect("recorded");
    assert_eq!(ids.len(), 6_000);
    for size in [2, 6_000] {
        let mut again: Vec<NewEvent> = (0..size - 1).map(|n| event(&n.to_string()).sequenced()).collect();
        again.push(events[0].clone());
        let error = fixture.outbox.record_all(&mut conn, &again).await.expect_err("the last is taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyRecorded);
    }
    assert_eq!(fixture.number("select count(*) from postrider_event").await, 6_000);
    assert_eq!(fixture.number("select count(*) from postrider_counter").await, 0);
    fixture.outbox.record(&mut conn, &event("x")).await.expect("the connection is not in a transaction");
    assert_eq!(fixture.number("select max(id) from postrider_event").await, 6_001);
    fixture.outbox.record_all(&mut conn, &events[..0]).await.expect("nothing is nothing");
}

#[tokio::test]
async fn numbers_within_a_key_have_no_gaps() {
    let fixture = Fixture::new().await;
    for (key, commit) in [("a", true), ("b", true), ("a", false), ("a", true), ("b", true)] {
        let mut tx = fixture.outbox.begin().await.expect("begun");
        fixture.outbox.record(&mut tx, &event("1").ordered_by(key).sequenced()).await.expect("recorded");
        if commit { tx.commit().await } else { tx.rollback().await }.expect("ended");
    }
    let numbers: Vec<(String, i64)> =
        sqlx::query_as("select ordering_key, sequence from postrider_event order by id")
            .fetch_all(&fixture.pool)
            .await
            .expect("numbers");
    let expected = [("a", 1), ("b", 1), ("a", 2), ("b", 2)].map(|(key, number)| (key.to_owned(), number));
    assert_eq!(numbers, expected);
    assert_eq!(fixture.number("select count(*) from postrider_guard").await, 0);
}

#[tokio::test]
async fn the_outbox_asks_for_the_current_trace() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    let traces =
        Mutex::new(vec![Some("a\0b".to_owned()), None, Some("00-2-2-01".into()), Some("00-1-1-01".into())]);
    let current = move || {
        traces.lock().expect("a list").pop().expect("asked for no more often than events are recorded")
    };
    let builder = Outbox::builder().source("billing").trace(current);
    let outbox = builder.clone().connect(&fixture.pool).await.expect("connected");
    let mut tx = outbox.begin().await.expect("begun");
    outbox.record(&mut tx, &event("1")).await.expect("recorded");
    outbox.record(&mut tx, &event("1").with_header("traceparent", "00-own")).await.expect("recorded");
    outbox.clone().record_all(&mut tx, &[event("1"), event("1"), event("1")]).await.expect("recorded");
    tx.commit().await.expect("committed");
    let lease = fixture.hold().await;
    let read = fixture.store.read(&lease, &lease.position, 10).await.expect("read").events;
    let traces: Vec<_> = read.iter().map(|read| read.event.headers.traceparent()).collect();
    assert_eq!(traces, [Some("00-1-1-01"), Some("00-own"), Some("00-2-2-01"), None, None]);
    assert!(read.iter().all(|read| read.event.headers.source() == Some("billing")));
    assert!(!format!("{outbox:?} {builder:?}").is_empty());
}

#[tokio::test]
async fn the_outbox_names_its_source_and_keeps_its_limits() {
    let fixture = Fixture::new().await;
    let limits = Limits { payload: 4, ..Limits::default() };
    let outbox =
        Outbox::builder().source("billing").limits(limits).connect(&fixture.pool).await.expect("connected");
    outbox.record_outside_transaction(&event("1")).await.expect("recorded");
    let large = NewEvent { payload: Payload::Json("\"12345\"".into()), ..event("2") };
    assert_eq!(
        outbox.record_outside_transaction(&large).await.expect_err("too large").kind(),
        ErrorKind::Invalid
    );
    assert_eq!(only_event(&fixture).await.headers.source(), Some("billing"));
}

/// One setting for all publishers: the library and a plain insert.
#[tokio::test]
async fn the_limit_of_a_payload_is_one_setting_for_all_publishers() {
    let fixture = Fixture::new().await;
    let tried = async |outbox: &Outbox, bytes: usize| -> [Result<(), String>; 3] {
        let json = format!("\"{}\"", "x".repeat(bytes - 2));
        let event = NewEvent { payload: Payload::Json(json.clone()), ..event("1") };
        let by_library =
            outbox.record_outside_transaction(&event).await.map(|_| ()).map_err(|error| error.to_string());
        let insert = async |column: &str| {
            let kind = if column == "payload" { "null" } else { "'text/plain'" };
            let value = if column == "payload" { "?1" } else { "cast(?1 as blob)" };
            let sql = format!(
                "insert into postrider_event (event_type, aggregate_type, aggregate_id, content_type, {column}) \
                 values ('T', 'A', '1', {kind}, {value})"
            );
            let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(json.clone());
            query.execute(&fixture.pool).await.map(|_| ()).map_err(|error| error.to_string())
        };
        [by_library, insert("payload").await, insert("content").await]
    };
    let all_meet = async |outbox: &Outbox, limit: usize| {
        for outcome in tried(outbox, limit).await {
            outcome.expect("within the limit");
        }
        for outcome in tried(outbox, limit + 1).await {
            let said = outcome.expect_err("above the limit");
            let rest = "; raise the limit or store it elsewhere and record a reference";
            assert!(said.contains("the payload has ") && said.contains(rest), "{said}");
        }
    };
    all_meet(&fixture.outbox, 1 << 20).await;
    let limits = |payload| Limits { payload, ..Limits::default() };
    let raised = Outbox::builder().limits(limits(2_000_000)).migrated(&fixture.pool).await.expect("migrated");
    all_meet(&raised, 2_000_000).await;
    all_meet(
        &Outbox::builder().limits(limits(9_000_000)).connect(&fixture.pool).await.expect("connected"),
        2_000_000,
    )
    .await;
    all_meet(&Outbox::migrated(&fixture.pool).await.expect("migrated"), 2_000_000).await;
}

#[tokio::test]
async fn a_transaction_that_read_before_it_wrote_is_told_what_to_do() {
    let fixture = Fixture::new().await;
    let mut tx = fixture.pool.begin().await.expect("begun");
    sqlx::query("select count(*) from postrider_event").fetch_one(&mut *tx).await.expect("read");
    fixture.record(event("1")).await;
    let error = fixture.outbox.record(&mut tx, &event("2")).await.expect_err("another one wrote");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("outbox.begin()"), "{error}");
}

#[tokio::test]
async fn a_locked_database_is_a_conflict() {
    let database = Database::new();
    let outbox = Outbox::migrated(&database.pool().await).await.expect("migrated");
    let hasty = database.options().busy_timeout(std::time::Duration::ZERO);
    let hasty = Outbox::connect(&sqlx::SqlitePool::connect_with(hasty).await.expect("a pool"))
        .await
        .expect("connected");
    let _writing = outbox.begin().await.expect("begun");
    let error = hasty.record_outside_transaction(&event("1")).await.expect_err("locked");
    assert!(error.kind() == ErrorKind::Conflict && error.is_retryable(), "{error:?}");
}

#[tokio::test]
async fn a_plain_insert_needs_only_what_it_says() {
    let fixture = Fixture::new().await;
    sqlx::query(
        "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload, occurred_at, sequence)
         values ('OrderPaid', 'Order', 7, '{\"order\": 7}', null, 99)",
    )
    .execute(&fixture.pool)
    .await
    .expect("inserted");
    let read = only_event(&fixture).await;
    assert_eq!((read.event_id.get_version_num(), read.event_id.get_variant()), (7, uuid::Variant::RFC4122));
    assert_eq!((&*read.stream, read.key().as_ref(), read.sequence), ("events", "Order:7", Some(1)));
    assert_eq!(read.occurred_at, read.recorded_at);
    let age = time::OffsetDateTime::now_utc() - read.recorded_at;
    assert!(age.abs() < time::Duration::minutes(1), "{age}");
    let stamp = i64::try_from(read.event_id.as_u128() >> 80).expect("48 bits");
    assert!((stamp - read.recorded_at.unix_timestamp() * 1_000).abs() < 60_000, "{stamp}");
}

#[tokio::test]
async fn a_plain_insert_can_not_choose_its_id() {
    let fixture = Fixture::new().await;
    let insert =
        "insert into postrider_event (id, event_type, aggregate_type, aggregate_id, payload) values ";
    for _ in 0..3 {
        fixture.record(event("1")).await;
    }
    for ids in [
        &["3"][..],
        &["0"],
        &["-1"],
        &["5"],
        &["9223372036854775807"],
        &["null", "3"],
        &["null", "null", "9"],
    ] {
        let rows: Vec<String> = ids.iter().map(|id| format!("({id}, 'T', 'A', '1', '{{}}')")).collect();
        for or in ["insert", "insert or replace"] {
            let sql = format!("{}{}", insert.replacen("insert", or, 1), rows.join(", "));
            let refused = sqlx::query(sqlx::AssertSqlSafe(sql.clone())).execute(&fixture.pool).await;
            let kept = fixture.number("select count(*) from postrider_event").await;
            assert_eq!(kept, 3, "{sql}: {refused:?}");
        }
    }
    let several = format!("{insert}(null, 'T', 'A', '1', '{{}}'), (null, 'T', 'A', '2', '{{}}')");
    sqlx::query(sqlx::AssertSqlSafe(several)).execute(&fixture.pool).await.expect("ids are given");
    assert_eq!(fixture.number("select max(id) from postrider_event").await, 5);
}

#[tokio::test]
async fn events_can_not_be_changed_deleted_or_replaced() {
    let fixture = Fixture::new().await;
    let id = fixture.record(event("1")).await;
    let hex = id.simple().to_string();
    for sql in [
        "update postrider_event set payload = '1'".to_owned(),
        "update or ignore postrider_event set sequence = 1".to_owned(),
        "delete from postrider_event".to_owned(),
        format!(
            "insert or replace into postrider_event (event_id, event_type, aggregate_type, aggregate_id, payload)
             values (x'{hex}', 'T', 'A', '1', '1')"
        ),
    ] {
        let refused = sqlx::query(sqlx::AssertSqlSafe(sql.clone())).execute(&fixture.pool).await;
        assert!(refused.expect_err(&sql).to_string().contains("postrider: "), "{sql}");
    }
    assert_eq!(fixture.number("select id = 1 and payload = '{}' from postrider_event").await, 1);
}

#[tokio::test]
async fn bad_input_is_refused_by_the_table_too() {
    let fixture = Fixture::new().await;
    for (columns, values) in [
        ("event_type", "'', 'A', '1', '{}'"),
        ("event_type", "null, 'A', '1', '{}'"),
        ("event_type", "'T' || char(0), 'A', '1', '{}'"),
        ("event_type", "printf('%0201d', 0), 'A', '1', '{}'"),
        ("event_type", "x'ff', 'A', '1', '{}'"),
        ("event_type", "'T', 'A', '1', '{no json'"),
        ("event_type", "'T', 'A', '1', null"),
        ("headers, event_type", "'[]', 'T', 'A', '1', '{}'"),
        ("headers, event_type", "'{', 'T', 'A', '1', '{}'"),
        ("event_id, event_type", "'3f2504e0-4f89-11d3-9a0c-0305e82c3301', 'T', 'A', '1', '{}'"),
        ("event_id, event_type", "x'00', 'T', 'A', '1', '{}'"),
        ("occurred_at, event_type", "'yesterday', 'T', 'A', '1', '{}'"),
        ("occurred_at, event_type", "9223372036854775807, 'T', 'A', '1', '{}'"),
        ("max_attempts, event_type", "0, 'T', 'A', '1', '{}'"),
        ("content_type, event_type", "'text/plain', 'T', 'A', '1', '{}'"),
    ] {
        let sql = format!(
            "insert into postrider_event ({columns}, aggregate_type, aggregate_id, payload) values ({values})"
        );
        assert!(sqlx::query(sqlx::AssertSqlSafe(sql.clone())).execute(&fixture.pool).await.is_err(), "{sql}");
    }
    let not_json = NewEvent { payload: Payload::Json("{\"card\": 4111".into()), ..event("1") };
    let error = fixture.outbox.record_outside_transaction(&not_json).await.expect_err("not JSON");
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Invalid, "record: the payload is not JSON (line 1, column 13)")
    );
    assert!(!format!("{error:?} {:?}", std::error::Error::source(&error)).contains("4111"));
}

#[tokio::test]
async fn text_that_is_not_utf_8_does_not_stop_a_reader() {
    let fixture = Fixture::new().await;
    sqlx::query(
        "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload, headers)
         values (cast(x'ff41' as text), 'A', cast(x'c3' as text), cast(x'22ff22' as text), cast(x'7b2261223a22ff227d' as text))",
    )
    .execute(&fixture.pool)
    .await
    .expect("SQLite takes it");
    let read = only_event(&fixture).await;
    assert_eq!(&*read.event_type, "\u{fffd}A");
}

#[tokio::test]
async fn an_inbox_tells_new_from_seen_in_the_callers_transaction() {
    let fixture = Fixture::new().await;
    let (inbox, other, id) =
        (fixture.outbox.inbox("receipts"), fixture.outbox.inbox("licences"), Uuid::now_v7());
    let mut tx = fixture.outbox.begin().await.expect("begun");
    assert!(inbox.first_time(&mut tx, id).await.expect("noted"));
    tx.rollback().await.expect("rolled back");
    let mut tx = fixture.outbox.begin().await.expect("begun");
    assert!(inbox.first_time(&mut tx, id).await.expect("noted"));
    assert!(!inbox.first_time(&mut tx, id).await.expect("noted"));
    assert!(other.first_time(&mut tx, id).await.expect("noted"));
    assert_eq!(
        fixture.outbox.inbox("").first_time(&mut tx, id).await.expect_err("no name").kind(),
        ErrorKind::Invalid
    );
    tx.commit().await.expect("committed");
    let mut conn = fixture.pool.acquire().await.expect("a connection");
    assert!(!inbox.first_time(&mut conn, id).await.expect("noted"));
}

#[tokio::test]
async fn a_database_in_memory_works_with_one_connection() {
    let pool = sqlx::sqlite::SqlitePoolOptions::new()
        .max_connections(1)
        .connect("sqlite::memory:")
        .await
        .expect("a pool");
    let outbox = Outbox::migrated(&pool).await.expect("migrated");
    let store = outbox.store();
    outbox.record_outside_transaction(&event("1")).await.expect("recorded");
    store.subscribe(&Subscription::new("s")).await.expect("subscribed");
    let lease = store.claim("s", "a", fixture::LEASE).await.expect("claim").expect("free");
    store.bell().wait(std::time::Duration::from_secs(5)).await.expect("waited");
    assert_eq!(store.read(&lease, &lease.position, 10).await.expect("read").events.len(), 1);
}

/// E18: an outbox refuses what its publisher may not record, whichever way it is recorded.
#[tokio::test]
async fn an_outbox_refuses_streams_and_types_that_are_not_allowed() {
    let fixture = Fixture::new().await;
    let builder = Outbox::builder().allowed_streams(["orders"]).allowed_types(["Order*"]);
    let outbox = builder.connect(&fixture.pool).await.expect("outbox");
    let ticker = NewEvent::of("market", "TickerReceived", "Market", "KRW-BTC", &1).expect("JSON");
    let order = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("JSON");
    let refused = outbox.record_outside_transaction(&ticker).await.expect_err("not its stream");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("the stream \"market\" is not allowed"), "{refused}");
    let other = NewEvent { event_type: "TickerReceived".into(), ..order.clone() };
    let mut tx = outbox.begin().await.expect("a transaction");
    assert!(outbox.record(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_once(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_all(&mut tx, &[order.clone(), ticker]).await.is_err(), "one is not its own");
    outbox.record(&mut tx, &order).await.expect("the transaction goes on");
    tx.commit().await.expect("commit");
    assert_eq!(only_event(&fixture).await.event_id, order.event_id);
}
