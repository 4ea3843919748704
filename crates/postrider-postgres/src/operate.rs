//! What people do with the log, and what relays tell each other through it.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    AuditEntry, Coordinate, LeaderLease, Operate, Pause, Relane, RelayInfo, RelayReport, ReplaceDead, Replay,
    Replayed, ResolveDead, Result, Subscription, Sweep, Swept, Uuid, refuse_to_remove,
};

use sqlx_core::executor::Executor;
use sqlx_postgres::Postgres;

use crate::error::during;
use crate::row;
use crate::store::PgStore;

#[async_trait]
impl Operate for PgStore {
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()> {
        pause.map_or(Ok(()), Pause::check)?;
        let text = self.sql.text("pause", include_str!("../sql/pause.sql"));
        let query = text.query().bind(subscription.to_owned()).bind(pause.map(|pause| pause.who.clone()));
        let query = query.bind(pause.and_then(|pause| pause.why.clone())).bind(self.clock.now());
        if query.execute(&self.pool).await.map_err(during("pause"))?.rows_affected() == 0 {
            return Err(Subscription::unknown(subscription, "pause"));
        }
        self.ring().await
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        self.change_lanes(subscription, lanes).await
    }

    async fn remove(&self, subscription: &str, force: bool) -> Result<()> {
        self.remove_subscription(subscription, force).await
    }

    async fn replay(&self, replay: &Replay) -> Result<Replayed> {
        self.read_again(replay).await
    }

    async fn resolve_dead(&self, action: &ResolveDead) -> Result<u64> {
        self.resolve_all(action).await
    }

    async fn replace_dead(&self, replacement: &ReplaceDead) -> Result<Vec<String>> {
        self.replace(replacement).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        let outcome = self.sweep_once(sweep).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.sweep_once(sweep).await,
            None => outcome,
        }
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        entry.check()?;
        self.audit_on(&self.pool, entry).await
    }
}

#[async_trait]
impl Coordinate for PgStore {
    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        self.report(relay).await
    }

    async fn deregister(&self, relay: Uuid) -> Result<()> {
        self.forget_relay(relay).await
    }

    async fn acquire_leader_lease(
        &self,
        task: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<LeaderLease>> {
        self.take(task, owner, lease).await
    }

    async fn save_leader_note(&self, task: &str, owner: &str, note: &str) -> Result<bool> {
        self.write_note(task, owner, note).await
    }

    async fn release_leader_lease(&self, task: &str, owner: &str) -> Result<()> {
        self.leave(task, owner).await
    }
}

impl PgStore {
    /// Writes down what an operator did, within a transaction or by itself.
    pub(crate) async fn audit_on<'e, 'c: 'e>(
        &self,
        executor: impl Executor<'c, Database = Postgres> + 'e,
        entry: &AuditEntry,
    ) -> Result<()> {
        const AUDIT: &str = "insert into {schema}.audit (at, who, what, why, subscription, event_id) \
             values (coalesce($1::timestamptz, clock_timestamp()), $2, $3, $4, $5, $6)";
        let query = self.sql.text("audit", AUDIT).query().bind(self.clock.now()).bind(entry.who.clone());
        let query = query.bind(entry.what.clone()).bind(entry.why.clone());
        let query = query.bind(entry.subscription.clone()).bind(entry.event_id);
        query.execute(executor).await.map_err(during("audit"))?;
        Ok(())
    }

    async fn remove_subscription(&self, subscription: &str, force: bool) -> Result<()> {
        const OP: &str = "remove";
        const LOCK: &str = "select from {schema}.subscription where name = $1 for update";
        const HOLDER: &str = "select h.owner from {schema}.holders($1, coalesce($2::timestamptz, clock_timestamp())) as h limit 1";
        let text = |sql: &str| self.sql.text("remove", sql);
        let name = subscription.to_owned();
        let mut tx = self.pool.begin().await.map_err(during(OP))?;
        let locked = text(LOCK).query().bind(name.clone()).fetch_optional(&mut *tx).await;
        locked.map_err(during(OP))?.ok_or_else(|| Subscription::unknown(subscription, OP))?;
        // Nobody can claim a lane any more: a claim locks the subscription.
        let holder = text(HOLDER).query().bind(name.clone()).bind(self.clock.now());
        let holder = holder.fetch_optional(&mut *tx).await.map_err(during(OP))?;
        if let Some(holder) = holder.filter(|_| !force) {
            return Err(Subscription::held(subscription, row::text(&holder, 0)?));
        }
        if !force {
            refuse_to_remove(subscription, &self.known_relays(&mut *tx).await?)?;
        }
        for (table, column) in [
            ("lane", "subscription"),
            ("delivery", "subscription"),
            ("settled_batch", "subscription"),
            ("subscription", "name"),
        ] {
            let delete =
                include_str!("../sql/remove.sql").replace("{table}", table).replace("{column}", column);
            text(&delete).query().bind(name.clone()).execute(&mut *tx).await.map_err(during(OP))?;
        }
        tx.commit().await.map_err(during(OP))?;
        self.ring().await
    }
}
