//! An application's publishers: each changes a row and writes an event, in one transaction after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_core::Recordable;
use sqlx::AssertSqlSafe;
use tokio::task::JoinSet;

use crate::AnyError;
use crate::data::{Bench, OrderPaid};

/// What a publisher writes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// An event, by the outbox.
    Record,
    /// A row of a hand-written table.
    HandWritten,
}

/// The tables of an application.
pub(crate) async fn tables(bench: &Bench) -> Result<(), AnyError> {
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

/// Publishers at full speed, until they are ended.
pub(crate) struct Publishers {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    tasks: JoinSet<Result<(), AnyError>>,
}

impl Publishers {
    /// Lets so many begin.
    pub(crate) fn begin(bench: &Arc<Bench>, clients: u64, kind: Kind) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for client in 0..clients {
            let (bench, stop, done) = (Arc::clone(bench), Arc::clone(&stop), Arc::clone(&done));
            tasks.spawn(async move { publish(&bench, client, clients, kind, &stop, &done).await });
        }
        Self { stop, done, tasks }
    }

    /// How many transactions they have committed.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Transactions per second, for so long from now on.
    pub(crate) async fn rate(&self, time: Duration) -> f64 {
        let (began, before) = (Instant::now(), self.done());
        tokio::time::sleep(time).await;
        (self.done() - before) as f64 / began.elapsed().as_secs_f64()
    }

    /// Ends them; a failure of any of them is one.
    pub(crate) async fn end(self) -> Result<(), AnyError> {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks.join_all().await.into_iter().collect()
    }
}

/// One publisher: each of its transactions updates a row and writes an event.
async fn publish(
    bench: &Bench,
    client: u64,
    clients: u64,
    kind: Kind,
    stop: &AtomicBool,
    done: &AtomicU64,
) -> Result<(), AnyError> {
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
    Ok(())
}

/// Transactions per second of so many publishers, for so long.
pub(crate) async fn rate(
    bench: &Arc<Bench>,
    clients: u64,
    kind: Kind,
    time: Duration,
) -> Result<f64, AnyError> {
    let publishers = Publishers::begin(bench, clients, kind);
    // Warm first: connections, statements, caches.
    tokio::time::sleep(time / 4).await;
    let figure = publishers.rate(time).await;
    publishers.end().await?;
    Ok(figure)
}
