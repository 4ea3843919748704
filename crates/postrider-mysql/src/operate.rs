//! What people do with the log, and what relays tell each other through it.

use async_trait::async_trait;
use postrider_core::{
    AuditEntry, Operate, Pause, Relane, ReplaceDead, Replay, Replayed, ResolveDead, Result, Sweep, Swept,
    refuse_to_remove,
};
use postrider_sql::statement;
use sqlx_mysql::MySqlConnection;

use crate::error::failed;
use crate::store::{MySqlStore, again};
use crate::subscribe::lock;
use crate::{delivery, leader_lease, relane, relays, replace, replay, sweep};

#[async_trait]
impl Operate for MySqlStore {
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()> {
        const OP: &str = "pause";
        pause.map_or(Ok(()), Pause::check)?;
        let mut conn = self.conn(OP).await?;
        let now = self.now(&mut conn, OP).await?;
        self.sql.pause(statement!("pause.sql"), &mut conn, subscription, pause, now).await?;
        drop(conn);
        self.ring(OP).await
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        again!(relane::relane(self, subscription, lanes))
    }

    async fn remove(&self, subscription: &str, force: bool) -> Result<()> {
        again!(remove(self, subscription, force))
    }

    async fn replay(&self, replay: &Replay) -> Result<Replayed> {
        again!(replay::replay(self, replay))
    }

    async fn resolve_dead(&self, action: &ResolveDead) -> Result<u64> {
        again!(delivery::resolve_dead(self, action))
    }

    async fn replace_dead(&self, replacement: &ReplaceDead) -> Result<Vec<String>> {
        again!(replace::replace(self, replacement))
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        again!(sweep::sweep(self, sweep))
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        const OP: &str = "audit";
        entry.check()?;
        let mut conn = self.conn(OP).await?;
        let now = self.now(&mut conn, OP).await?;
        audit(self, &mut conn, entry, now).await
    }
}

postrider_sql::coordinate!(MySqlStore, again);

async fn remove(store: &MySqlStore, subscription: &str, force: bool) -> Result<()> {
    const OP: &str = "remove";
    let mut tx = store.write(OP).await?;
    lock(store.sql, &mut tx, subscription, OP).await?;
    let now = store.now(&mut tx, OP).await?;
    if !force {
        store.sql.check_not_held(statement!("holder.sql"), &mut tx, subscription, now).await?;
        refuse_to_remove(subscription, &relays::known(store, &mut tx, now).await?)?;
    }
    let rows = [
        statement!("relane_clear_doors.sql"),
        statement!("relane_clear.sql"),
        statement!("remove_deliveries.sql"),
        statement!("remove_batches.sql"),
    ];
    store.sql.remove(&rows, statement!("remove.sql"), &mut tx, subscription).await?;
    tx.commit().await.map_err(failed(OP))
}

/// Writes down what an operator did, in the transaction that `conn` is in.
pub(crate) async fn audit(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    entry: &AuditEntry,
    now: i64,
) -> Result<()> {
    store.sql.audit(statement!("audit.sql"), conn, entry, now).await
}
