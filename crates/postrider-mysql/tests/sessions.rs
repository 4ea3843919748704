//! Whatever a server is set to, the relay's sessions have what they need, and the application's keep what they have.

mod support;

use std::str::FromStr;
use std::task::Poll;
use std::time::Duration;

use postrider_core::{Clock, Effect, EventLog, NewEvent, OutboxSource, Settlement, Subscription};
use postrider_mysql::Outbox;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{MySqlPool, Row};
use support::{My, run};
use xtask::mariadb::Mariadb;

/// The names that one server or the other has for them.
const SETTINGS: &str = "show session variables where variable_name in ('autocommit', 'sql_mode', 'time_zone', 'tx_isolation', \
     'tx_read_only', 'transaction_isolation', 'transaction_read_only')";

async fn settings(pool: &MySqlPool) -> String {
    let rows = sqlx::query(SETTINGS).fetch_all(pool).await.expect("its settings");
    let settings: Vec<String> =
        rows.iter().map(|row| format!("{}={}", row.get::<String, _>(0), row.get::<String, _>(1))).collect();
    settings.join(" ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_works_whatever_sessions_are_set_to_and_leaves_the_applications_alone() {
    // MySQL has no mode of that name.
    let mode = if Mariadb::is_mysql() { "ANSI" } else { "ORACLE" };
    let server = Mariadb::create(&[
        ("autocommit", "0"),
        ("transaction-read-only", "1"),
        ("transaction-isolation", "SERIALIZABLE"),
        ("default-time-zone", "+09:00"),
        ("sql-mode", &format!("{mode},NO_AUTO_VALUE_ON_ZERO")),
    ])
    .expect("a MariaDB");
    let options = MySqlConnectOptions::from_str(&server.url("test")).expect("an address");
    // One session, so that it is the one that everything of the application goes through.
    let options = options.timezone(None).pipes_as_concat(false).no_engine_substitution(false);
    let pool = MySqlPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let before = settings(&pool).await;
    for setting in ["autocommit=OFF", "_read_only=ON", "SERIALIZABLE", mode] {
        assert!(before.contains(setting), "{setting}: {before}");
    }

    let outbox = Outbox::migrated(&pool).await.expect("migrated");
    let outbox_again = Outbox::connect(&pool).await.expect("it was committed");
    let store = outbox_again.store();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let event = NewEvent::of("s", "T", "A", "1", &1).expect("JSON");
    outbox.record_outside_transaction(&event).await.expect("record");
    let lease = Duration::from_secs(60);
    let mut lease = store.claim("s", "relay", lease).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    assert_eq!(batch.events.iter().map(|read| read.event.event_id).collect::<Vec<_>>(), [event.event_id]);
    store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settle");
    assert_eq!(settings(&pool).await, before, "the application's session is as it was");
}

/// A procedure is made with the settings of who makes it: those of the migration, and not of the application.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_migration_makes_does_not_depend_on_the_sessions_mode() {
    let log = My::default().my_log(Clock::Database).await;
    log.run("drop procedure postrider_clear").await;
    let options = log.pool.connect_options().as_ref().clone();
    let pool = MySqlPoolOptions::new().max_connections(1).connect_lazy_with(options);
    run(
        &mut pool.acquire().await.expect("a connection"),
        "set sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    )
    .await;
    Outbox::migrated(&pool).await.expect("repaired");
    let modes = "select distinct sql_mode from information_schema.routines where routine_schema = database()";
    let modes = sqlx::query(modes).fetch_all(&log.pool).await.expect("modes");
    let modes: Vec<String> = modes.iter().map(|row| row.get(0)).collect();
    assert!(
        matches!(modes.as_slice(), [one] if one.contains("STRICT_TRANS_TABLES") && !one.contains("ANSI")),
        "{modes:?}"
    );
}

/// Whoever waits for a read may be called away in the middle of it; the next one must not be in its transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_dropped_half_way_leaves_no_transaction_behind() {
    let log = My::default().my_log(Clock::Database).await;
    let outbox = Outbox::connect(&log.pool).await.expect("an outbox");
    let store = outbox.store();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let mut lease = store.claim("s", "relay", Duration::from_secs(60)).await.expect("claim").expect("a lane");
    let mut dropped = 0;
    for round in 0..400 {
        // After so many steps it is left.
        let (mut steps, called) = (round % 40, lease.clone());
        let mut due = Box::pin(store.due(&called, 10));
        let left = std::future::poll_fn(|context| {
            steps -= 1;
            if steps < 0 { Poll::Ready(true) } else { due.as_mut().poll(context).map(|_| false) }
        });
        dropped += u32::from(left.await);
        drop(due);
        store.due(&lease, 10).await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let status = store.extend(&mut lease, Duration::from_secs(60), None).await;
        status.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    // How many steps it takes depends on how fast the server answers.
    assert!(dropped > 20, "{dropped} were dropped");
}

/// A handler's transaction is begun on a connection of the application: who is called away in the middle leaves it no transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_begin_of_a_handler_that_is_dropped_half_way_leaves_no_transaction_behind() {
    let log = My::default().my_log(Clock::Database).await;
    let options = log.pool.connect_options().as_ref().clone();
    let pool = MySqlPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let outbox = Outbox::connect(&pool).await.expect("an outbox");
    let mut dropped = 0;
    for round in 0..400 {
        let mut steps = round % 10;
        let effect = Effect { lease: None, consumer: "c", events: &[], timeout: Duration::from_secs(30) };
        let mut begin = Box::pin(outbox.begin(effect));
        let left = std::future::poll_fn(|context| {
            steps -= 1;
            if steps < 0 { Poll::Ready(true) } else { begin.as_mut().poll(context).map(|_| false) }
        });
        dropped += u32::from(left.await);
        drop(begin);
        sqlx::query("insert into touched values (1)").execute(&pool).await.expect("insert");
        assert_eq!(log.count("touched").await, round + 1, "the application's own is committed");
    }
    // How many steps it takes depends on how fast the server answers.
    assert!(dropped > 20, "{dropped} were dropped");
}
