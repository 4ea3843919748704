//! What people do with the log, and what relays tell each other through it.

use async_trait::async_trait;
use postrider_core::{
    AuditEntry, Operate, Pause, Relane, ReplaceDead, Replay, Replayed, ResolveDead, Result, Sweep, Swept,
    refuse_to_remove,
};
use postrider_sql::statement;
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::store::{SqliteStore, once};
use crate::{delivery, leader_lease, relane, relays, replace, replay, sweep};

#[async_trait]
impl Operate for SqliteStore {
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()> {
        const OP: &str = "pause";
        pause.map_or(Ok(()), Pause::check)?;
        let mut tx = self.write(OP).await?;
        let now = self.now(&mut tx, OP).await?;
        self.sql.pause(statement!("pause.sql"), &mut tx, subscription, pause, now).await?;
        // A commit is what sleeping relays look for.
        tx.commit().await.map_err(failed(OP))
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        relane::relane(self, subscription, lanes).await
    }

    async fn remove(&self, subscription: &str, force: bool) -> Result<()> {
        const OP: &str = "remove";
        let mut tx = self.write(OP).await?;
        let now = self.now(&mut tx, OP).await?;
        if !force {
            self.sql.check_not_held(statement!("holder.sql"), &mut tx, subscription, now).await?;
            refuse_to_remove(subscription, &relays::known(self, &mut tx, now).await?)?;
        }
        let rows = [
            statement!("relane_clear.sql"),
            statement!("remove_deliveries.sql"),
            statement!("remove_batches.sql"),
        ];
        self.sql.remove(&rows, statement!("remove.sql"), &mut tx, subscription).await?;
        tx.commit().await.map_err(failed(OP))
    }

    async fn replay(&self, replay: &Replay) -> Result<Replayed> {
        replay::replay(self, replay).await
    }

    async fn resolve_dead(&self, action: &ResolveDead) -> Result<u64> {
        delivery::resolve_dead(self, action).await
    }

    async fn replace_dead(&self, replacement: &ReplaceDead) -> Result<Vec<String>> {
        replace::replace(self, replacement).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        sweep::sweep(self, sweep).await
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        const OP: &str = "audit";
        entry.check()?;
        let mut tx = self.write(OP).await?;
        let now = self.now(&mut tx, OP).await?;
        audit(self, &mut tx, entry, now).await?;
        tx.commit().await.map_err(failed(OP))
    }
}

postrider_sql::coordinate!(SqliteStore, once);

/// Writes down what an operator did, in the transaction that `conn` is in.
pub(crate) async fn audit(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    entry: &AuditEntry,
    now: i64,
) -> Result<()> {
    store.sql.audit(statement!("audit.sql"), conn, entry, now).await
}
