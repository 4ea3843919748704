//! Archived events in a table of the application.

use std::time::Duration;

use postrider_conformance::relay::{drain, event};
use postrider_core::{
    ArchiveOptions, ArchiveTable, Clock, ErrorKind, EventLog, Field, Inspect, Mask, NewEvent, Operate,
    Payload, Sweep, Uuid,
};
use postrider_postgres::Outbox;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Row};

use super::{DAY, archive, settled};
use crate::support::{Pg, PgLog, server};

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
    let archiving = every_field(&table);
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
    assert_entries(&log, json.event_id).await;

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

fn every_field(table: &str) -> ArchiveOptions {
    target(
        table,
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
    )
}

/// Both events are in the table, this one first, and nowhere else.
async fn assert_entries(log: &PgLog, first: Uuid) {
    let rows = sqlx::query(log.sql(
        "select id, \"Kind\", key, number, body::text, format, raw, by, entry from {schema}_audit.\"Entries \"\"new\"\"\" order by no",
    ));
    let rows = rows.fetch_all(&log.pool).await.expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].get::<Uuid, _>(0), first);
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
}

/// U12: a subscriber fills the table as well. Its rows stay as they are, and nothing else is skipped.
#[tokio::test]
async fn events_that_a_subscriber_has_stored_already_are_skipped() {
    let (log, clock) = settled(0).await;
    let table = format!("{}_audit.events", log.schema);
    log.run("create schema {schema}_audit; create table {schema}_audit.events (id uuid, which text unique, body text)")
        .await;
    let fails =
        target(&table, &[("id", Field::EventId), ("which", Field::AggregateId), ("body", Field::Payload)]);
    let skips =
        ArchiveOptions { target: fails.target.clone().map(ArchiveTable::skip_existing), ..fails.clone() };
    let error = log.store.check_archive(&skips).await.expect_err("two rows may have one id");
    assert!(error.message().contains("\"id\"") && error.message().contains("must be unique"), "{error}");
    log.run("create unique index on {schema}_audit.events (id)").await;
    log.store.check_archive(&skips).await.expect("it fits");
    let mut ids = Vec::new();
    for aggregate in ["a", "b", "c"] {
        let event = NewEvent::of("orders", "OrderPaid", "Order", aggregate, &1).expect("JSON");
        log.outbox.record_outside_transaction(&event).await.expect("record");
        ids.push(event.event_id);
        drain(&log.store, "s").await;
        clock.advance(DAY / 2);
    }
    let stored =
        sqlx::query(log.sql("insert into {schema}_audit.events values ($1, 'by the subscriber', 'own')"));
    stored.bind(ids[0]).execute(&log.pool).await.expect("stored");
    log.run("insert into {schema}_audit.events values (gen_random_uuid(), 'c', 'of something else')").await;
    // a and b are old enough.
    log.store.sweep(&archive(fails)).await.expect_err("without the setting the batch fails");
    assert_eq!(log.store.sweep(&archive(skips.clone())).await.expect("archive").taken, 2);
    let rows: Vec<String> =
        sqlx::query_scalar(log.sql("select which || '=' || body from {schema}_audit.events order by 1"))
            .fetch_all(&log.pool)
            .await
            .expect("rows");
    assert_eq!(rows, ["b=1", "by the subscriber=own", "c=of something else"]);
    clock.advance(DAY);
    log.store.sweep(&archive(skips)).await.expect_err("another unique column is no reason to skip");
    let left: Vec<Uuid> = sqlx::query_scalar(log.sql("select event_id from {schema}.event"))
        .fetch_all(&log.pool)
        .await
        .expect("ids");
    assert_eq!(left, ids[2..], "and nothing is gone");
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
