//! What people do with a log, by the statements of its store.

use std::ops::ControlFlow;

use postrider_core::{AuditEntry, Pause, Relane, Result, Subscription};
use sqlx_core::arguments::IntoArguments;
use sqlx_core::database::Database;
use sqlx_core::executor::Executor;

use crate::columns::Columns;
use crate::statement::{Connection, Dialect, DriverRow, Sql, Statement};
use crate::subscription::{Generation, LaneChange};

/// The statements by which a change of lanes goes on until all lanes stand at one position.
#[derive(Clone, Copy)]
pub struct ChangeStatements {
    /// Says how far the change is: relane_look.sql.
    pub look: Statement,
    /// Lets nobody claim a lane any more: relane_fence.sql.
    pub fence: Statement,
    /// Writes the common position down: relane_target.sql.
    pub target: Statement,
}

impl<D: Dialect> Sql<D>
where
    for<'c> &'c mut Connection<D>: Executor<'c, Database = D::Database>,
    <D::Database as Database>::Arguments: IntoArguments<D::Database>,
    DriverRow<D>: Columns,
{
    /// Writes down what an operator did, by audit.sql.
    pub async fn audit(
        self,
        audit: Statement,
        conn: &mut Connection<D>,
        entry: &AuditEntry,
        now: i64,
    ) -> Result<()> {
        let audit = self.query(audit).bind(now).bind(&entry.who).bind(&entry.what);
        let audit = audit.bind(entry.why.as_deref()).bind(entry.subscription.as_deref()).bind(entry.event_id);
        audit.execute(conn, "audit").await?;
        Ok(())
    }

    /// Pauses a subscription, or lets it go on, by pause.sql.
    pub async fn pause(
        self,
        statement: Statement,
        conn: &mut Connection<D>,
        subscription: &str,
        pause: Option<&Pause>,
        now: i64,
    ) -> Result<()> {
        const OP: &str = "pause";
        let (who, why) = (pause.map(|by| by.who.as_str()), pause.and_then(|by| by.why.as_deref()));
        let pause = self.query(statement).bind(subscription).bind(who).bind(why).bind(now);
        match pause.execute(conn, OP).await? {
            0 => Err(Subscription::unknown(subscription, OP)),
            _ => Ok(()),
        }
    }

    /// Refuses to remove a subscription that a relay works on, by holder.sql.
    pub async fn check_not_held(
        self,
        holder: Statement,
        conn: &mut Connection<D>,
        subscription: &str,
        now: i64,
    ) -> Result<()> {
        const OP: &str = "remove";
        let holder = self.query(holder).bind(subscription).bind(now).fetch_optional(conn, OP).await?;
        match holder {
            Some(holder) => Err(Subscription::held(subscription, &holder.text(0, OP)?)),
            None => Ok(()),
        }
    }

    /// Removes the rows of a subscription, and by the last statement its own.
    pub async fn remove(
        self,
        rows: &[Statement],
        own: Statement,
        conn: &mut Connection<D>,
        subscription: &str,
    ) -> Result<()> {
        const OP: &str = "remove";
        for statement in rows {
            self.run(conn, *statement, subscription, OP).await?;
        }
        match self.run(conn, own, subscription, OP).await? {
            0 => Err(Subscription::unknown(subscription, OP)),
            _ => Ok(()),
        }
    }

    /// Takes a change of lanes as far as it goes now: to the lanes that are to be made, or to what it waits for.
    pub async fn advance_change(
        self,
        statements: ChangeStatements,
        conn: &mut Connection<D>,
        subscription: &str,
        now: i64,
        op: &'static str,
    ) -> Result<ControlFlow<Relane, Generation>> {
        let ChangeStatements { look, fence, target } = statements;
        let mut change = self.lane_change(look, conn, subscription, now, op).await?;
        let Some(lanes) = change.lanes_next else { return Ok(ControlFlow::Break(Relane::Done)) };
        if change.target.is_none() {
            if change.leased > 0 {
                return Ok(ControlFlow::Break(Relane::Recalling));
            }
            self.run(conn, fence, subscription, op).await?;
            self.run(conn, target, subscription, op).await?;
            change = self.lane_change(look, conn, subscription, now, op).await?;
        }
        let Some(position) = change.arrived() else { return Ok(ControlFlow::Break(Relane::Draining)) };
        // A lease of the old lanes must not fit one of the new: the epochs go on above all of theirs.
        Ok(ControlFlow::Continue(Generation { lanes, position, epoch: change.epoch + 1 }))
    }

    async fn lane_change(
        self,
        look: Statement,
        conn: &mut Connection<D>,
        subscription: &str,
        now: i64,
        op: &'static str,
    ) -> Result<LaneChange> {
        let row = self.query(look).bind(subscription).bind(now).fetch_optional(conn, op).await?;
        LaneChange::of(&row.ok_or_else(|| Subscription::unknown(subscription, op))?, op)
    }
}
