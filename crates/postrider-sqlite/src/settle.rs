//! Writing what became of a batch, in one transaction or not at all.

use std::collections::HashMap;

use postrider_core::{
    DeliveryChange, DeliveryFailure, ErrorKind, EventRef, Lease, LeaseStatus, PastAttempt, Result,
    Settlement, UNWRITABLE,
};
use postrider_sql::clock::micros_of;
use postrider_sql::json::refs;
use postrider_sql::position::number_of;
use postrider_sql::{Columns, statement};
use serde_json::json;
use sqlx_core::connection::Connection;
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::hash::hash_of;
use crate::lane::lease_status;
use crate::sql::Sql;
use crate::store::SqliteStore;
use crate::witness::Passed;

const OP: &str = "settle";

/// Settles a batch under its lease.
pub(crate) async fn settle(
    store: &SqliteStore,
    lease: &mut Lease,
    settlement: &Settlement,
) -> Result<LeaseStatus> {
    let (from, to) = (number_of(&settlement.from, OP)?, number_of(&settlement.to, OP)?);
    let reading = settlement.reading.as_ref().map_or(Ok(0), |reading| number_of(reading, OP))?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;

    let moved = store.sql.query(statement!("settle.sql")).bind(&lease.subscription).bind(lease.lane);
    let moved = moved.bind(lease.epoch).bind(&lease.owner).bind(from).bind(to).bind(reading).bind(now);
    if moved.execute(&mut tx, OP).await? == 0 {
        tx.rollback().await.map_err(failed(OP))?;
        return Ok(LeaseStatus::Lost);
    }
    if from != to {
        if let Some(witness) = &settlement.witness
            && !Passed::try_from(witness)?.is_there(store.sql, &mut tx, OP).await?
        {
            // The file was set back, and what was read is not what is there.
            tx.rollback().await.map_err(failed(OP))?;
            return Ok(LeaseStatus::Lost);
        }
        let batch =
            store.sql.query(statement!("settle_batch.sql")).bind(&lease.subscription).bind(lease.lane);
        let batch = batch.bind(from).bind(to).bind(settlement.count).bind(now).bind(&lease.owner);
        batch.execute(&mut tx, OP).await?;
    }
    for event in &settlement.effects {
        let mark = store.sql.query(statement!("settle_effect.sql")).bind(&lease.subscription).bind(*event);
        if mark.fetch_optional(&mut tx, OP).await?.is_none() {
            // The file was set back, and what was done about the event is gone.
            tx.rollback().await.map_err(failed(OP))?;
            return Ok(LeaseStatus::Lost);
        }
    }
    if settlement.one_by_one {
        for change in &settlement.deliveries {
            write_alone(store.sql, &mut tx, lease, change, now).await?;
        }
    } else if !settlement.deliveries.is_empty() {
        write_deliveries(store.sql, &mut tx, lease, &settlement.deliveries, now).await?;
    }
    if !settlement.succeeded.is_empty() {
        let forget =
            store.sql.query(statement!("settle_succeeded.sql")).bind(&lease.subscription).bind(lease.epoch);
        let forget = forget.bind(refs(settlement.succeeded.iter().map(|event| (event.id, event.event_id))));
        forget.execute(&mut tx, OP).await?;
    }
    let (status, open) = lease_status(store.sql, &mut tx, lease, to, now, OP).await?;
    tx.commit().await.map_err(failed(OP))?;

    lease.position = settlement.to.clone();
    lease.open = open;
    Ok(status)
}

/// Writes one delivery; one that the database refuses, as a dead one that it can keep. Nothing but a refusal of the row itself is
/// taken for that: a full disk says nothing of it.
async fn write_alone(
    sql: Sql,
    conn: &mut SqliteConnection,
    lease: &Lease,
    change: &DeliveryChange,
    now: i64,
) -> Result<()> {
    let mut within = conn.begin().await.map_err(failed(OP))?;
    match write_deliveries(sql, &mut within, lease, std::slice::from_ref(change), now).await {
        Ok(()) => return within.commit().await.map_err(failed(OP)),
        Err(error) if error.kind() != ErrorKind::Invalid => return Err(error),
        Err(_) => within.rollback().await.map_err(failed(OP))?,
    }
    let forget = sql.query(statement!("settle_forget.sql")).bind(&lease.subscription).bind(change.id);
    forget.execute(conn, OP).await?;
    let event = EventRef { id: change.id, event_id: change.event_id };
    let dead = DeliveryChange::dead(event, change.attempts, DeliveryFailure::new(UNWRITABLE, ""));
    write_deliveries(sql, conn, lease, &[dead], now).await
}

async fn write_deliveries(
    sql: Sql,
    conn: &mut SqliteConnection,
    lease: &Lease,
    changes: &[DeliveryChange],
    now: i64,
) -> Result<()> {
    let refs = refs(changes.iter().map(|change| (change.id, change.event_id)));
    let rows = sql.query(statement!("settle_keys.sql")).bind(refs).fetch_all(conn, OP).await?;
    let keys: HashMap<i64, String> = rows
        .iter()
        .map(|row| Ok((row.number(0, OP)?, row.text(1, OP)?.into_owned())))
        .collect::<Result<_>>()?;
    let changes: Vec<_> = changes
        .iter()
        .filter_map(|change| {
            let key = keys.get(&change.id)?;
            Some(json!({
                "id": change.id, "key": key, "hash": hash_of(key), "state": change.state.as_str(),
                "attempts": change.attempts, "retry_in": micros_of(change.retry_in),
                "code": change.failure.as_ref().map(|failure| &failure.code),
                "message": change.failure.as_ref().map(|failure| &failure.message).filter(|text| !text.is_empty()),
                "past": change.past.as_deref().map(PastAttempt::encode),
            }))
        })
        .collect();
    let write =
        sql.query(statement!("settle_deliveries.sql")).bind(&lease.subscription).bind(now).bind(&lease.owner);
    let write = write.bind(serde_json::Value::from(changes).to_string()).bind(lease.epoch);
    write.execute(conn, OP).await?;
    Ok(())
}
