//! The plans of the hot path: the same with any statistics, and never through what is delivered.

mod support;

use std::time::{Duration, Instant};

use postrider_conformance::relay::{claim, commit_one, drain_lane, settle};
use postrider_core::{
    Clock, EventLog, Lease, LeaseStatus, OnDead, Operate, Order, Settlement, Start, Subscription,
};
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row};
use support::{Pg, PgLog};

/// What an execution did: its plan, and how many pages it looked at.
struct Ran {
    plan: String,
    pages: u64,
}

/// Runs a statement of the store in a relay's session, as a prepared statement with these arguments.
async fn run(connection: &mut PgConnection, sql: &str, generic: bool, arguments: &[String]) -> Ran {
    let mode = if generic { "force_generic_plan" } else { "force_custom_plan" };
    let prepare = format!("set plan_cache_mode = {mode}; prepare looked_at as {sql}");
    connection.execute(sqlx::raw_sql(AssertSqlSafe(prepare))).await.expect("prepare");
    let explain = format!(
        "explain (analyze, buffers, costs off, timing off) execute looked_at({})",
        arguments.join(", ")
    );
    let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(explain))).await.expect("explain");
    let plan = rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n");
    connection.execute(sqlx::raw_sql("deallocate looked_at; reset plan_cache_mode")).await.expect("tidy");
    let total = plan.lines().find(|line| line.trim_start().starts_with("Buffers: ")).unwrap_or_default();
    let pages = total.split([' ', '=']).filter_map(|word| word.parse::<u64>().ok()).sum();
    Ran { plan, pages }
}

/// The arguments of a read from a lease's position.
fn read_arguments(lease: &Lease, filtered: bool, in_flight: &[u64]) -> Vec<String> {
    let position = lease.position.as_str();
    let frontier = position.split('/').nth(1).expect("a frontier");
    let list = in_flight.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let mut arguments = vec![
        frontier.to_owned(),
        format!("'{{{list}}}'"),
        "false".into(),
        "0".into(),
        "1000".into(),
        format!("'{}'", lease.subscription),
        format!("'{}'", lease.row_location),
        lease.lane.to_string(),
        lease.epoch.to_string(),
        format!("'{}'", lease.owner),
        format!("'{position}'"),
        format!("'{position}'"),
        position.split('/').next().expect("a system").to_owned(),
    ];
    if filtered {
        arguments.extend(["'{orders}'", "null", "null", "2"].map(ToOwned::to_owned));
    }
    arguments
}

/// The arguments of a look at what is due.
fn due_arguments(lease: &Lease, limit: u32) -> [String; 9] {
    [
        format!("'{}'", lease.subscription),
        lease.lane.to_string(),
        limit.to_string(),
        "null".into(),
        format!("'{}'", lease.row_location),
        lease.epoch.to_string(),
        format!("'{}'", lease.owner),
        format!("'{}'", lease.position.as_str()),
        lease.position.as_str().split('/').next().expect("a system").to_owned(),
    ]
}

/// Forgets the statistics of a table, makes them true, or leaves them stale.
async fn make_statistics(log: &PgLog, table: &str, statistics: &str) {
    match statistics {
        "none" => {
            let table = format!("'{{schema}}.{table}'::regclass");
            let forget = format!(
                "delete from pg_statistic where starelid = {table}; \
                 update pg_class set reltuples = -1, relpages = 0 where oid = {table}"
            );
            log.run(&forget).await;
        }
        "true" => log.run(&format!("analyze {{schema}}.{table}")).await,
        _ => {}
    }
}

async fn million(log: &PgLog) {
    log.run("alter table {schema}.event set (autovacuum_enabled = false)").await;
    for _ in 0..10 {
        log.run(
            "insert into {schema}.event (stream, event_type, aggregate_type, aggregate_id, payload) \
             select 'orders', 'OrderPaid', 'Order', (n % 1000)::text, '{\"n\": 1}' from generate_series(1, 100000) as n",
        )
        .await;
    }
}

/// U10: the hot path (and what is counted for people) never scans delivered rows, with no statistics, with stale ones, with true ones, as a custom and as a
/// generic plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hot_path_never_scans_delivered_rows() {
    let log = Pg::default().pg_log(Clock::Database).await;
    // Stale statistics say that the log ends at id 1.
    commit_one(&log, "first").await;
    log.run("alter table {schema}.event set (autovacuum_enabled = false); analyze {schema}.event").await;
    million(&log).await;
    log.store.subscribe(&Subscription::new("s").start(Start::Now)).await.expect("subscribe");
    let mut lease = claim(&log.store, "s").await;
    // Some transactions that wrote long ago, as if they had just ended.
    let rows = sqlx::query(log.sql("select distinct tx_id::text from {schema}.event"))
        .fetch_all(&log.pool)
        .await
        .expect("ids");
    let mut ended: Vec<u64> =
        rows.iter().map(|row| row.get::<String, _>(0).parse().expect("a number")).collect();
    ended.extend(1000..1200);
    let mut connection = log.store.pool().acquire().await.expect("a relay's session");
    for statistics in ["stale", "none", "true"] {
        make_statistics(&log, "event", statistics).await;
        for (fresh, generic, filtered, open) in (0..16).map(|n| (n & 1 > 0, n & 2 > 0, n & 4 > 0, n & 8 > 0))
        {
            if fresh {
                for _ in 0..20 {
                    commit_one(&log, "new").await;
                }
            }
            let sql = log.store.read_sql(filtered, open).to_owned();
            let floor = 2_000_000_000_i64;
            // The late lookup is made for transactions of which no row lies above the floor.
            let mut arguments = read_arguments(&lease, filtered, &ended);
            arguments[3] = floor.to_string();
            let ran = run(&mut connection, &sql, generic, &arguments).await;
            let case = format!(
                "{statistics} statistics, generic {generic}, filtered {filtered}, open {open}, fresh {fresh}"
            );
            assert!(!ran.plan.contains("Seq Scan on event "), "{case}:\n{}", ran.plan);
            assert!(
                ran.pages < 1500,
                "{case}: {} pages for {} transactions\n{}",
                ran.pages,
                ended.len(),
                ran.plan
            );
            arguments[1] = "'{}'".into();
            let ran = run(&mut connection, &sql, generic, &arguments).await;
            assert!(ran.pages < 250, "{case}: {} pages\n{}", ran.pages, ran.plan);
            drain_lane(&log.store, &mut lease, 1000).await;
        }
        assert_figures_cost_little(&log, &mut connection, &lease, statistics).await;
    }
}

/// What is counted for people, too.
async fn assert_figures_cost_little(
    log: &PgLog,
    connection: &mut PgConnection,
    lease: &Lease,
    statistics: &str,
) {
    let system = lease.position.as_str().split('/').next().expect("a system").to_owned();
    for generic in [false, true] {
        let arguments =
            ["'s'".to_owned(), "null".to_owned(), system.clone(), "0".to_owned(), "300".to_owned()];
        let ran = run(connection, log.store.figures_sql(), generic, &arguments).await;
        assert!(ran.pages < 250, "{statistics} statistics: {} pages for figures\n{}", ran.pages, ran.plan);
    }
}

/// A settle costs the same while somebody holds a transaction open, however many came before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settles_stay_flat_while_somebody_holds_a_transaction_open() {
    let log = Pg::default().pg_log(Clock::Database).await;
    log.store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let mut lease = claim(&log.store, "s").await;
    let mut held = log.pool.begin_with("begin isolation level repeatable read").await.expect("begin");
    sqlx::query(log.sql("select count(*) from {schema}.lane")).execute(&mut *held).await.expect("a snapshot");
    // Up to one that begins a page of the table: the last of a page, one of about 40, adds to the index, where it passes what is dead.
    let page = |cookie: &str| cookie.split(',').next().unwrap_or_default().to_owned();
    let mut begins_a_page = false;
    for number in 0.. {
        if number >= 3000 && begins_a_page {
            break;
        }
        let settlement = Settlement::at(lease.position.clone());
        let before = page(&lease.row_location);
        assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
        begins_a_page = page(&lease.row_location) != before;
    }
    let mut connection = log.store.pool().acquire().await.expect("a relay's session");
    let position = lease.position.as_str();
    let fields: Vec<&str> = position.split('/').collect();
    let by = |ctid: &str| -> Vec<String> {
        let text = |text: &str| format!("'{text}'");
        let mut arguments = vec![text(ctid), text("s"), "0".into(), lease.epoch.to_string(), text("relay")];
        arguments.extend([
            text(position),
            text(position),
            fields[1].into(),
            text(fields[2]),
            fields[0].into(),
        ]);
        arguments.extend(
            ["0", "null", "1", "0", "null", "0", "null", "null", "null", fields[0], "null", "null"]
                .map(ToOwned::to_owned),
        );
        arguments
    };
    let ctid = lease.row_location.clone();
    // A read proves where the lane stands, and finds its row in the same way.
    let reading = log.store.read_sql(false, false).to_owned();
    let ran = run(&mut connection, &reading, true, &read_arguments(&lease, false, &[])).await;
    assert!(ran.plan.contains("Tid Scan on lane"), "{}", ran.plan);
    assert!(ran.pages < 30, "{} pages\n{}", ran.pages, ran.plan);
    let sql = log.store.settle_sql().to_owned();
    let ran = run(&mut connection, &sql, false, &by(&ctid)).await;
    assert!(ran.plan.contains("Tid Scan on lane"), "{}", ran.plan);
    assert!(ran.pages < 30, "{} pages\n{}", ran.pages, ran.plan);
    // By its key it would lead through all the dead versions: that is what this is about.
    let by_key = sql.replace("l.ctid = $1::text::tid and", "$1::text is not null and");
    let ran = run(&mut connection, &by_key, false, &by(&ctid)).await;
    assert!(ran.pages > 30, "{} pages: the test tests nothing\n{}", ran.pages, ran.plan);
    drop(connection);
    held.rollback().await.expect("rollback");
    // The row was moved by another hand just now: the key is the fallback.
    commit_one(&log, "a").await;
    let batch = log.store.read(&lease, &lease.position, 10).await.expect("read");
    assert_eq!(settle(&log.store, &mut lease, &batch).await, LeaseStatus::Held);
}

/// So many open deliveries in each of two lanes.
const OPEN: u32 = 30_000;

/// Writes open deliveries of an own subscription: `key` and `state` are expressions on `n`, which counts from 1.
async fn open_deliveries(log: &PgLog, subscription: &str, key: &str, state: &str) {
    log.run(&format!(
        "insert into {{schema}}.delivery (subscription, id, event_id, key, lane_hash, state, holds, attempts, next_at) \
         select '{subscription}', e.id, e.event_id, k.key, {{schema}}.hash_of(k.key), {state}, true, 1, now() + interval '1 hour' \
         from (select e.*, row_number() over (order by e.id) as n from {{schema}}.event e) as e \
         cross join lateral (select 'k' || ({key}) as key) as k where e.n <= {}",
        2 * OPEN
    ))
    .await;
}

/// A look at what is due costs what it returns, whatever is open, with no statistics, with stale ones, with true ones, as a custom
/// and as a generic plan. So do the other statements that look at open deliveries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_what_is_due_costs_what_it_returns() {
    let log = Pg::default().pg_log(Clock::Database).await;
    log.run("alter table {schema}.delivery set (autovacuum_enabled = false); analyze {schema}.delivery")
        .await;
    log.run(&format!(
        "insert into {{schema}}.event (stream, event_type, aggregate_type, aggregate_id, payload) \
         select 'orders', 'OrderPaid', 'Order', n::text, '1' from generate_series(1, {}) as n",
        2 * OPEN + 1000
    ))
    .await;
    let retrying = "'retrying'";
    let behind_heads = "case when n <= 1000 then 'retrying' else 'waiting' end";
    let behind_dead = "case when n <= 20 then 'dead' else 'waiting' end";
    let shapes = [
        ("keys", Order::Key, "n", retrying),
        ("held", Order::Key, "n % 20", behind_dead),
        ("heads", Order::Key, "n % 1000", behind_heads),
        ("strict", Order::Strict, "n", behind_heads),
        ("each", Order::None, "n", retrying),
        ("due", Order::Key, "n", "'waiting'"),
        ("due heads", Order::Key, "n % 1000", "'waiting'"),
    ];
    for (name, order, key, state) in shapes {
        let subscription = Subscription::new(name).order(order).on_dead(OnDead::Hold).lanes(2);
        log.store.subscribe(&subscription.start(Start::Now)).await.expect("subscribe");
        open_deliveries(&log, name, key, state).await;
    }
    for statistics in ["stale", "none", "true"] {
        make_statistics(&log, "delivery", statistics).await;
        for (name, order, ..) in shapes {
            let lease = claim(&log.store, name).await;
            let mut connection = log.store.pool().acquire().await.expect("a relay's session");
            for (generic, limit) in [(false, 100), (true, 100), (true, 1)] {
                let case = format!("{name}, {statistics} statistics, generic {generic}, at most {limit}");
                let arguments = due_arguments(&lease, limit);
                let ran = run(&mut connection, log.store.due_sql(order), generic, &arguments).await;
                assert!(ran.pages < 2500, "{case}: {} pages\n{}", ran.pages, ran.plan);
                assert!(!ran.plan.contains("Seq Scan on delivery"), "{case}:\n{}", ran.plan);
                let read = log.store.read_sql(true, true).to_owned();
                let mut arguments = read_arguments(&lease, true, &[]);
                arguments[0] = (2 * OPEN).to_string();
                arguments[4] = "100".into();
                let ran = run(&mut connection, &read, generic, &arguments).await;
                assert!(ran.pages < 2500, "{case}: {} pages for a read\n{}", ran.pages, ran.plan);
            }
            drop(connection);
            let found = log.store.due(&lease, 100).await.expect("due");
            assert_eq!(found.deliveries.len(), if name.starts_with("due") { 100 } else { 0 }, "{name}");
            assert_eq!(found.next_in.is_some(), !matches!(name, "held" | "due" | "due heads"), "{name}");
            assert!(found.deliveries.is_sorted_by_key(|due| due.event.id), "{name}");
            assert_eq!(found.holds, order != Order::None, "{name}");
            log.store.release(lease).await.expect("release");
        }
    }
}

/// What a statement lets go is looked at once, however much of it is of one key: the row that follows is looked for behind the first
/// one, and not behind each. (Row by row they take minutes.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letting_go_of_a_key_costs_what_is_let_go() {
    let log = Pg::default().pg_log(Clock::Database).await;
    log.run(
        "insert into {schema}.event (stream, event_type, aggregate_type, aggregate_id, payload) \
         select 'orders', 'OrderPaid', 'Order', 'k', '1' from generate_series(1, 20000) as n",
    )
    .await;
    let subscription = Subscription::new("s").start(Start::Now);
    for policy in [true, false] {
        log.store.subscribe(&subscription).await.expect("subscribe");
        open_deliveries(&log, "s", "1", "case when n = 1 then 'retrying' else 'waiting' end").await;
        let began = Instant::now();
        if policy {
            log.store.subscribe(&subscription.clone().order(Order::None)).await.expect("subscribe");
            log.run("delete from {schema}.delivery").await;
        } else {
            log.store.remove("s", false).await.expect("remove");
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}, by a policy: {policy}", began.elapsed());
    }
}
