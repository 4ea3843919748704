//! The log on MariaDB or MySQL: what recording costs, and how fast it is drained, numbering included.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_core::{EventLog, Recordable, Start, Subscription};
use postrider_mysql::Outbox;
use postrider_relay::{Received, Relay};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, MySqlPool, Row};
use time::PrimitiveDateTime;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::data::OrderPaid;
use crate::engine::{Tally, new_name};
use crate::report::Report;
use crate::{AnyError, in_turns, median};

const PAGE: u64 = 1_000;
const CLIENTS: u64 = 8;

/// A database of its own on the server of the benchmark.
struct Bench {
    pool: MySqlPool,
    outbox: Outbox,
    server: MySqlConnectOptions,
    database: String,
}

impl Bench {
    async fn new() -> Result<Self, AnyError> {
        let url = std::env::var("POSTRIDER_TEST_MYSQL").map_err(|_| "POSTRIDER_TEST_MYSQL is not set")?;
        let server = MySqlConnectOptions::from_str(&url)?;
        let database = format!("bench_{}", Uuid::now_v7().simple());
        let mut connection = MySqlConnection::connect_with(&server).await?;
        let create = format!("create database {database} character set utf8mb4 collate utf8mb4_bin");
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await?;
        let pool =
            MySqlPoolOptions::new().max_connections(20).connect_with(server.clone().database(&database));
        let pool = pool.await?;
        Ok(Self { outbox: Outbox::migrated(&pool).await?, pool, server, database })
    }

    async fn close(self) -> Result<(), AnyError> {
        self.pool.close().await;
        let mut connection = MySqlConnection::connect_with(&self.server).await?;
        let drop = format!("drop database {}", self.database);
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut connection).await?;
        Ok(())
    }

    async fn fill(&self, events: u64) -> Result<(), AnyError> {
        for from in (0..events).step_by(PAGE as usize) {
            let page: Vec<OrderPaid> = (from..(from + PAGE).min(events)).map(OrderPaid::of).collect();
            let mut tx = self.pool.begin().await?;
            self.outbox.record_all(&mut tx, &page).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// A relay that has everything before it, none of it numbered: until its handler has had all. Events per second.
    async fn drain(&self, events: u64) -> Result<f64, AnyError> {
        let (name, tally) = (new_name(), Tally::new(events));
        self.outbox.store().subscribe(&Subscription::new(&name).start(Start::Now)).await?;
        self.fill(events).await?;
        let began = Instant::now();
        let counted = Arc::clone(&tally);
        let relay = Relay::new(&self.outbox).subscribe(&name, |subscriber| {
            subscriber.on(move |event: Received<OrderPaid>| {
                let tally = Arc::clone(&counted);
                async move {
                    std::hint::black_box(event.into_inner());
                    tally.add();
                }
            })
        });
        let relay = relay.start().await?;
        tally.wait().await?;
        let rate = events as f64 / began.elapsed().as_secs_f64();
        relay.stop().await?;
        tally.check()?;
        Ok(rate)
    }

    /// The same rows by nothing but sqlx. Events per second.
    async fn bare(&self, events: u64) -> Result<f64, AnyError> {
        let began = Instant::now();
        let (mut after, mut seen) = (0_i64, 0);
        let mut connection = self.pool.acquire().await?;
        while seen < events {
            let sql = "select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, \
                       content_type, content, headers, occurred_at, recorded_at, max_attempts \
                       from postrider_event where id > ? order by id limit 1000";
            let rows = sqlx::query(sql).bind(after).fetch_all(&mut *connection).await?;
            for row in &rows {
                after = row.try_get(0)?;
                // Everything is decoded, as a reader does it.
                let mut texts: Vec<Option<String>> = Vec::with_capacity(8);
                for column in [2, 3, 4, 5, 6, 8, 9, 11] {
                    texts.push(row.try_get(column)?);
                }
                let times: [PrimitiveDateTime; 2] = [row.try_get(12)?, row.try_get(13)?];
                let numbers: (Option<i64>, Option<i32>) = (row.try_get(7)?, row.try_get(14)?);
                let bytes: (Uuid, Option<Vec<u8>>) = (row.try_get(1)?, row.try_get(10)?);
                std::hint::black_box((texts, times, numbers, bytes));
            }
            seen += rows.len() as u64;
            if rows.is_empty() {
                return Err("there are not so many events".into());
            }
        }
        Ok(seen as f64 / began.elapsed().as_secs_f64())
    }
}

/// The bars of draining.
pub async fn drain(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (events, backlog, turns) = if quick { (50_000, 200_000, 3) } else { (100_000, 1_000_000, 5) };
    let bench = Bench::new().await?;
    report.say("draining, in turns with a bare read");
    bench.drain(events).await?;
    let (bare, rate, ratio) =
        in_turns(turns, async || bench.bare(events).await, async || bench.drain(events).await).await?;
    let detail = format!("{rate:.0} against {bare:.0} events/s, numbering included; {events} events");
    let bar = (bare / 2.0).max(25_000.0);
    report.at_least("drain to a handler that does nothing", rate, bar.round(), "events/s", &detail);
    report.note("drain / bare sqlx read", 100.0 * ratio, "%", &detail);

    report.say(&format!("draining {backlog} events"));
    let far = bench.drain(backlog).await?;
    let near = median(vec![rate, bench.drain(events).await?, bench.drain(events).await?]);
    let detail = format!("{far:.0} against {near:.0} events/s");
    report.at_least("drain of a backlog / of a little", 100.0 * far / near, 90.0, "%", &detail);

    report.say("draining while transactions are held open");
    let mut reader = bench.pool.begin().await?;
    sqlx::query("select count(*) from postrider_arrival").fetch_one(&mut *reader).await?;
    let mut writer = bench.pool.begin().await?;
    bench.outbox.record(&mut writer, &OrderPaid::of(1)).await?;
    bench.drain(backlog).await?;
    let held =
        median(vec![bench.drain(events).await?, bench.drain(events).await?, bench.drain(events).await?]);
    writer.rollback().await?;
    reader.rollback().await?;
    let detail =
        format!("{held:.0} against {near:.0} events/s, after {backlog} events were drained like that");
    report.at_least("drain while transactions are open / without", 100.0 * held / near, 90.0, "%", &detail);
    bench.close().await
}

/// Transactions per second of publishers: each updates a row and writes an event.
async fn rate(bench: &Bench, ours: bool, time: Duration) -> Result<f64, AnyError> {
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for client in 0..CLIENTS {
        let (pool, outbox) = (bench.pool.clone(), bench.outbox.clone());
        let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
        tasks.spawn(async move {
            let mut connection = pool.acquire().await?;
            let mut n = client;
            while !stop.load(Ordering::Relaxed) {
                n = (n + CLIENTS * 7) % 10_000;
                let event = OrderPaid::of(n);
                let mut tx = connection.begin().await?;
                let update = sqlx::query("update account set balance = balance + 1 where id = ?");
                update.bind(n.cast_signed()).execute(&mut *tx).await?;
                if ours {
                    outbox.record(&mut tx, &event).await?;
                } else {
                    let event = event.to_new_event()?;
                    let insert = sqlx::query(
                        "insert into outbox (event_id, stream, event_type, aggregate_type, aggregate_id, headers, payload) \
                         values (?, ?, ?, ?, ?, ?, ?)",
                    );
                    let insert = insert.bind(event.event_id).bind(&event.stream).bind(&event.event_type);
                    let insert = insert.bind(&event.aggregate_type).bind(&event.aggregate_id);
                    let insert = insert.bind(event.headers.to_json()).bind(event.payload.as_json());
                    insert.execute(&mut *tx).await?;
                }
                tx.commit().await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), AnyError>(())
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

/// The bar of publishing.
pub async fn publish(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (time, turns) = if quick { (Duration::from_secs(2), 3) } else { (Duration::from_secs(4), 7) };
    let bench = Bench::new().await?;
    for table in [
        "create table account (id bigint primary key, balance bigint not null)",
        "insert into account with recursive n (id) as (select 0 union all select id + 1 from n where id < 999) \
         select a.id * 10 + b.id, 0 from n a join (select id from n where id < 10) b",
        "create table outbox (
             id bigint auto_increment primary key, event_id binary(16) not null unique, stream varchar(200) not null,
             event_type varchar(200) not null, aggregate_type varchar(200) not null, aggregate_id varchar(500) not null,
             headers json not null, payload json not null, status varchar(20) not null default 'pending',
             created_at datetime(6) not null default current_timestamp(6), key (status))",
    ] {
        sqlx::raw_sql(table).execute(&bench.pool).await?;
    }
    report.say("publishing, in turns with a hand-written outbox table");
    let (theirs, ours, ratio) =
        in_turns(turns, async || rate(&bench, false, time).await, async || rate(&bench, true, time).await)
            .await?;
    let detail = format!("{ours:.0} against {theirs:.0} transactions/s, {CLIENTS} clients");
    report.at_least("publish with record / into a hand-written outbox", 100.0 * ratio, 80.0, "%", &detail);
    bench.close().await
}
