//! The schema: many migrators, old and new versions, and a log that went back.

mod fixture;

use std::time::Duration;

use fixture::{Database, Fixture, event};
use postrider_core::{
    DeliveryChange, DeliveryFailure, ErrorKind, EventLog, LeaseStatus, OnDead, Operate, ResolveDead,
    Settlement, Subscription,
};
use postrider_sqlite::{Outbox, schema_version};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_migrators_at_once_migrate_once() {
    let database = Database::new();
    let mut migrators = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let options = database.options();
        migrators.spawn(async move {
            let pool = sqlx::SqlitePool::connect_with(options).await.expect("a pool");
            Outbox::migrated(&pool).await.map(drop)
        });
    }
    while let Some(migrated) = migrators.join_next().await {
        migrated.expect("no panic").expect("migrated");
    }
    let pool = database.pool().await;
    Outbox::migrated(&pool).await.expect("again");
    let applied: i64 =
        sqlx::query_scalar("select count(*) from postrider_migration").fetch_one(&pool).await.expect("rows");
    assert_eq!(applied, schema_version(&pool).await.expect("a version"));
    let mode: String = sqlx::query_scalar("pragma journal_mode").fetch_one(&pool).await.expect("a mode");
    assert_eq!(mode, "wal");
}

/// An insert is refused by an SQLite that lacks a function of the table's defaults or triggers, whether it is called or not.
/// Debian 12 has 3.40, and Python uses that.
#[tokio::test]
async fn a_publisher_with_an_old_sqlite_finds_no_function_that_it_lacks() {
    let database = Database::new();
    let pool = database.pool().await;
    Outbox::migrated(&pool).await.expect("migrated");
    let schema: Vec<String> = sqlx::query_scalar(
        "select lower(sql) from sqlite_master where tbl_name = 'postrider_event' and sql is not null",
    )
    .fetch_all(&pool)
    .await
    .expect("the schema");
    assert!(schema.iter().any(|sql| sql.contains("randomblob(")), "{schema:?}");
    let said = schema.iter().flat_map(|sql| sql.lines()).filter(|line| !line.trim_start().starts_with("--"));
    let said: String = said.collect();
    for newer in ["unhex(", "concat(", "concat_ws(", "string_agg(", "octet_length(", "timediff(", "jsonb("] {
        assert!(!said.contains(newer), "{newer} is younger than 3.40");
    }
}

#[tokio::test]
async fn a_database_without_tables_is_not_migrated() {
    let database = Database::new();
    let pool = database.pool().await;
    let error = Outbox::connect(&pool).await.expect_err("no tables");
    assert_eq!(error.kind(), ErrorKind::NotMigrated);
    assert!(error.to_string().contains("postrider migrate"), "{error}");
    assert_eq!(schema_version(&pool).await.expect("a version"), 0);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let fixture = Fixture::new().await;
    sqlx::query("insert into postrider_migration (version, name) values (99, 'future')")
        .execute(&fixture.pool)
        .await
        .expect("the future");
    for error in [Outbox::connect(&fixture.pool).await, Outbox::migrated(&fixture.pool).await] {
        let error = error.expect_err("too new");
        assert_eq!(error.kind(), ErrorKind::SchemaTooNew);
        assert!(error.to_string().contains("version 99"), "{error}");
    }
}

#[tokio::test]
async fn tables_that_vanish_are_reported_as_not_migrated() {
    let fixture = Fixture::new().await;
    sqlx::raw_sql(
        "drop view postrider_event_state; drop view postrider_event_standing; drop table postrider_event",
    )
    .execute(&fixture.pool)
    .await
    .expect("dropped");
    let error = fixture.outbox.record_outside_transaction(&event("1")).await.expect_err("no table");
    assert_eq!(error.kind(), ErrorKind::NotMigrated);
}

/// The schema as it was before there was an index for looks.
const BEFORE_LOOKS: &str = "drop trigger postrider_delivery_place; drop trigger postrider_delivery_place_again; \
     drop trigger postrider_delivery_gone; drop index postrider_delivery_look; drop index postrider_delivery_lane; \
     alter table postrider_delivery drop column lane; alter table postrider_delivery drop column look_at; \
     create index postrider_delivery_blocking on postrider_delivery (subscription, key, id) \
         where holds and state in ('running', 'retrying', 'dead'); \
     create index postrider_delivery_next on postrider_delivery (subscription, next_at) where state = 'retrying'; \
     alter table postrider_lane drop column away; alter table postrider_lane drop column away_since; \
     alter table postrider_delivery drop column past; \
     drop table postrider_relay; alter table postrider_subscription drop column paused_at; \
     alter table postrider_subscription drop column paused_by; alter table postrider_subscription drop column paused_why; \
     drop trigger postrider_event_limit; drop table postrider_setting; delete from postrider_migration where version > 4";

#[tokio::test]
async fn deliveries_that_were_open_before_the_index_of_looks_are_found_by_it() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s").on_dead(OnDead::Hold)).await;
    let mut lease = fixture.hold().await;
    for key in ["now", "later", "never", "now", "later", "never"] {
        fixture.record(event(key)).await;
    }
    let batch = fixture.store.read(&lease, &lease.position, 100).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    let failure = || DeliveryFailure::new("refused", "not now");
    settlement.deliveries = batch
        .events
        .iter()
        .enumerate()
        .map(|(n, read)| match n {
            0 => DeliveryChange::retrying(&read.event, 1, Duration::ZERO, failure()),
            1 => DeliveryChange::retrying(&read.event, 1, Duration::from_secs(3600), failure()),
            2 => DeliveryChange::dead(&read.event, 1, failure()),
            _ => DeliveryChange::waiting(&read.event),
        })
        .collect();
    assert_eq!(fixture.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    fixture.store.release(lease).await.expect("release");
    sqlx::raw_sql(BEFORE_LOOKS).execute(&fixture.pool).await.expect("the version before");
    Outbox::migrated(&fixture.pool).await.expect("migrated");

    let lease = fixture.hold().await;
    let keys_due = async || -> Vec<String> {
        let due = fixture.store.due(&lease, 100).await.expect("due").deliveries;
        due.into_iter().map(|due| due.event.aggregate_id).collect()
    };
    assert_eq!(keys_due().await, ["now", "now"]);
    let next = fixture.store.due(&lease, 100).await.expect("due").next_in;
    assert_eq!(next, Some(Duration::from_secs(3600)));
    let discard = ResolveDead::Discard { subscription: "s".into(), events: Vec::new() };
    assert_eq!(fixture.store.resolve_dead(&discard).await.expect("resolve"), 1);
    assert_eq!(keys_due().await, ["now", "now", "never"]);
}

#[tokio::test]
async fn a_read_only_database_denies() {
    let fixture = Fixture::new().await;
    let options = fixture.database.options().read_only(true).create_if_missing(false);
    let pool = sqlx::SqlitePool::connect_with(options).await.expect("a pool");
    let outbox = Outbox::connect(&pool).await.expect("readable");
    let error = outbox.record_outside_transaction(&event("1")).await.expect_err("read-only");
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn a_file_that_can_not_be_opened_is_unreachable_and_named() {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename("/nonexistent/folder/outbox.db");
    let pool = sqlx::sqlite::SqlitePoolOptions::new().connect_lazy_with(options);
    let error = Outbox::connect(&pool).await.expect_err("no file");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error:?}");
    assert!(error.to_string().contains("the file /nonexistent/folder/outbox.db"), "{error}");
}

#[tokio::test]
async fn a_log_that_ends_before_its_readers_is_corrupt() {
    let fixture = Fixture::new().await;
    fixture.record(event("1")).await;
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    fixture.drain(&mut lease).await;
    fixture.clock.advance(std::time::Duration::from_secs(60));
    let sweep = postrider_core::Sweep::Prune { older_than: std::time::Duration::ZERO, limit: 10 };
    assert_eq!(fixture.store.sweep(&sweep).await.expect("swept").taken, 1);
    sqlx::query("delete from sqlite_sequence").execute(&fixture.pool).await.expect("forgotten");
    assert_eq!(Outbox::connect(&fixture.pool).await.expect_err("gone back").kind(), ErrorKind::Corrupt);
}
