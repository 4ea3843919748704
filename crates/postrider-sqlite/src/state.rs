//! Where events stand, for people.

use postrider_core::{EventState, Result, State, StateQuery};
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteRow;

use crate::clock::{given, time_of};
use crate::error::failed;
use crate::row::maybe_text;
use crate::sql::statement;
use crate::store::SqliteStore;

const OP: &str = "states";
const LIMIT: u32 = 1_000;

/// The states that were asked for.
pub(crate) async fn states(store: &SqliteStore, query: &StateQuery) -> Result<Vec<EventState>> {
    let mut where_ = String::new();
    if query.subscription.is_some() {
        where_ += " and subscription = ?4";
    }
    if query.event_id.is_some() {
        where_ += " and event_id = ?5";
    }
    if let Some(state) = query.state {
        where_ += " and state = ?6";
        where_ += narrowed(state);
    }
    let limit = if query.limit == 0 { LIMIT } else { query.limit };
    let states = store.sql.query_where(statement!("states.sql"), &where_).bind(given(&store.clock));
    let states = states.bind(query.after).bind(i64::from(limit)).bind(query.subscription.as_deref());
    let states = states.bind(query.event_id).bind(query.state.map(State::as_str));
    let mut conn = store.conn(OP).await?;
    states.fetch_all(&mut *conn).await.map_err(failed(OP))?.iter().map(state_of).collect()
}

/// A condition that follows from the state and keeps the whole log from being looked at.
fn narrowed(state: State) -> &'static str {
    match state {
        State::Retrying => {
            " and id in (select id from postrider_delivery where state in ('waiting', 'retrying'))"
        }
        State::Dead => " and id in (select id from postrider_delivery where state = 'dead')",
        State::Discarded => " and id in (select id from postrider_delivery where state = 'discarded')",
        State::Pending => " and id > (select min(position) from postrider_lane)",
        State::Processing => {
            " and (id > (select min(position) from postrider_lane) \
             or id in (select id from postrider_delivery where state = 'running'))"
        }
        State::Done => "",
    }
}

fn state_of(row: &SqliteRow) -> Result<EventState> {
    let time = |column: usize| {
        row.try_get::<Option<i64>, _>(column).map(|micros| micros.map(time_of)).map_err(failed(OP))
    };
    let attempts: i64 = row.try_get(4).map_err(failed(OP))?;
    Ok(EventState {
        id: row.try_get(0).map_err(failed(OP))?,
        event_id: row.try_get(1).map_err(failed(OP))?,
        subscription: row.try_get(2).map_err(failed(OP))?,
        state: row.try_get::<String, _>(3).map_err(failed(OP))?.parse()?,
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        next_retry_at: time(5)?,
        last_attempt_at: time(6)?,
        delivered_at: time(7)?,
        delivered_by: maybe_text(row, 8, OP)?,
        lease_owner: maybe_text(row, 9, OP)?,
        lease_until: time(10)?,
        error_code: maybe_text(row, 11, OP)?,
        error_message: maybe_text(row, 12, OP)?,
    })
}
