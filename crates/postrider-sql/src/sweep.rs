//! Retention: how much there is for a sweep.

use postrider_core::{Result, Sweep, Sweepable};
use sqlx_core::arguments::IntoArguments;
use sqlx_core::database::Database;
use sqlx_core::executor::Executor;

use crate::clock::{micros_of, month};
use crate::columns::Columns;
use crate::statement::{Connection, Dialect, DriverRow, Sql, Statement};

/// The statements that say how much a sweep would take.
#[derive(Clone, Copy)]
pub struct SweepableStatements {
    /// Up to where everything was settled by a time: horizon.sql.
    pub horizon: Statement,
    /// The events that would go: sweep.sql.
    pub events: Statement,
    /// The marks that would go: sweepable_inbox.sql.
    pub inbox: Statement,
    /// The archived events that would go: sweepable_archived.sql.
    pub archived: Statement,
}

impl<D: Dialect> Sql<D>
where
    for<'c> &'c mut Connection<D>: Executor<'c, Database = D::Database>,
    <D::Database as Database>::Arguments: IntoArguments<D::Database>,
    DriverRow<D>: Columns,
{
    /// Up to which event every subscription had settled everything by a time; nothing while there is no subscription.
    pub async fn horizon(
        self,
        horizon: Statement,
        conn: &mut Connection<D>,
        cutoff: i64,
        op: &'static str,
    ) -> Result<Option<i64>> {
        self.query(horizon).bind(cutoff).fetch_one(conn, op).await?.maybe_number("horizon", op)
    }

    /// How much a sweep would take.
    pub async fn sweepable(
        self,
        statements: SweepableStatements,
        conn: &mut Connection<D>,
        sweep: &Sweep,
        now: i64,
        op: &'static str,
    ) -> Result<Sweepable> {
        let cutoff = now.saturating_sub(micros_of(sweep.older_than()));
        let (statement, upto) = match sweep {
            Sweep::Archive { .. } | Sweep::Prune { .. } => {
                let horizon = self.horizon(statements.horizon, conn, cutoff, op).await?;
                let Some(horizon) = horizon else { return Ok(Sweepable::of(0)) };
                let chosen = self.query(statements.events).bind(horizon).bind(cutoff);
                let chosen = chosen.bind(Sweepable::MOST).fetch_all(conn, op).await?;
                return Ok(Sweepable::of(chosen.len() as u64));
            }
            Sweep::Inbox { .. } => (statements.inbox, cutoff),
            Sweep::Archived { .. } => (statements.archived, month(cutoff)),
        };
        let count = self.query(statement).bind(upto).bind(Sweepable::MOST).fetch_one(conn, op).await?;
        Ok(Sweepable::of(count.number(0, op)?.unsigned_abs()))
    }
}
