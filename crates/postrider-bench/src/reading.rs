//! The read loop against a bare read of the same rows.

use std::hint::black_box;
use std::time::{Duration, Instant};

use postrider_core::{EventLog, Settlement, Subscription};
use sqlx::{AssertSqlSafe, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::data::Bench;
use crate::report::Report;
use crate::{AnyError, in_turns};

const BATCH: u32 = 2000;
const LEASE: Duration = Duration::from_secs(600);

/// What a hand-written reader would make of a row.
struct Bare {
    id: i64,
    _event_id: Uuid,
    _names: [String; 4],
    _ordering_key: Option<String>,
    _sequence: Option<i64>,
    _payload: Option<String>,
    _content: (Option<String>, Option<Vec<u8>>),
    _headers: String,
    _times: [OffsetDateTime; 2],
    _max_attempts: Option<i32>,
}

/// Reads by `id > last order by id limit n`, as fast as sqlx goes. Events per second.
pub(crate) async fn bare(bench: &Bench, events: u64) -> Result<f64, AnyError> {
    let sql = format!(
        "select id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, payload, content_type, \
         content, headers, occurred_at, recorded_at, max_attempts from {}.event where id > $1 order by id limit $2",
        bench.schema
    );
    let mut connection = bench.store.pool().acquire().await?;
    let (mut last, mut count) = (0_i64, 0_u64);
    let began = Instant::now();
    while count < events {
        let query = sqlx::query(AssertSqlSafe(sql.as_str())).bind(last).bind(i64::from(BATCH));
        let rows = query.fetch_all(&mut *connection).await?;
        let mut batch = Vec::with_capacity(rows.len());
        for row in &rows {
            batch.push(Bare {
                id: row.try_get(0)?,
                _event_id: row.try_get(1)?,
                _names: [row.try_get(2)?, row.try_get(3)?, row.try_get(4)?, row.try_get(5)?],
                _ordering_key: row.try_get(6)?,
                _sequence: row.try_get(7)?,
                _payload: row.try_get_unchecked(8)?,
                _content: (row.try_get(9)?, row.try_get(10)?),
                _headers: row.try_get_unchecked(11)?,
                _times: [row.try_get(12)?, row.try_get(13)?],
                _max_attempts: row.try_get(14)?,
            });
        }
        let Some(end) = batch.last() else { break };
        last = end.id;
        count += batch.len() as u64;
        black_box(batch);
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// Reads by positions, from the beginning; settles each batch if asked to. Events per second.
async fn store_loop(bench: &Bench, events: u64, settle: bool) -> Result<f64, AnyError> {
    let name = format!("read {}", Uuid::now_v7());
    bench.store.subscribe(&Subscription::new(&name)).await?;
    let mut lease = bench.store.claim(&name, "bench", LEASE).await?.ok_or("no lane")?;
    let (mut position, mut count) = (lease.position.clone(), 0_u64);
    let began = Instant::now();
    while count < events {
        let batch = bench.store.read(&lease, &position, BATCH).await?;
        if batch.is_idle() {
            break;
        }
        if settle {
            bench.store.settle(&mut lease, &Settlement::of(&batch)).await?;
        }
        position = batch.next.clone();
        count += batch.events.len() as u64;
        black_box(batch.events);
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    bench.store.release(lease).await?;
    Ok(rate)
}

/// The bars of reading.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (small, large, turns) = if quick { (40_000, 200_000, 3) } else { (100_000, 2_000_000, 7) };
    report.say(&format!("filling two logs with {small} and {large} events"));
    let little = Bench::new(8).await?;
    little.fill(small).await?;
    let bench = Bench::new(8).await?;
    bench.fill(large).await?;

    report.say("reading, in turns with a bare read");
    let (bare_rate, rate, ratio) = in_turns(
        turns,
        async || bare(&bench, large / 4).await,
        async || store_loop(&bench, large / 4, false).await,
    )
    .await?;
    let detail = format!("{rate:.0} events/s against {bare_rate:.0}");
    report.at_least("read loop / bare sqlx read", 100.0 * ratio, 85.0, "%", &detail);
    let settled = store_loop(&bench, large / 4, true).await?;
    report.note("read loop with a settle a batch", settled, "events/s", &format!("batches of {BATCH}"));

    let (at_small, at_large, ratio) = in_turns(
        turns * 2,
        async || store_loop(&little, small, false).await,
        async || store_loop(&bench, small, false).await,
    )
    .await?;
    let whole = store_loop(&bench, large, false).await?;
    let detail = format!("{at_large:.0} against {at_small:.0} events/s; all {large} at {whole:.0}");
    report.at_least("read rate in a large log / in a small one", 100.0 * ratio, 95.0, "%", &detail);

    report.say("reading while a transaction is held open");
    let (free, held, ratio) = in_turns(
        turns,
        async || store_loop(&bench, large / 4, false).await,
        async || {
            let mut open = bench.pool.begin().await?;
            let event = postrider_core::NewEvent::of("orders", "Held", "Order", "held", &1)?;
            bench.outbox.record(&mut open, &event).await?;
            let rate = store_loop(&bench, large / 4, false).await?;
            open.rollback().await?;
            Ok(rate)
        },
    )
    .await?;
    let detail = format!("{held:.0} against {free:.0} events/s");
    report.at_least("read rate with a transaction held open", 100.0 * ratio, 95.0, "%", &detail);
    little.close().await?;
    bench.close().await
}
