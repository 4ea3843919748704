//! Where events stand, for people.

use postrider_core::{EventState, Result, State, StateQuery};
use sqlx_mysql::MySqlRow;

use crate::row::{self, maybe_number, maybe_text, maybe_time, number, small, text};
use crate::sql::statement;
use crate::store::MySqlStore;

const OP: &str = "states";
const LIMIT: u32 = 1_000;

/// The states that were asked for.
pub(crate) async fn states(store: &MySqlStore, query: &StateQuery) -> Result<Vec<EventState>> {
    let (mut where_, mut narrow) = (String::new(), "");
    if query.subscription.is_some() {
        where_ += " and v.subscription = ?4";
    }
    if query.event_id.is_some() {
        where_ += " and v.event_id = ?5";
    }
    if let Some(state) = query.state {
        where_ += " and v.state = ?6";
        narrow = narrowed(state);
    }
    let limit = if query.limit == 0 { LIMIT } else { query.limit };
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let lowest = store.sql.query(statement!("states_lowest.sql")).bind(query.after);
    let lowest = lowest.bind(matches!(query.state, Some(State::Pending | State::Processing)));
    let lowest = maybe_number(&lowest.fetch_one(&mut conn, OP).await?, 0, OP)?;
    let states =
        store.sql.query(statement!("states.sql")).with("{narrowed}", narrow).with("{where}", &where_);
    let states = states.bind(now).bind(query.after).bind(limit).bind(query.subscription.as_deref());
    let states = states.bind(query.event_id).bind(query.state.map(State::as_str));
    let states = states.bind(lowest.unwrap_or(0));
    states.fetch_all(&mut conn, OP).await?.iter().map(state_of).collect()
}

/// A condition that follows from the state and keeps the whole log from being looked at.
fn narrowed(state: State) -> &'static str {
    match state {
        State::Retrying => {
            " and e.event_id in (select d.event_id from postrider_delivery d where d.open = true)"
        }
        State::Dead => {
            " and e.event_id in (select d.event_id from postrider_delivery d where d.state = 'dead')"
        }
        State::Discarded => {
            " and e.event_id in (select d.event_id from postrider_delivery d where d.state = 'discarded')"
        }
        State::Pending => " and e.id > (select min(l.position) from postrider_lane l)",
        State::Processing => {
            " and (e.id > (select min(l.position) from postrider_lane l) \
             or e.event_id in (select d.event_id from postrider_delivery d where d.state = 'running'))"
        }
        State::Done => "",
    }
}

fn state_of(row: &MySqlRow) -> Result<EventState> {
    let time = |column: usize| maybe_time(row, column, OP);
    Ok(EventState {
        id: number(row, 0, OP)?,
        event_id: row::id(row, 1, OP)?,
        subscription: text(row, 2, OP)?.into_owned(),
        state: text(row, 3, OP)?.parse()?,
        attempts: small(row, 4, OP)?,
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
