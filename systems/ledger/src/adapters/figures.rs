//! The figures that people watch: what waits, how long delivery takes, what failed.

use serde::Serialize;
use sqlx::MySqlPool;

use crate::application::problem::{Answer, Problem};

/// The figures of the outbox, as the document names them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Events that are `PENDING`.
    pub pending: i64,
    /// Events that are `FAILED`: a person has to act.
    pub failed: i64,
    /// The mean time from `created_at` to `processed_at` of the events in the log, in seconds.
    pub mean_seconds: Option<f64>,
}

impl Figures {
    /// Counts them.
    pub async fn count(pool: &MySqlPool) -> Answer<Self> {
        let sql = "select cast(coalesce(sum(status = 'PENDING'), 0) as signed),
                          cast(coalesce(sum(status = 'FAILED'), 0) as signed),
                          cast(avg(timestampdiff(microsecond, created_at, processed_at)) / 1e6 as double)
                   from outbox_event";
        let counted: (i64, i64, Option<f64>) =
            sqlx::query_as(sql).fetch_one(pool).await.map_err(Problem::broken)?;
        let (pending, failed, mean_seconds) = counted;
        Ok(Self { pending, failed, mean_seconds })
    }
}
