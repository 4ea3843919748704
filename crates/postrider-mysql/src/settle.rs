//! Writing what became of a batch, in one transaction or not at all.

use postrider_core::{DeliveryChange, Lease, Result, Settlement, Standing};
use serde_json::json;
use sqlx_mysql::MySqlConnection;

use crate::clock::micros_of;
use crate::error::failed;
use crate::lane::standing;
use crate::position::id_of;
use crate::sql::{Sql, statement};
use crate::store::MySqlStore;

const OP: &str = "settle";

/// Settles a batch under its lease.
pub(crate) async fn settle(
    store: &MySqlStore,
    lease: &mut Lease,
    settlement: &Settlement,
) -> Result<Standing> {
    let (from, to) = (id_of(&settlement.from, OP)?, id_of(&settlement.to, OP)?);
    let reading = settlement.reading.as_ref().map_or(Ok(0), |reading| id_of(reading, OP))?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;

    let moved = store.sql.query(statement!("settle.sql")).bind(&lease.subscription).bind(lease.lane);
    let moved = moved.bind(lease.epoch).bind(&lease.owner).bind(from).bind(to).bind(reading).bind(now);
    if moved.execute(&mut tx, OP).await? == 0 {
        tx.rollback().await.map_err(failed(OP))?;
        return Ok(Standing::Lost);
    }
    if from != to {
        let batch =
            store.sql.query(statement!("settle_batch.sql")).bind(&lease.subscription).bind(lease.lane);
        let batch = batch.bind(from).bind(to).bind(settlement.count).bind(now).bind(&lease.owner);
        batch.execute(&mut tx, OP).await?;
    }
    if !settlement.deliveries.is_empty() {
        write_deliveries(store.sql, &mut tx, lease, &settlement.deliveries, now).await?;
    }
    let (standing, open) = standing(store.sql, &mut tx, lease, to, now, OP).await?;
    tx.commit().await.map_err(failed(OP))?;

    lease.position = settlement.to.clone();
    lease.open = open;
    Ok(standing)
}

async fn write_deliveries(
    sql: Sql,
    conn: &mut MySqlConnection,
    lease: &Lease,
    changes: &[DeliveryChange],
    now: i64,
) -> Result<()> {
    let changes = serde_json::Value::from_iter(changes.iter().map(|change| {
        json!({
            "id": change.id, "state": change.state.as_str(),
            "attempts": change.attempts, "retry_in": micros_of(change.retry_in),
            "code": change.failure.as_ref().map(|failure| &failure.code),
            "message": change.failure.as_ref().map(|failure| &failure.message),
        })
    }));
    let write = sql.query(statement!("settle_deliveries.sql")).bind(&lease.subscription).bind(now);
    write.bind(&lease.owner).bind(changes.to_string()).execute(conn, OP).await?;
    Ok(())
}
