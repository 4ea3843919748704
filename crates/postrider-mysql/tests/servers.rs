//! What is said of servers that will not do, and what publishers in any language get: on servers of their own.

mod support;

use std::str::FromStr;
use std::time::{Duration, Instant};

use postrider_conformance::TestLog;
use postrider_core::{
    ArchiveOptions, ArchiveTable, Clock, ErrorKind, EventLog, Field, Inspect, NewEvent, OffsetDateTime,
    Operate, Settlement, Severity, Subscription, Sweep, Uuid,
};
use postrider_mysql::Outbox;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{Connection, MySqlConnection, MySqlPool, Row};
use support::{My, run};
use xtask::mariadb::Mariadb;

fn server(settings: &[(&str, &str)]) -> (Mariadb, MySqlConnectOptions) {
    let server = Mariadb::create(settings).expect("a MariaDB");
    let options = MySqlConnectOptions::from_str(&server.url("test")).expect("an address");
    (server, options)
}

fn pool(options: MySqlConnectOptions) -> MySqlPool {
    MySqlPoolOptions::new()
        .max_connections(5)
        .acquire_timeout(Duration::from_secs(3))
        .connect_lazy_with(options)
}

async fn refused(options: MySqlConnectOptions) -> (ErrorKind, String) {
    let error = Outbox::migrated(&pool(options)).await.expect_err("it is refused");
    let said = error.to_string();
    assert!(said.len() < 400 && !said.contains("secret"), "{said}");
    (error.kind(), said)
}

#[tokio::test]
async fn a_replica_and_a_server_without_transactions_are_refused_in_a_sentence() {
    let (_server, options) = server(&[("read-only", "1")]);
    let (kind, said) = refused(options.clone()).await;
    assert_eq!(kind, ErrorKind::Denied);
    assert!(said.contains("read-only") && said.contains("connect to the primary"), "{said}");

    let mut root = MySqlConnection::connect_with(&options).await.expect("the server answers");
    run(&mut root, "set global read_only = 0").await;
    run(&mut root, "set global default_storage_engine = MyISAM").await;
    let (kind, said) = refused(options.clone()).await;
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(said.contains("MyISAM") && said.contains("default_storage_engine = InnoDB"), "{said}");
    run(&mut root, "set global default_storage_engine = InnoDB").await;
    Outbox::migrated(&pool(options)).await.expect("it will do now");
}

#[tokio::test]
async fn missing_privileges_and_a_wrong_login_are_said_so_without_the_password() {
    let (_server, options) = server(&[("log-bin", "1"), ("server-id", "1")]);
    let mut root = MySqlConnection::connect_with(&options).await.expect("the server answers");
    run(&mut root, "create user clerk@'%' identified by 'secret'").await;
    let clerk = options.clone().username("clerk").password("secret");

    let (kind, said) = refused(clerk.clone().password("secret2")).await;
    assert!(kind == ErrorKind::Denied && said.contains("check user and password"), "{said}");
    let (kind, said) = refused(options.clone().database("nowhere")).await;
    assert!(kind == ErrorKind::Denied && said.contains("the database does not exist"), "{said}");
    let (_, said) = refused(MySqlConnectOptions::new().host("127.0.0.1").port(1).username("x")).await;
    assert!(said.contains("does not answer"), "{said}");

    run(&mut root, "drop database test").await;
    run(&mut root, "create database test").await;
    run(&mut root, "delete from mysql.db").await;
    run(&mut root, "flush privileges").await;
    let (kind, said) = refused(clerk.clone()).await;
    assert!(kind == ErrorKind::Denied && said.contains("may not use it"), "{said}");
    run(&mut root, "grant select on test.* to clerk@'%'").await;
    let (kind, said) = refused(clerk.clone()).await;
    assert!(kind == ErrorKind::Denied && said.contains("a privilege is missing; grant"), "{said}");
    run(&mut root, "grant all on test.* to clerk@'%'").await;
    let (kind, said) = refused(clerk.clone()).await;
    assert!(kind == ErrorKind::Denied && said.contains("log_bin_trust_function_creators"), "{said}");
    run(&mut root, "set global log_bin_trust_function_creators = 1").await;
    Outbox::migrated(&pool(clerk)).await.expect("it may do everything now");
}

#[tokio::test]
async fn a_schema_that_is_missing_or_newer_is_named() {
    let log = My::default().my_log(Clock::Database).await;
    log.run("insert into postrider_migration values (99, 'future', utc_timestamp(6))").await;
    let error = Outbox::connect(&log.pool).await.expect_err("too new");
    assert_eq!(error.kind(), ErrorKind::SchemaTooNew, "{error}");
    log.run("delete from postrider_migration where version > 1").await;
    let error = Outbox::connect(&log.pool).await.expect_err("too old");
    assert!(
        error.kind() == ErrorKind::NotMigrated && error.to_string().contains("postrider migrate"),
        "{error}"
    );
    Outbox::migrated(&log.pool).await.expect("what is there may be made again");
    log.run("delete from postrider_migration").await;
    let (one, two, three) =
        tokio::join!(Outbox::migrated(&log.pool), Outbox::migrated(&log.pool), Outbox::migrated(&log.pool));
    assert!(one.is_ok() && two.is_ok() && three.is_ok(), "many may migrate at once");
}

#[tokio::test]
async fn a_counter_behind_the_log_is_noticed_when_it_is_opened() {
    let log = My::default().my_log(Clock::Database).await;
    for n in 0..5 {
        let mut writer = log.begin().await;
        writer.plain_insert(&format!("a{n}"), None).await.expect("insert");
        writer.commit().await.expect("commit");
    }
    log.run("truncate postrider_arrival").await;
    let error = Outbox::connect(&log.pool).await.expect_err("events would get used ids");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let remedy = error.message().split('`').nth(1).expect("what to run").to_owned();
    log.run(&remedy).await;
    Outbox::connect(&log.pool).await.expect("as it said");
}

#[tokio::test]
async fn any_language_records_by_a_procedure_whatever_its_time_zone() {
    let log = My::default().my_log(Clock::Database).await;
    let mut conn = log.pool.acquire().await.expect("a connection");
    run(&mut conn, "set time_zone = '+09:00'").await;
    run(&mut conn, "set names latin1").await;
    run(&mut conn, "call postrider_record('orders', 'OrderPaid', 'Order', '7', '{\"order\":  7}')").await;
    let with = "call postrider_record_with('orders', 'OrderPaid', 'Order', '8', '{}', '{\"source\":\"shop\"}', \
                '018f3c2e-0000-7000-8000-000000000001', '2026-01-02 03:04:05.678901', 'till', true)";
    run(&mut conn, with).await;
    let refused =
        sqlx::query("call postrider_record('orders', 'OrderPaid', 'Order', '7', 'no')").execute(&mut *conn);
    let refused = refused.await.expect_err("no JSON").to_string();
    assert!(refused.contains("postrider: the payload is not JSON"), "{refused}");
    run(&mut conn, "set names utf8mb4").await;
    drop(conn);

    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let lease = store.claim("s", "relay", Duration::from_secs(60)).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    let [plain, rich] = batch.events.as_slice() else { panic!("{batch:?}") };
    assert_eq!(plain.event.payload.as_json(), Some("{\"order\":  7}"));
    assert!((plain.event.recorded_at - OffsetDateTime::now_utc()).abs() < Duration::from_secs(120));
    assert_eq!(plain.event.occurred_at, plain.event.recorded_at);
    assert_eq!(rich.event.event_id.to_string(), "018f3c2e-0000-7000-8000-000000000001");
    assert_eq!((rich.event.key().as_ref(), rich.event.sequence), ("till", Some(1)));
    assert_eq!(rich.event.occurred_at.unix_timestamp_nanos(), 1_767_323_045_678_901_000);
    assert_eq!(rich.event.headers.source(), Some("shop"));
}

#[tokio::test]
async fn the_view_shows_what_has_no_number_yet_as_pending() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s").streams(["ord*"]).lanes(3)).await.expect("subscribe");
    // Nobody gives numbers while somebody has them.
    let mut held = log.pool.begin().await.expect("begin");
    let lock = sqlx::query("select one from postrider_numbering for update");
    lock.fetch_all(&mut *held).await.expect("the numbers");
    for stream in ["orders", "others", "ORDERS"] {
        let mut writer = log.begin().await;
        writer.record(&NewEvent::of(stream, "T", "A", "1", &1).expect("JSON")).await.expect("record");
        writer.commit().await.expect("commit");
    }
    let look = "select stream, state, id is null from postrider_event_state";
    let rows = sqlx::query(look).fetch_all(&log.pool).await.expect("the view");
    let shown: Vec<(String, String, bool)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get::<i32, _>(2) == 1)).collect();
    assert_eq!(shown, [("orders".to_owned(), "pending".to_owned(), true)]);
    held.rollback().await.expect("rollback");
}

/// An idle process asks four times a second, however many bells it has, and hears another's event within a quarter of a
/// second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_relay_asks_seldom_and_hears_soon() {
    let (_server, options) = server(&[]);
    let log = My::default().log_on(options, Clock::Database).await;
    let store = log.second().await;
    let asked = async || -> i64 {
        let row = sqlx::query("show global status like 'Com_call_procedure'").fetch_one(&log.pool).await;
        row.expect("a count").get::<String, _>(1).parse().expect("a number")
    };
    let mut bells: Vec<_> = (0..6).map(|_| store.bell()).collect();
    for bell in &mut bells {
        bell.wait(Duration::from_secs(60)).await.expect("the first wait says to look");
    }
    let window = Duration::from_secs(6);
    let rest = async |bells: &mut Vec<Box<dyn postrider_core::Bell>>| {
        let waits = bells.iter_mut().map(|bell| bell.wait(Duration::from_secs(60)));
        tokio::time::timeout(window, futures_join(waits)).await
    };
    assert!(rest(&mut bells).await.is_err(), "nothing happens");
    let before = asked().await;
    assert!(rest(&mut bells).await.is_err(), "nothing happens");
    let often = asked().await - before;
    assert!((10..=36).contains(&often), "{often} times in {window:?}");

    for round in 0..5 {
        let mut writer = log.begin().await;
        writer.record(&NewEvent::of("s", "T", "A", "1", &round).expect("JSON")).await.expect("record");
        let begun = Instant::now();
        writer.commit().await.expect("commit");
        bells[0].wait(Duration::from_secs(60)).await.expect("wait");
        assert!(begun.elapsed() < Duration::from_secs(1), "round {round}: {:?}", begun.elapsed());
    }
}

async fn futures_join<F: Future>(futures: impl Iterator<Item = F>) {
    let mut all: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[tokio::test]
async fn the_checks_know_the_pitfalls_of_this_server() {
    let (_server, options) = server(&[
        ("log-bin", "1"),
        ("server-id", "1"),
        ("binlog-format", "STATEMENT"),
        ("innodb-autoinc-lock-mode", "0"),
        ("default-time-zone", "+02:00"),
        ("transaction-isolation", "READ-UNCOMMITTED"),
        ("max-allowed-packet", "1M"),
    ]);
    let mut root = MySqlConnection::connect_with(&options).await.expect("the server answers");
    run(&mut root, "set global binlog_format = ROW").await;
    let log = My { isolation: "repeatable read", ..My::default() }.log_on(options, Clock::Database).await;
    log.run("create table postrider_stranger (n int) engine = MyISAM").await;
    let checks =
        log.patched().checks(OffsetDateTime::now_utc() - Duration::from_secs(60)).await.expect("checks");
    let verdict = |name: &str| checks.iter().find(|check| check.name == name).expect(name).severity;
    for name in ["auto-increment", "time zone", "isolation", "packet", "clock"] {
        assert_eq!(verdict(name), Severity::Warn, "{name}: {checks:?}");
    }
    assert_eq!(verdict("engine"), Severity::Bad);
    assert_eq!(verdict("binary log"), Severity::Good);
    assert_eq!(verdict("locking"), Severity::Good);
    assert!(checks.iter().all(|check| (check.severity == Severity::Good) == check.remedy.is_none()));
}

#[tokio::test]
async fn events_are_archived_into_a_table_of_the_application_as_its_columns_take_them() {
    let log = My::default().my_log(Clock::Database).await;
    log.run(
        "create table `audit log` (n bigint auto_increment primary key, event char(36) not null, raw binary(16) not null, \
         happened datetime(6) not null, filed bigint not null, said varchar(40) not null, body longtext)",
    )
    .await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let event = NewEvent::of("s", "T", "A", "1", &1).expect("JSON");
    let mut writer = log.begin().await;
    writer.record(&event).await.expect("record");
    writer.commit().await.expect("commit");
    let mut lease = store.claim("s", "relay", Duration::from_secs(60)).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settle");

    let archiving = |columns: &[(&str, Field)]| {
        let columns = columns.iter().map(|(column, field)| ((*column).to_owned(), *field));
        ArchiveOptions {
            target: Some(ArchiveTable::new("audit log", columns).expect("a target")),
            ..ArchiveOptions::default()
        }
    };
    let some = [("event", Field::EventId), ("raw", Field::EventId), ("happened", Field::OccurredAt)];
    let refused = store.check_archive(&archiving(&some)).await.expect_err("more is needed");
    assert!(
        refused.message().contains("\"filed\"") && refused.message().contains("must have a value"),
        "{refused}"
    );
    let rest = [("filed", Field::ArchivedAt), ("said", Field::RecordedAt), ("body", Field::Payload)];
    let archiving = archiving(&[some, rest].concat());
    store.check_archive(&archiving).await.expect("it will do");
    let sweep = Sweep::Archive { older_than: Duration::ZERO, limit: 10, archiving };
    assert_eq!(store.sweep(&sweep).await.expect("archive").taken, 1);
    let row = sqlx::query(
        "select event = lower(concat(substr(hex(raw), 1, 8), '-', substr(hex(raw), 9, 4), '-', substr(hex(raw), 13, 4), '-', \
                            substr(hex(raw), 17, 4), '-', substr(hex(raw), 21))), raw, body, said, \
                timestampdiff(second, happened, utc_timestamp(6)) < 120 and filed > 1700000000000000 \
         from `audit log`",
    );
    let row = row.fetch_one(&log.pool).await.expect("one row");
    assert!(row.get::<bool, _>(0) && row.get::<bool, _>(4));
    assert_eq!((row.get::<Uuid, _>(1), row.get::<String, _>(2).as_str()), (event.event_id, "1"));
    assert!(row.get::<String, _>(3).ends_with('Z'));
    assert_eq!(log.count("postrider_event").await + log.count("postrider_run").await, 0);
    assert_eq!(log.count("postrider_archive").await, 0);
}

/// A subscriber fills the table as well. Its rows stay as they are, and nothing else is skipped.
#[tokio::test]
async fn events_that_a_subscriber_has_stored_already_are_skipped() {
    let log = My::default().my_log(Clock::Database).await;
    log.run("create table audit (id char(36) not null, which varchar(40) unique, body longtext, key two (id, which))").await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let columns = [("id", Field::EventId), ("which", Field::AggregateId), ("body", Field::Payload)];
    let columns = columns.map(|(column, field)| (column.to_owned(), field));
    let fails = ArchiveTable::new("audit", columns).expect("a target");
    let archiving = |target| ArchiveOptions { target: Some(target), ..ArchiveOptions::default() };
    let skips = archiving(fails.clone().skip_existing());
    let error = store.check_archive(&skips).await.expect_err("two rows may have one id");
    assert!(error.message().contains("\"id\"") && error.message().contains("must be unique"), "{error}");
    log.run("create unique index one on audit (id)").await;
    store.check_archive(&skips).await.expect("it fits");
    let mut ids = Vec::new();
    let mut lease = store.claim("s", "relay", Duration::from_secs(60)).await.expect("claim").expect("a lane");
    let record = async |aggregate: &str, lease: &mut postrider_core::Lease| {
        let event = NewEvent::of("s", "T", "A", aggregate, &1).expect("JSON");
        let mut writer = log.begin().await;
        writer.record(&event).await.expect("record");
        writer.commit().await.expect("commit");
        let batch = store.read(lease, &lease.position, 10).await.expect("read");
        store.settle(lease, &Settlement::of(&batch)).await.expect("settle");
        event.event_id
    };
    for aggregate in ["a", "b"] {
        ids.push(record(aggregate, &mut lease).await);
    }
    log.run(&format!("insert into audit values ('{}', 'by the subscriber', 'own')", ids[0])).await;
    log.run("insert into audit values (uuid(), 'c', 'of something else')").await;
    let sweep = |archiving| Sweep::Archive { older_than: Duration::ZERO, limit: 10, archiving };
    store.sweep(&sweep(archiving(fails))).await.expect_err("without the setting the batch fails");
    assert_eq!(store.sweep(&sweep(skips.clone())).await.expect("archive").taken, 2);
    let rows = sqlx::query_scalar("select cast(concat(which, '=', body) as char) from audit order by 1");
    let rows: Vec<String> = rows.fetch_all(&log.pool).await.expect("rows");
    assert_eq!(rows, ["b=1", "by the subscriber=own", "c=of something else"]);
    record("c", &mut lease).await;
    store.sweep(&sweep(skips)).await.expect_err("another unique column is no reason to skip");
    assert_eq!(log.count("postrider_event").await, 1, "and nothing is gone");
}
