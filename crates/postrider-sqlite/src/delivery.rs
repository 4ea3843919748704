//! What did not simply succeed: what is to be tried now, and what an operator does about the dead.

use std::time::Duration;

use futures_util::TryStreamExt;
use postrider_core::{
    ByteBudget, DeliveryState, Due, DueBatch, Lease, Order, PastAttempt, ResolveDead, Result,
};
use sqlx_core::row::Row;
use uuid::Uuid;

use crate::clock::{given, time_of};
use crate::error::failed;
use crate::position::id_of;
use crate::read::stand;
use crate::row::{self, Names};
use crate::sql::statement;
use crate::store::SqliteStore;
use crate::subscribe::{found, unknown};

/// The deliveries of a lane that are to be tried now, and when to look again. Both go by one time: what becomes due between
/// the two statements is the next one.
pub(crate) async fn due(store: &SqliteStore, lease: &Lease, limit: u32) -> Result<DueBatch> {
    const OP: &str = "due";
    let lane = i64::from(lease.lane);
    let mut conn = store.snapshot(OP).await?;
    stand(store, &mut conn, lease, id_of(&lease.position, OP)?, OP).await?;
    let look = store.sql.query(statement!("due_next.sql")).bind(&lease.subscription).bind(lane);
    let look = look.bind(given(&store.clock)).fetch_one(&mut *conn).await.map_err(failed(OP))?;
    let now: i64 = look.try_get("now").map_err(failed(OP))?;
    let next: Option<i64> = look.try_get("next_at").map_err(failed(OP))?;
    let holds: bool = look.try_get("holds").map_err(failed(OP))?;

    let due = store.sql.query_due(match lease.order {
        Order::Key => statement!("due_by_key.sql"),
        Order::Strict => statement!("due_in_lane.sql"),
        Order::None => statement!("due_each.sql"),
    });
    let due = due.bind(&lease.subscription).bind(lane).bind(i64::from(limit)).bind(now).bind(lease.epoch);
    let mut rows = due.fetch(&mut *conn);
    let (mut names, mut fill, mut deliveries) = (Names::default(), ByteBudget::new(lease.bytes), Vec::new());
    while let Some(row) = &rows.try_next().await.map_err(failed(OP))? {
        let attempts: i64 = row.try_get("attempts").map_err(failed(OP))?;
        let first_failed_at: Option<i64> = row.try_get("first_failed_at").map_err(failed(OP))?;
        let (event, unreadable) = row::recorded(row, &mut names, OP)?;
        let past: Option<String> = row.try_get("past").map_err(failed(OP))?;
        if !fill.takes(event.size() + past.as_ref().map_or(0, |past| past.len() as u64)) {
            break;
        }
        deliveries.push(Due {
            event,
            state: row.try_get::<String, _>("state").map_err(failed(OP))?.parse::<DeliveryState>()?,
            attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
            first_failed_at: first_failed_at.map(time_of),
            error_code: row.try_get("error_code").map_err(failed(OP))?,
            past: past.as_deref().map(PastAttempt::decode).unwrap_or_default(),
            now: time_of(now),
            unreadable,
        });
    }
    Ok(DueBatch {
        deliveries,
        next_in: next.and_then(|next| u64::try_from(next - now).ok()).map(Duration::from_micros),
        holds,
    })
}

/// Requeues or discards dead deliveries.
pub(crate) async fn resolve_dead(store: &SqliteStore, action: &ResolveDead) -> Result<u64> {
    const OP: &str = "resolve";
    let (subscription, events, statement) = match action {
        ResolveDead::Requeue { subscription, events } => {
            (subscription, events, statement!("amend_requeue.sql"))
        }
        ResolveDead::Discard { subscription, events } => {
            (subscription, events, statement!("amend_discard.sql"))
        }
    };
    let wanted: Vec<Option<Uuid>> =
        if events.is_empty() { vec![None] } else { events.iter().copied().map(Some).collect() };
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    found(store.sql, &mut tx, subscription, OP).await?.ok_or_else(|| unknown(subscription, OP))?;
    let mut changed = 0;
    for event_id in wanted {
        let amended = store.sql.query(statement).bind(subscription).bind(event_id).bind(now);
        changed += amended.execute(&mut *tx).await.map_err(failed(OP))?.rows_affected();
    }
    tx.commit().await.map_err(failed(OP))?;
    Ok(changed)
}
