//! The state of events, as operators see it.

use postrider_core::{EventState, Result, StateQuery};

use crate::error::during;
use crate::row;
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn event_states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        let limit = if query.limit == 0 { 1000 } else { query.limit };
        let rows = self
            .sql
            .states
            .query()
            .bind(query.subscription.clone())
            .bind(query.event_id)
            .bind(query.state.map(postrider_core::State::as_str))
            .bind(query.after)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(during("states"))?;
        rows.iter()
            .map(|row| {
                let owned = |column| row::opt_text(row, column).map(|text| text.map(ToOwned::to_owned));
                Ok(EventState {
                    id: row::int64(row, 0)?,
                    event_id: row::uuid(row, 1)?,
                    subscription: row::text(row, 2)?.to_owned(),
                    state: row::text(row, 3)?.parse()?,
                    attempts: row::count(row, 4)?,
                    next_retry_at: row::opt_time(row, 5)?,
                    last_attempt_at: row::opt_time(row, 6)?,
                    delivered_at: row::opt_time(row, 7)?,
                    delivered_by: owned(8)?,
                    lease_owner: owned(9)?,
                    lease_until: row::opt_time(row, 10)?,
                    error_code: owned(11)?,
                    error_message: owned(12)?,
                })
            })
            .collect()
    }
}
