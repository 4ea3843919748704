//! A small shop on an embedded database. Every figure that it prints was counted.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider::sqlite::{Outbox, SqliteStore};
use postrider::{Error, ErrorKind, Event, Lease, Recorded, Settlement, Standing, Store, Subscription, Uuid};
use serde::Serialize;
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const WRITERS: u64 = 4;
const TRANSACTIONS: u64 = 150;
const ORDERS: u64 = 12;
const SUBSCRIPTION: &str = "receipts";
const LEASE: Duration = Duration::from_secs(1);

/// What the shop records: an order was changed, and is at this version now.
#[derive(Serialize, Event)]
#[event(aggregate = "Order", id = order, stream = "orders")]
struct OrderChanged {
    order: String,
    version: i64,
}

/// What happened, as the demo itself saw it.
#[derive(Default)]
struct Tally {
    committed: Mutex<HashSet<Uuid>>,
    rolled_back: AtomicU64,
    delivered: Mutex<Vec<(Uuid, String, i64)>>,
    done_writing: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the demo; whether every promise held.
pub(crate) async fn run() -> Result<bool, Failure> {
    let began = Instant::now();
    let folder = std::env::temp_dir().join(format!("postrider-demo-{}", Uuid::now_v7().simple()));
    std::fs::create_dir_all(&folder).map_err(|error| {
        format!("the folder {} can't be made ({error}); set TMPDIR to one where it can", folder.display())
    })?;
    let file = folder.join("shop.db");
    println!("A shop on SQLite, in {}", file.display());
    let (pool, outbox) = open(&file).await?;
    outbox.store().subscribe(&Subscription::new(SUBSCRIPTION).lanes(2)).await?;
    println!(
        "  {WRITERS} writers change orders and record it in the same transaction; one in five rolls back"
    );
    println!(
        "  2 relays share the 2 lanes of the subscription `{SUBSCRIPTION}`; relay 1 will die with a batch in its hands"
    );

    let tally = Arc::new(Tally::default());
    let mut relays = JoinSet::new();
    for number in 1..=2 {
        relays.spawn(relay(outbox.store(), outbox.clone(), number, Arc::clone(&tally)));
    }
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        writers.spawn(writer(outbox.clone(), number, Arc::clone(&tally)));
    }
    for outcome in writers.join_all().await {
        outcome?;
    }
    tally.done_writing.store(true, Ordering::Release);
    for outcome in relays.join_all().await {
        outcome?;
    }
    let effects = sqlx_core::query::query("select count(*), count(distinct event_id) from receipt")
        .fetch_one(&pool)
        .await?;
    pool.close().await;
    Ok(report(&tally, (effects.try_get(0)?, effects.try_get(1)?), &file, began.elapsed()))
}

async fn open(file: &Path) -> Result<(SqlitePool, Outbox), Failure> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(10));
    let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await?;
    let outbox = Outbox::builder().source("shop").migrated(&pool).await?;
    sqlx_core::raw_sql::raw_sql(
        "create table shop_order (id text primary key, version integer not null);
         create table receipt (event_id blob not null, shop_order text not null)",
    )
    .execute(&pool)
    .await?;
    Ok((pool, outbox))
}

/// An application: changes an order and records it, all or nothing.
async fn writer(outbox: Outbox, number: u64, tally: Arc<Tally>) -> Result<(), Failure> {
    for n in 0..TRANSACTIONS {
        let order = format!("order-{}", (n * 7 + number * 5) % ORDERS);
        let mut tx = outbox.begin().await?;
        let changed = sqlx_core::query::query(
            "insert into shop_order values ($1, 1) on conflict (id) do update set version = version + 1 returning version",
        );
        let version = changed.bind(&order).fetch_one(&mut *tx).await?.try_get(0)?;
        let id = outbox.record(&mut tx, &OrderChanged { order, version }).await?;
        if (n + number).is_multiple_of(5) {
            tx.rollback().await?;
            tally.rolled_back.fetch_add(1, Ordering::Relaxed);
        } else {
            tx.commit().await?;
            locked(&tally.committed).insert(id);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// A relay: claim, read, deliver, settle. The first one dies once, after it delivered and before it settled.
async fn relay(store: SqliteStore, outbox: Outbox, number: u32, tally: Arc<Tally>) -> Result<(), Failure> {
    let mut bell = store.bell();
    let owner = format!("relay {number}");
    loop {
        let lease = match store.claim(SUBSCRIPTION, &owner, LEASE).await {
            Ok(lease) => lease,
            Err(error) if error.is_retryable() => None,
            Err(error) => return Err(error.into()),
        };
        let before = locked(&tally.delivered).len();
        if let Some(lease) = lease
            && !work(&store, &outbox, lease, number, &tally).await?
        {
            println!(
                "  relay 1 was killed after {} deliveries; its lane is free when its lease of 1 s has run out",
                locked(&tally.delivered).len()
            );
            return Ok(());
        }
        if locked(&tally.delivered).len() > before {
            bell.worked();
        }
        if tally.done_writing.load(Ordering::Acquire) && all_delivered(&tally) {
            return Ok(());
        }
        bell.wait(Duration::from_millis(200)).await?;
    }
}

fn all_delivered(tally: &Tally) -> bool {
    let delivered: HashSet<Uuid> = locked(&tally.delivered).iter().map(|(id, ..)| *id).collect();
    locked(&tally.committed).iter().all(|id| delivered.contains(id))
}

/// Works on a lane until it is idle. Whether the relay lives.
async fn work(
    store: &SqliteStore,
    outbox: &Outbox,
    mut lease: Lease,
    number: u32,
    tally: &Tally,
) -> Result<bool, Failure> {
    let doomed = number == 1 && locked(&tally.delivered).len() > 100;
    loop {
        let batch = store.read(&lease, &lease.position, 20).await?;
        if batch.is_idle() {
            store.release(lease).await?;
            return Ok(true);
        }
        for read in &batch.events {
            deliver(outbox, &read.event, tally).await?;
        }
        if doomed && !batch.events.is_empty() {
            return Ok(false);
        }
        if store.settle(&mut lease, &Settlement::of(&batch)).await? != Standing::Held {
            return Ok(true);
        }
    }
}

/// A consumer: the inbox and the effect in one transaction, so that the effect happens once.
async fn deliver(outbox: &Outbox, event: &Recorded, tally: &Tally) -> Result<(), Failure> {
    let version =
        event.payload.as_json().and_then(|json| json.split("\"version\":").nth(1)).unwrap_or_default();
    let version = version.trim_end_matches('}').parse().unwrap_or(0);
    locked(&tally.delivered).push((event.event_id, event.aggregate_id.clone(), version));
    let mut tx = outbox.begin().await?;
    if outbox.inbox(SUBSCRIPTION).first_time(&mut tx, event.event_id).await? {
        let effect = sqlx_core::query::query("insert into receipt values ($1, $2)");
        effect.bind(event.event_id).bind(&event.aggregate_id).execute(&mut *tx).await?;
    }
    tx.commit().await.map_err(|error| Error::new(ErrorKind::Database, "deliver", error.to_string()).into())
}

fn report(tally: &Tally, (effects, distinct): (i64, i64), file: &Path, took: Duration) -> bool {
    let committed = locked(&tally.committed);
    let delivered = locked(&tally.delivered);
    let mut first_seen: HashSet<Uuid> = HashSet::new();
    let mut last: HashMap<&str, i64> = HashMap::new();
    let mut out_of_order = 0;
    for (id, order, version) in delivered.iter() {
        if first_seen.insert(*id) {
            let before = last.insert(order, *version).unwrap_or(0);
            out_of_order += u64::from(*version <= before);
        }
    }
    let lost = committed.difference(&first_seen).count();
    let invented = first_seen.difference(&committed).count();
    let repeated = delivered.len() - first_seen.len();
    let twice = effects - distinct;
    println!();
    println!(
        "  recorded      {:>6}   events, {} transactions rolled back",
        committed.len(),
        tally.rolled_back.load(Ordering::Relaxed)
    );
    println!(
        "  delivered     {:>6}   of them {repeated} again: the batch that relay 1 had in its hands",
        delivered.len()
    );
    println!("  lost          {lost:>6}");
    println!("  invented      {invented:>6}   events of transactions that were rolled back");
    println!("  out of order  {out_of_order:>6}   within an order");
    println!("  effects       {effects:>6}   {twice} of them twice");
    let held = lost == 0 && invented == 0 && out_of_order == 0 && twice == 0;
    let held = held && usize::try_from(distinct) == Ok(committed.len());
    println!();
    println!(
        "  {} in {:.1} s",
        if held { "Every promise held," } else { "A promise was BROKEN," },
        took.as_secs_f64()
    );
    println!(
        "  Look around: sqlite3 {} \"select state, count(*) from postrider_event_state group by state\"",
        file.display()
    );
    held
}
