//! Poolers that share sessions: they are found, nothing of ours stays behind in them, and the bell goes around them.

mod support;

use std::time::{Duration, Instant};

use postrider_conformance::relay::{drain, event, ids};
use postrider_core::{
    ArchiveOptions, Check, Effect, Error, EventLog, Inspect, OffsetDateTime, Operate, OutboxSource, Replay,
    ReplayFrom, ResolveDead, Severity, StateQuery, Subscription, Sweep,
};
use postrider_postgres::{Outbox, PgStore, Pooler, StoreOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, PgPool, Row};
use support::{Database, new_database, pooler};
use xtask::pgbouncer::Pgbouncer;

/// A pooler of a test's own in front of the server, with few sessions.
fn few(sessions: u32, mode: &str) -> Pgbouncer {
    let server = support::server();
    let place = format!("{}:{}", server.get_host(), server.get_port());
    let sessions = sessions.to_string();
    Pgbouncer::before(&place, &[("default_pool_size", &sessions), ("pool_mode", mode)]).expect("a PgBouncer")
}

fn through(pooler: &Pgbouncer, database: &Database) -> PgConnectOptions {
    database.options().host("127.0.0.1").port(pooler.port()).extra_float_digits(None)
}

async fn connect(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new().max_connections(20).connect_with(options).await.expect("connect")
}

/// What is found between a store and its server.
async fn found(store: &PgStore) -> String {
    pooler_of(&store.checks(OffsetDateTime::now_utc()).await.expect("checks"))
}

fn pooler_of(checks: &[Check]) -> String {
    checks.iter().find(|check| check.name == "pooler").expect("a finding").what.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_is_found_by_its_mode_and_however_many_sessions_it_has() {
    let database = new_database("UTF8").await;
    let direct = Outbox::migrated(&connect(database.options()).await).await.expect("migrate");
    assert!(found(&direct.store().await.expect("store")).await.starts_with("none"));
    for (sessions, mode, expected) in [
        (1, "transaction", "one in transaction mode"),
        (20, "transaction", "one in transaction mode"),
        (60, "session", "none"),
    ] {
        let pooler = few(sessions, mode);
        let outbox = Outbox::connect(&connect(through(&pooler, &database)).await).await.expect("connect");
        let options = StoreOptions { connections: 2, ..StoreOptions::default() };
        let found = found(&outbox.store_with(&options).await.expect("store")).await;
        assert!(found.starts_with(expected), "{sessions} sessions in {mode} mode: {found}");
    }
}

/// Others take sessions and give them back in between, so that one may get its own back by chance.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_is_found_while_others_use_it() {
    let database = new_database("UTF8").await;
    Outbox::migrated(&connect(database.options()).await).await.expect("migrate");
    let pooler = few(10, "transaction");
    let address = through(&pooler, &database);
    let busy: Vec<_> = (0..8)
        .map(|n| {
            let address = address.clone();
            tokio::spawn(async move {
                let mut connection = PgConnection::connect_with(&address).await.expect("connect");
                loop {
                    connection.execute(sqlx::raw_sql("begin; select pg_sleep(0.002)")).await.expect("begin");
                    connection.execute(sqlx::raw_sql("commit")).await.expect("commit");
                    tokio::time::sleep(Duration::from_millis(n)).await;
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let pool = connect(address.clone()).await;
        let outbox = Outbox::connect(&pool).await.expect("connect");
        let store = outbox.store().await.expect("store");
        assert!(found(&store).await.starts_with("one in transaction mode"));
        store.pool().close().await;
        pool.close().await;
    }
    busy.iter().for_each(|task| assert!(!task.is_finished(), "it was busy all the time"));
    busy.into_iter().for_each(|task| task.abort());
}

/// What a session that the application gets may not have from us.
async fn traces(sessions: u32, address: &PgConnectOptions) -> Vec<String> {
    // As many transactions at once as there are sessions: each is seen.
    let mut connections = Vec::new();
    for _ in 0..sessions {
        let mut connection = PgConnection::connect_with(address).await.expect("connect");
        connection.execute(sqlx::raw_sql("begin; do $$ begin end $$")).await.expect("begin");
        connections.push(connection);
    }
    let mut seen = Vec::new();
    for connection in &mut connections {
        let row = connection.fetch_one(sqlx::raw_sql(
            "select (select string_agg(name || '=' || setting, ' ' order by name) from pg_settings), \
             (select count(*) from pg_prepared_statements)::text, \
             (select string_agg(channel, ' ') from pg_listening_channels() as channel), \
             (select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory')::text, \
             current_setting('transaction_isolation') || current_setting('transaction_read_only'), \
             (select string_agg(relname, ' ') from pg_class where relnamespace = pg_my_temp_schema()), \
             (select count(*) from pg_cursors)::text",
        ));
        let row = row.await.expect("a session");
        seen.push(
            (0..7)
                .map(|n| row.get::<Option<String>, _>(n).unwrap_or_default())
                .collect::<Vec<_>>()
                .join("\n"),
        );
        connection.execute(sqlx::raw_sql("rollback")).await.expect("rollback");
    }
    seen.sort_unstable();
    seen
}

/// Everything that a publisher, a relay, a handler and an operator do.
async fn work(pool: &PgPool, outbox: &Outbox, store: &PgStore) {
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut recorded = Vec::new();
    for n in 0..40 {
        let mut tx = pool.begin().await.expect("begin");
        recorded.push(
            outbox.record(&mut tx, &event(&format!("a{}", n % 5), n).sequenced()).await.expect("record"),
        );
        tx.commit().await.expect("commit");
    }
    outbox.record_outside_transaction(&event("alone", 1)).await.expect("record");
    assert_eq!(ids(&drain(store, "s").await).len(), 41);
    let effect = Effect { consumer: "c", events: &recorded, lease: None, timeout: Duration::from_secs(10) };
    let (transaction, first) = outbox.begin(effect).await.expect("a handler's transaction");
    assert_eq!(first, vec![true; 40]);
    Outbox::commit(transaction).await.expect("commit");
    assert_eq!(outbox.handled("c", &recorded).await.expect("handled"), vec![true; 40]);
    let mut bell = store.bell();
    bell.wait(Duration::from_millis(20)).await.expect("wait");
    store.states(&StateQuery::default()).await.expect("states");
    store.figures("s").await.expect("figures");
    let replay = Replay {
        subscription: "s".into(),
        from: ReplayFrom::Event(recorded[0]),
        effects_may_repeat: true,
        dry_run: false,
    };
    store.replay(&replay).await.expect("replay");
    assert_eq!(drain(store, "s").await.len(), 41);
    store
        .resolve_dead(&ResolveDead::Requeue { subscription: "s".into(), events: Vec::new() })
        .await
        .expect("requeue");
    let sweep =
        Sweep::Archive { older_than: Duration::ZERO, limit: 100, archiving: ArchiveOptions::default() };
    assert_eq!(store.sweep(&sweep).await.expect("archive").taken, 41);
    for check in store.checks(OffsetDateTime::now_utc()).await.expect("checks") {
        assert_ne!(check.severity, Severity::Bad, "{check:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_the_application_have_no_trace_of_a_relay_on_the_same_pooler() {
    const SESSIONS: u32 = 4;
    let database = new_database("UTF8").await;
    let pooler = few(SESSIONS, "transaction");
    let address = through(&pooler, &database);
    let before = traces(SESSIONS, &address).await;
    let pool = connect(address.clone()).await;
    let outbox = Outbox::migrated(&pool).await.expect("migrate");
    let store = outbox.store().await.expect("store");
    work(&pool, &outbox, &store).await;
    assert_eq!(traces(SESSIONS, &address).await, before);
}

/// Somebody gave the wrong address: what would be left behind is a LISTEN in a session of the application.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens_at_an_address_that_leads_to_a_pooler() {
    const SESSIONS: u32 = 4;
    let database = new_database("UTF8").await;
    let pooler = few(SESSIONS, "transaction");
    let address = through(&pooler, &database);
    let before = traces(SESSIONS, &address).await;
    let outbox = Outbox::migrated(&connect(address.clone()).await).await.expect("migrate");
    let options = StoreOptions { listen: Some(address.clone()), ..StoreOptions::default() };
    let store = outbox.store_with(&options).await.expect("store");
    let checks = store.checks(OffsetDateTime::now_utc()).await.expect("checks");
    let bell = checks.iter().find(|check| check.name == "bell").expect("a finding");
    assert_eq!(bell.severity, Severity::Warn, "{bell:?}");
    drop(store);
    assert_eq!(traces(SESSIONS, &address).await, before);
}

/// Without LISTEN: looks follow each other quickly while there is work, and rarely when there has been none for a while.
#[tokio::test(flavor = "multi_thread")]
async fn polling_follows_the_work() {
    let longest = Duration::from_millis(400);
    let database = new_database("UTF8").await;
    let pooler = few(4, "transaction");
    let outbox = Outbox::migrated(&connect(through(&pooler, &database)).await).await.expect("migrate");
    let store = outbox.store().await.expect("store");
    let checks = store.checks(OffsetDateTime::now_utc()).await.expect("checks");
    let bell = checks.iter().find(|check| check.name == "bell").expect("a finding");
    assert!(bell.what.contains("events wait for the next poll"), "{bell:?}");
    assert!(bell.remedy.as_ref().is_some_and(|fix| fix.contains("store.listen_url")), "{bell:?}");
    let mut bell = store.bell();
    let mut naps = Vec::new();
    for _ in 0..14 {
        let began = Instant::now();
        bell.wait(longest).await.expect("wait");
        naps.push(began.elapsed());
    }
    assert!(naps[..3].iter().min().is_some_and(|nap| *nap < longest / 4), "quick at first: {naps:?}");
    assert!(naps[11..].iter().all(|nap| *nap >= longest), "rare after a while: {naps:?}");
    bell.worked();
    let began = Instant::now();
    bell.wait(longest).await.expect("wait");
    assert!(began.elapsed() < longest, "quick again: {:?}", began.elapsed());
}

/// One that was told that there is no pooler learns better by the first statement that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_was_denied_is_known_by_its_errors_and_ends_nobody() {
    let database = new_database("UTF8").await;
    let pooler = few(4, "transaction");
    let pool = connect(through(&pooler, &database)).await;
    let outbox = Outbox::builder().pooler(Pooler::None).migrated(&pool).await.expect("migrate");
    let direct = Outbox::connect(&connect(database.options()).await).await.expect("connect");
    let direct = direct.store().await.expect("store");
    direct.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let store = outbox.store().await.expect("store");
    let mut failures = 0;
    let mut tolerate = |error: Error| {
        assert!(error.is_retryable(), "{error}");
        failures += 1;
    };
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        assert!(Instant::now() < end, "it never learns");
        match store.checks(OffsetDateTime::now_utc()).await {
            Ok(checks) if pooler_of(&checks).starts_with("one in transaction mode") => break,
            Ok(_) => {}
            Err(error) => tolerate(error),
        }
        let looks = (0..8).map(|_| store.figures("s"));
        let looks = futures_util::future::join_all(looks).await;
        looks.into_iter().filter_map(Result::err).for_each(&mut tolerate);
    }
    assert!(failures > 0);
    // What was on its way when it became known may fail once more.
    let (mut in_a_row, end) = (0, Instant::now() + Duration::from_secs(30));
    while in_a_row < 20 {
        assert!(Instant::now() < end, "statements are still gone");
        let looks = (0..8).map(|_| store.figures("s"));
        let whole = futures_util::future::join_all(looks).await.iter().all(Result::is_ok);
        in_a_row = if whole { in_a_row + 1 } else { 0 };
    }
}

/// The setting works without a look.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_is_named_is_not_looked_for() {
    let database = new_database("UTF8").await;
    let pool = connect(database.options()).await;
    let outbox = Outbox::builder().pooler(Pooler::Transaction).migrated(&pool).await.expect("migrate");
    let store = outbox.store().await.expect("store");
    assert!(found(&store).await.starts_with("one in transaction mode"));
    work(&pool, &outbox, &store).await;
    assert!(
        !format!(
            "{:?} {:?}",
            outbox,
            StoreOptions { listen: Some(pooler().password("secret")), ..StoreOptions::default() }
        )
        .contains("secret")
    );
}
