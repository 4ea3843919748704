//! What recording costs a publisher, against the usual hand-written outbox table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_core::{Recordable, Settlement, Store, Subscription};
use postrider_relay::Pace;
use sqlx::AssertSqlSafe;
use tokio::task::JoinSet;

use crate::data::{Bench, OrderPaid};
use crate::report::Report;
use crate::{Failure, median, ratios};

/// How many events the follower reads at once.
const BATCH: u32 = 1000;

/// What a publisher writes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// An event, by the outbox.
    Record,
    /// A row of a hand-written table.
    HandWritten,
}

/// The tables of an application.
pub(crate) async fn tables(bench: &Bench) -> Result<(), Failure> {
    bench
        .run(
            "create table {schema}.account (id bigint primary key, balance bigint not null) with (fillfactor = 50);
             insert into {schema}.account select n, 0 from generate_series(0, 9999) as n;
             create table {schema}.outbox (
                 id bigserial primary key, event_id uuid not null unique, stream text not null, event_type text not null,
                 aggregate_type text not null, aggregate_id text not null, headers json not null, payload json not null,
                 status text not null default 'pending', created_at timestamptz not null default now());
             create index outbox_pending on {schema}.outbox (id) where status = 'pending';
             alter table {schema}.outbox set (autovacuum_enabled = false)",
        )
        .await
}

/// Transactions per second: each updates a row and writes an event.
pub(crate) async fn rate(
    bench: &Arc<Bench>,
    clients: u64,
    kind: Kind,
    time: Duration,
) -> Result<f64, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let (bench, stop, done) = (Arc::clone(bench), Arc::clone(&stop), Arc::clone(&done));
        tasks.spawn(async move {
            let update = format!("update {}.account set balance = balance + 1 where id = $1", bench.schema);
            let insert = format!(
                "insert into {}.outbox (event_id, stream, event_type, aggregate_type, aggregate_id, headers, payload) \
                 values ($1, $2, $3, $4, $5, $6::text::json, $7::text::json)",
                bench.schema
            );
            let mut connection = bench.pool.acquire().await?;
            let mut n = client;
            while !stop.load(Ordering::Relaxed) {
                n = (n + clients * 7) % 10_000;
                let event = OrderPaid::of(n);
                let mut tx = sqlx::Connection::begin(&mut *connection).await?;
                let query = sqlx::query(AssertSqlSafe(update.as_str())).bind(n.cast_signed());
                query.execute(&mut *tx).await?;
                match kind {
                    Kind::Record => {
                        bench.outbox.record(&mut tx, &event).await?;
                    }
                    Kind::HandWritten => {
                        let event = event.to_new_event()?;
                        let query = sqlx::query(AssertSqlSafe(insert.as_str()))
                            .bind(event.event_id)
                            .bind(&event.stream)
                            .bind(&event.event_type)
                            .bind(&event.aggregate_type)
                            .bind(&event.aggregate_id)
                            .bind(event.headers.to_json())
                            .bind(event.payload.as_json());
                        query.execute(&mut *tx).await?;
                    }
                }
                tx.commit().await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), Failure>(())
        });
    }
    // Warm first: connections, statements, caches.
    tokio::time::sleep(time / 4).await;
    let (began, before) = (Instant::now(), done.load(Ordering::Relaxed));
    tokio::time::sleep(time).await;
    let figure = (done.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for outcome in tasks.join_all().await {
        outcome?;
    }
    Ok(figure)
}

/// A relay that follows the log: asleep when it starts, busy once events come.
async fn follow(
    bench: Arc<Bench>,
    name: String,
    stop: Arc<AtomicBool>,
    seen: Arc<AtomicU64>,
) -> Result<(), Failure> {
    let start = Subscription::new(&name).start(postrider_core::Start::Now);
    bench.store.subscribe(&start).await?;
    let mut lease = bench.store.claim(&name, "bench", Duration::from_secs(600)).await?.ok_or("no lane")?;
    let mut bell = bench.store.bell();
    let mut pace = Pace::new(Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let batch = bench.store.read(&lease, &lease.position, BATCH).await?;
        if batch.is_idle() {
            bell.wait(Duration::from_secs(1)).await?;
        } else {
            bell.worked();
            bench.store.settle(&mut lease, &Settlement::of(&batch)).await?;
            seen.fetch_add(batch.events.len() as u64, Ordering::Relaxed);
            // As a relay does that has caught up: with many publishers a moment for more to come.
            if batch.scanned < BATCH {
                let moment = pace.found(batch.scanned, Instant::now());
                if !moment.is_zero() {
                    tokio::time::sleep(moment).await;
                }
            }
        }
    }
    bench.store.release(lease).await?;
    Ok(())
}

/// The rate of 32 publishers while a relay follows them.
async fn followed_rate(
    bench: &Arc<Bench>,
    turn: usize,
    time: Duration,
    seen: &Arc<AtomicU64>,
) -> Result<f64, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let relay =
        tokio::spawn(follow(Arc::clone(bench), format!("f{turn}"), Arc::clone(&stop), Arc::clone(seen)));
    // It falls asleep before they begin.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let figure = rate(bench, 32, Kind::Record, time).await?;
    stop.store(true, Ordering::Relaxed);
    relay.await??;
    Ok(figure)
}

/// The bars of publishing.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), Failure> {
    let (time, turns) = if quick { (Duration::from_secs(1), 3) } else { (Duration::from_secs(3), 5) };
    let bench = Arc::new(Bench::new(40).await?);
    tables(&bench).await?;
    for clients in [8, 32] {
        report.say(&format!("{clients} publishers, in turns with a hand-written outbox table"));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for turn in 0..turns * 2 {
            if turn % 2 == 0 {
                ours.push(rate(&bench, clients, Kind::Record, time).await?);
                theirs.push(rate(&bench, clients, Kind::HandWritten, time).await?);
            } else {
                theirs.push(rate(&bench, clients, Kind::HandWritten, time).await?);
                ours.push(rate(&bench, clients, Kind::Record, time).await?);
            }
        }
        let detail = format!(
            "{:.0} against {:.0} transactions/s, the ratio of neighbouring turns",
            median(ours.clone()),
            median(theirs.clone())
        );
        let name = format!("update and record / update and hand-written insert, {clients} clients");
        report.at_least(&name, 100.0 * median(ratios(&ours, &theirs)), 90.0, "%", &detail);
    }

    report.say("32 publishers, in turns without and with a relay");
    let (mut alone, mut followed) = (Vec::new(), Vec::new());
    let seen = Arc::new(AtomicU64::new(0));
    for turn in 0..turns * 2 {
        if turn % 2 == 0 {
            alone.push(rate(&bench, 32, Kind::Record, time).await?);
            followed.push(followed_rate(&bench, turn, time, &seen).await?);
        } else {
            followed.push(followed_rate(&bench, turn, time, &seen).await?);
            alone.push(rate(&bench, 32, Kind::Record, time).await?);
        }
    }
    let detail = format!(
        "{:.0} against {:.0} transactions/s, the ratio of neighbouring turns; {} events read",
        median(followed.clone()),
        median(alone.clone()),
        seen.load(Ordering::Relaxed)
    );
    report.at_least(
        "32 publishers with a sleeping, then busy relay / without",
        100.0 * median(ratios(&followed, &alone)),
        90.0,
        "%",
        &detail,
    );

    report.say("record_all, in turns with one by one");
    let (mut together, mut single, mut in_one) = (Vec::new(), Vec::new(), Vec::new());
    let thousand: u64 = 1000;
    for _ in 0..turns {
        let began = Instant::now();
        for _ in 0..5 {
            let events: Vec<_> = (0..thousand).map(OrderPaid::of).collect();
            let mut tx = bench.pool.begin().await?;
            bench.outbox.record_all(&mut tx, &events).await?;
            tx.commit().await?;
        }
        together.push(5.0 * thousand as f64 / began.elapsed().as_secs_f64());
        let began = Instant::now();
        for n in 0..thousand {
            let mut tx = bench.pool.begin().await?;
            bench.outbox.record(&mut tx, &OrderPaid::of(n)).await?;
            tx.commit().await?;
        }
        single.push(thousand as f64 / began.elapsed().as_secs_f64());
        let began = Instant::now();
        let mut tx = bench.pool.begin().await?;
        for n in 0..thousand {
            bench.outbox.record(&mut tx, &OrderPaid::of(n)).await?;
        }
        tx.commit().await?;
        in_one.push(thousand as f64 / began.elapsed().as_secs_f64());
    }
    let (together, single, in_one) = (median(together), median(single), median(in_one));
    let detail = format!(
        "{together:.0} against {single:.0} events/s, a transaction each; {in_one:.0} one by one in one transaction"
    );
    report.at_least("record_all of 1,000 / one by one", together / single, 20.0, "times", &detail);
    Arc::into_inner(bench).ok_or("somebody still uses the log")?.close().await
}
