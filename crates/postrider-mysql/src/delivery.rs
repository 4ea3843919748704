//! What did not simply succeed: what is to be tried now, and what an operator does about the dead.

use std::time::Duration;

use postrider_core::{Amend, DeliveryState, Due, DueBatch, Lease, Result};
use sqlx_core::connection::Connection;
use uuid::Uuid;

use crate::clock::time_of;
use crate::error::failed;
use crate::position::id_of;
use crate::read::{SNAPSHOT, elsewhere};
use crate::row::{self, Decoded, Names, flag, maybe_number, maybe_text, maybe_time, small, text};
use crate::sql::statement;
use crate::store::MySqlStore;
use crate::subscribe::{found, unknown};

/// The deliveries of a lane that are to be tried now, and when to look again, as one snapshot shows them, and only while the lane
/// stands where the lease says.
pub(crate) async fn due(store: &MySqlStore, lease: &Lease, limit: u32) -> Result<DueBatch> {
    const OP: &str = "due";
    let mut conn = store.conn(OP).await?;
    let mut snapshot = conn.begin_with(SNAPSHOT).await.map_err(failed(OP))?;
    let now = store.now(&mut snapshot, OP).await?;
    let look = store.sql.query(statement!("due_next.sql")).bind(&lease.subscription).bind(lease.lanes);
    let look = look.bind(lease.lane).bind(now).bind(lease.epoch).bind(&lease.owner);
    let look = look.bind(id_of(&lease.position, OP)?).fetch_one(&mut snapshot, OP).await?;
    if !flag(&look, "sound", OP)? {
        return Err(elsewhere(OP));
    }
    let next = maybe_number(&look, "next_at", OP)?;
    let holds = flag(&look, "holds", OP)?;

    let due =
        store.sql.query(statement!("due.sql")).bind(&lease.subscription).bind(lease.lanes).bind(lease.lane);
    let due = due.bind(limit).bind(now).bind(lease.order.as_str());
    let rows = due.fetch_all(&mut snapshot, OP).await?;
    snapshot.rollback().await.map_err(failed(OP))?;
    let mut names = Names::default();
    let deliveries = rows.iter().map(|row| {
        let Decoded { event, unreadable } = row::decoded(row, &mut names, OP)?;
        Ok(Due {
            event,
            state: text(row, "state", OP)?.parse::<DeliveryState>()?,
            attempts: small(row, "attempts", OP)?,
            first_failed_at: maybe_time(row, "first_failed_at", OP)?,
            error_code: maybe_text(row, "error_code", OP)?,
            now: time_of(now),
            unreadable,
        })
    });
    Ok(DueBatch {
        deliveries: deliveries.collect::<Result<_>>()?,
        next_in: next.and_then(|next| u64::try_from(next - now).ok()).map(Duration::from_micros),
        holds,
    })
}

/// Requeues or discards dead deliveries.
pub(crate) async fn amend(store: &MySqlStore, amend: &Amend) -> Result<u64> {
    const OP: &str = "amend";
    let (subscription, events, statement) = match amend {
        Amend::Requeue { subscription, events } => (subscription, events, statement!("amend_requeue.sql")),
        Amend::Discard { subscription, events } => (subscription, events, statement!("amend_discard.sql")),
    };
    let wanted: Vec<Option<Uuid>> =
        if events.is_empty() { vec![None] } else { events.iter().copied().map(Some).collect() };
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    found(store.sql, &mut tx, subscription, OP).await?.ok_or_else(|| unknown(subscription, OP))?;
    let mut changed = 0;
    for event_id in wanted {
        let amended = store.sql.query(statement).bind(subscription).bind(event_id).bind(now);
        changed += amended.execute(&mut tx, OP).await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    store.ring(OP).await?;
    Ok(changed)
}
