//! Transactional handlers against the usual hand-written worker: claim, do, mark and commit, one job at a time.
//!
//! Both insert the same row for an event, once. The worker claims its event in a table with a status, by
//! `for update skip locked limit 1`, as such workers do.

use std::sync::Arc;
use std::time::Instant;

use postrider_postgres::Outbox;
use postrider_relay::{Received, Relay, Tx};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use tokio::task::JoinSet;

use crate::data::{Bench, OrderPaid};
use crate::engine::{Tally, new_name};
use crate::report::Report;
use crate::{AnyError, in_turns, median};

/// How many transactions a relay has open at once, at most; and how many workers there are where there are several.
const SEVERAL: u64 = 16;
/// How many events share a transaction in bulk work.
const TOGETHER: usize = 100;

async fn tables(bench: &Bench) -> Result<(), AnyError> {
    bench
        .run(
            "create table {schema}.effect (id bigserial primary key, order_id bigint not null, note text not null);
             create table {schema}.job (
                 id bigserial primary key, event_type text not null, payload json not null,
                 status text not null default 'pending', created_at timestamptz not null default now());
             create index job_pending on {schema}.job (id) where status = 'pending';
             alter table {schema}.effect set (autovacuum_enabled = false);
             alter table {schema}.job set (autovacuum_enabled = false)",
        )
        .await
}

fn insert(bench: &Bench) -> Arc<str> {
    format!("insert into {}.effect (order_id, note) values ($1, $2)", bench.schema).into()
}

async fn add_effect(connection: &mut PgConnection, sql: &Arc<str>, event: OrderPaid) -> sqlx::Result<()> {
    let query = sqlx::query(AssertSqlSafe(Arc::clone(sql)));
    query.bind(event.order.cast_signed()).bind(event.note).execute(connection).await?;
    Ok(())
}

/// Makes sure that each event had its effect once, and forgets the effects.
async fn check(bench: &Bench, events: u64) -> Result<(), AnyError> {
    let sql = format!("select count(*) from {}.effect", bench.schema);
    let effects: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&bench.pool).await?;
    if effects != events.cast_signed() {
        return Err(format!("{events} events had {effects} effects").into());
    }
    bench.run("truncate {schema}.effect").await
}

/// A relay with a transactional handler, from its start until all is committed and settled. Events per second.
async fn relay(bench: &Bench, events: u64, max_tx_batch: usize) -> Result<f64, AnyError> {
    let (tally, sql) = (Tally::new(events), insert(bench));
    let counted = Arc::clone(&tally);
    let relay = Relay::new(&bench.outbox).subscribe(&new_name(), |subscriber| {
        subscriber.max_tx_batch(max_tx_batch).on(move |event: Received<OrderPaid>, mut tx: Tx<Outbox>| {
            let (counted, sql) = (Arc::clone(&counted), Arc::clone(&sql));
            async move {
                add_effect(&mut tx, &sql, event.into_inner()).await?;
                counted.add();
                Ok::<(), sqlx::Error>(())
            }
        })
    });
    let began = Instant::now();
    let running = relay.start().await?;
    tally.wait().await?;
    // The last ones are handled, but not committed yet.
    running.stop().await?;
    let rate = events as f64 / began.elapsed().as_secs_f64();
    check(bench, events).await?;
    Ok(rate)
}

/// Works on one job. Whether there was one.
async fn job(
    connection: &mut PgConnection,
    claim: &str,
    done: &str,
    sql: &Arc<str>,
) -> Result<bool, AnyError> {
    let mut tx = connection.begin().await?;
    let Some(row) = sqlx::query(AssertSqlSafe(claim)).fetch_optional(&mut *tx).await? else {
        return Ok(false);
    };
    let event: OrderPaid = serde_json::from_str(row.try_get_unchecked(1)?)?;
    add_effect(&mut tx, sql, event).await?;
    sqlx::query(AssertSqlSafe(done)).bind(row.try_get::<i64, _>(0)?).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(true)
}

/// Hand-written workers, each on one connection, until there is no job left. Events per second.
async fn workers(bench: &Bench, events: u64, workers: u64) -> Result<f64, AnyError> {
    let fill = "truncate {schema}.job; insert into {schema}.job (event_type, payload) \
         select event_type, payload from {schema}.event order by id limit EVENTS";
    bench.run(&fill.replace("EVENTS", &events.to_string())).await?;
    let schema = &bench.schema;
    let claim: Arc<str> = format!(
        "select id, payload from {schema}.job where status = 'pending' order by id limit 1 for update skip locked"
    )
    .into();
    let done: Arc<str> = format!("update {schema}.job set status = 'done' where id = $1").into();
    let sql = insert(bench);
    let mut connections = Vec::new();
    for _ in 0..workers {
        connections.push(bench.pool.acquire().await?);
    }
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for mut connection in connections {
        let (claim, done, sql) = (Arc::clone(&claim), Arc::clone(&done), Arc::clone(&sql));
        tasks.spawn(async move {
            while job(&mut connection, &claim, &done, &sql).await? {}
            Ok::<(), AnyError>(())
        });
    }
    for outcome in tasks.join_all().await {
        outcome?;
    }
    let rate = events as f64 / began.elapsed().as_secs_f64();
    check(bench, events).await?;
    Ok(rate)
}

/// The bar of transactional handlers.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (events, jobs, turns) = if quick { (20_000, 1_000, 3) } else { (100_000, 5_000, 5) };
    let bench = Bench::new(SEVERAL as u32 + 4).await?;
    tables(&bench).await?;
    report.say(&format!("filling a log with {events} events"));
    bench.fill(events).await?;
    // A log of its own for one transaction an event: the same number would take too long.
    let fewer = Bench::new(SEVERAL as u32 + 4).await?;
    tables(&fewer).await?;
    fewer.fill(20_000).await?;

    report.say("transactional handlers, in turns with a hand-written worker");
    let (worker, rate, ratio) = in_turns(
        turns,
        async || workers(&bench, jobs, 1).await,
        async || relay(&bench, events, TOGETHER).await,
    )
    .await?;
    let (mut alone, mut several) = (Vec::new(), Vec::new());
    for _ in 0..turns.min(3) {
        alone.push(relay(&fewer, 20_000, 1).await?);
        several.push(workers(&bench, jobs * 2, SEVERAL).await?);
    }
    let (alone, several) = (median(alone), median(several));
    let detail = format!(
        "{rate:.0} events/s with up to {TOGETHER} in a transaction against {worker:.0} on one connection, the ratio of \
         neighbouring turns; with one in a transaction {alone:.0}; the worker on {SEVERAL} connections {several:.0}"
    );
    report.at_least("transactional handlers / claim-update-commit", ratio, 3.0, "times", &detail);
    let detail = format!("{:.1} times the worker on one connection", alone / worker);
    report.note("transactional handlers, one event a transaction", alone, "events/s", &detail);
    let detail = format!(
        "transactional handlers reach {:.1} times as much together, {:.1} times one by one",
        rate / several,
        alone / several
    );
    let name = format!("claim-update-commit on {SEVERAL} connections");
    report.note(&name, several, "events/s", &detail);
    fewer.close().await?;
    bench.close().await
}
