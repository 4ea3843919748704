//! What autovacuum still has to do.

use std::time::{Duration, Instant};

use sqlx::PgPool;

use crate::AnyError;
use crate::data::Bench;
use crate::statements::PASSED_ON;

const PAUSE: Duration = Duration::from_millis(100);

/// Autovacuum as it deals with a log.
pub(super) struct Vacuum {
    pool: PgPool,
    schema: String,
    /// With so many dead events it is called.
    threshold: u64,
}

impl Vacuum {
    /// Lets it work on a log, and does by hand what is due now.
    pub(super) async fn of(bench: &Bench, threshold: u64) -> Result<Self, AnyError> {
        let settings = format!(
            "alter table {{schema}}.event reset (autovacuum_enabled);
             alter table {{schema}}.event set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = {threshold},
                 autovacuum_vacuum_insert_threshold = -1)"
        );
        bench.run(&settings).await?;
        bench.run("vacuum (analyze)").await?;
        Ok(Self { pool: bench.pool.clone(), schema: bench.schema.clone(), threshold })
    }

    /// How many dead events there are, as far as the server knows.
    pub(super) async fn dead(&self) -> Result<u64, AnyError> {
        let sql = "select n_dead_tup from pg_stat_user_tables where schemaname = $1 and relname = 'event'";
        let dead: i64 = sqlx::query_scalar(sql).bind(&self.schema).fetch_one(&self.pool).await?;
        Ok(dead.unsigned_abs())
    }

    /// Whether a table of the log is being vacuumed. The one that publishers update is, at all times.
    async fn works(&self) -> Result<bool, AnyError> {
        let sql = "select exists (
                 select from pg_stat_progress_vacuum v
                 join pg_class c on c.oid = v.relid join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = $1 and c.relname <> 'account')";
        Ok(sqlx::query_scalar(sql).bind(&self.schema).fetch_one(&self.pool).await?)
    }

    /// Waits until it has nothing left to do: when it last had, and what was counted by then. One that takes longer than the
    /// patience is left at that.
    pub(super) async fn nothing_left(
        &self,
        patience: Duration,
        count: impl Fn() -> u64,
    ) -> Result<(Instant, u64), AnyError> {
        let end = Instant::now() + patience;
        let mut last = (Instant::now(), count());
        while last.0.elapsed() < PASSED_ON && Instant::now() < end {
            tokio::time::sleep(PAUSE).await;
            if self.works().await? || self.dead().await? > self.threshold {
                last = (Instant::now(), count());
            }
        }
        Ok(last)
    }
}
