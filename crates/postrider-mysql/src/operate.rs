//! What people do with the log, and what relays tell each other through it.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    AuditEntry, Coordinate, LeaderLease, Operate, Pause, Relane, RelayInfo, RelayReport, ReplaceDead, Replay,
    Replayed, ResolveDead, Result, Subscription, Sweep, Swept, Uuid, refuse_to_remove,
};
use postrider_sql::{Columns, statement};
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
        let (who, why) = (pause.map(|by| by.who.as_str()), pause.and_then(|by| by.why.as_deref()));
        let pause = self.sql.query(statement!("pause.sql")).bind(subscription).bind(who).bind(why).bind(now);
        if pause.execute(&mut conn, OP).await? == 0 {
            return Err(Subscription::unknown(subscription, OP));
        }
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

#[async_trait]
impl Coordinate for MySqlStore {
    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        again!(relays::heartbeat(self, relay))
    }

    async fn deregister(&self, relay: Uuid) -> Result<()> {
        relays::deregister(self, relay).await
    }

    async fn acquire_leader_lease(
        &self,
        task: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<LeaderLease>> {
        again!(leader_lease::take(self, task, owner, lease))
    }

    async fn save_leader_note(&self, task: &str, owner: &str, note: &str) -> Result<bool> {
        leader_lease::note(self, task, owner, note).await
    }

    async fn release_leader_lease(&self, task: &str, owner: &str) -> Result<()> {
        leader_lease::leave(self, task, owner).await
    }
}

async fn remove(store: &MySqlStore, subscription: &str, force: bool) -> Result<()> {
    const OP: &str = "remove";
    let mut tx = store.write(OP).await?;
    lock(store.sql, &mut tx, subscription, OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let holder = store.sql.query(statement!("holder.sql")).bind(subscription).bind(now);
    let holder = holder.fetch_optional(&mut tx, OP).await?;
    if let Some(holder) = holder.filter(|_| !force) {
        return Err(Subscription::held(subscription, &holder.text(0, OP)?));
    }
    if !force {
        refuse_to_remove(subscription, &relays::known(store, &mut tx, now).await?)?;
    }
    for statement in [
        statement!("relane_clear_doors.sql"),
        statement!("relane_clear.sql"),
        statement!("remove_deliveries.sql"),
        statement!("remove_batches.sql"),
    ] {
        store.sql.query(statement).bind(subscription).execute(&mut tx, OP).await?;
    }
    if store.sql.query(statement!("remove.sql")).bind(subscription).execute(&mut tx, OP).await? == 0 {
        return Err(Subscription::unknown(subscription, OP));
    }
    tx.commit().await.map_err(failed(OP))
}

/// Writes down what an operator did, in the transaction that `conn` is in.
pub(crate) async fn audit(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    entry: &AuditEntry,
    now: i64,
) -> Result<()> {
    let audit = store.sql.query(statement!("audit.sql")).bind(now).bind(&entry.who).bind(&entry.what);
    let audit = audit.bind(entry.why.as_deref()).bind(entry.subscription.as_deref()).bind(entry.event_id);
    audit.execute(conn, "audit").await?;
    Ok(())
}
