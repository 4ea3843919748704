//! Settling a batch of which the database refuses something: each delivery by itself, so that one can't hold up the rest.

use postrider_core::{
    DeliveryChange, DeliveryFailure, DeliveryState, Error, ErrorKind, Lease, LeaseStatus, Result, Settlement,
    UNWRITABLE,
};
use sqlx_core::error::Error as SqlxError;
use sqlx_core::executor::Executor;
use sqlx_core::raw_sql::raw_sql;
use sqlx_postgres::PgConnection;

use crate::error::during;
use crate::row;
use crate::store::PgStore;

const FORGET: &str = "delete from {schema}.delivery where subscription = $1 and id = $2 and event_id = $3";

impl PgStore {
    /// Moves the lane, then writes the deliveries one by one, each behind a savepoint; all in one transaction.
    pub(crate) async fn settle_one_by_one(
        &self,
        lease: &mut Lease,
        settlement: &Settlement,
    ) -> Result<LeaseStatus> {
        let mut tx = self.pool.begin().await.map_err(during("settle"))?;
        let moved = Settlement { deliveries: Vec::new(), ..settlement.clone() };
        let text = if moved.succeeded.is_empty() { &self.sql.settle[2] } else { &self.sql.settle[3] };
        let query = self.bind_settle(text.query(), lease, &moved)?;
        let Some(row) = query.fetch_optional(&mut *tx).await.map_err(during("settle"))? else {
            tx.rollback().await.map_err(during("settle"))?;
            self.elsewhere("settle").await;
            return Ok(LeaseStatus::Lost);
        };
        let recalled = row::flag(&row, 1)?;
        for change in &settlement.deliveries {
            self.write_or_give_up(&mut tx, lease, settlement, change).await?;
        }
        tx.commit().await.map_err(during("settle"))?;
        // The row has moved; the next statement finds it by its key.
        lease.open = true;
        lease.position = settlement.to.clone();
        Ok(if recalled { LeaseStatus::Recalled } else { LeaseStatus::Held })
    }

    /// Writes one delivery. What the database refuses is written as dead, with nothing in it that could be refused, in place of
    /// the row that is there (a final one, of before a replay).
    async fn write_or_give_up(
        &self,
        connection: &mut PgConnection,
        lease: &Lease,
        settlement: &Settlement,
        change: &DeliveryChange,
    ) -> Result<()> {
        let plain = DeliveryChange {
            state: DeliveryState::Dead,
            failure: Some(DeliveryFailure::new(UNWRITABLE, "")),
            past: None,
            ..change.clone()
        };
        for (change, replace) in [(change, false), (&plain, true)] {
            if self.write_one(connection, lease, settlement, change, replace).await? {
                return Ok(());
            }
        }
        Err(Error::new(ErrorKind::Invalid, "settle", "the database rejects every row for an event"))
    }

    /// Writes one delivery, in place of the one that is there if told so. Whether the database took it.
    async fn write_one(
        &self,
        connection: &mut PgConnection,
        lease: &Lease,
        settlement: &Settlement,
        change: &DeliveryChange,
        replace: bool,
    ) -> Result<bool> {
        let there = Settlement { deliveries: vec![change.clone()], ..Settlement::at(settlement.to.clone()) };
        let query = self.bind_settle(self.sql.settle[3].query(), lease, &there)?;
        let forget = self.sql.text("settle", FORGET).query().bind(lease.subscription.clone());
        let forget = forget.bind(change.id).bind(change.event_id);
        run(connection, "savepoint postrider_delivery").await?;
        let written = async {
            if replace {
                forget.execute(&mut *connection).await?;
            }
            query.fetch_one(&mut *connection).await
        };
        match written.await {
            Ok(_) => run(connection, "release savepoint postrider_delivery").await.map(|()| true),
            Err(error) if is_refusal(&error) => {
                let reason = during("settle")(error);
                tracing::warn!(subscription = %lease.subscription, event_id = %change.event_id, error = %reason,
                    "the database rejected the outcome of an event");
                run(connection, "rollback to savepoint postrider_delivery").await.map(|()| false)
            }
            Err(error) => Err(during("settle")(error)),
        }
    }
}

async fn run(connection: &mut PgConnection, sql: &'static str) -> Result<()> {
    connection.execute(raw_sql(sql)).await.map(|_| ()).map_err(during("settle"))
}

/// Whether the database objects to the row itself: its values, a rule or a limit; not to the moment.
fn is_refusal(error: &SqlxError) -> bool {
    let SqlxError::Database(error) = error else { return false };
    error.code().is_some_and(|code| ["22", "23", "54", "P0"].iter().any(|class| code.starts_with(class)))
}
