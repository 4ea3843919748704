//! The state of events, as operators see it.

use postrider_core::{EventState, Result, State, StateQuery};
use postrider_sql::inspect::{STATES, limit, state};
use postrider_sql::{Columns, statement};

use crate::store::MySqlStore;

const OP: &str = "states";

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
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let lowest = store.sql.query(statement!("states_lowest.sql")).bind(query.after);
    let lowest = lowest.bind(matches!(query.state, Some(State::Pending | State::Processing)));
    let lowest = lowest.fetch_one(&mut conn, OP).await?.maybe_number(0, OP)?;
    let states =
        store.sql.query(statement!("states.sql")).with("{narrowed}", narrow).with("{where}", &where_);
    let states = states
        .bind(now)
        .bind(query.after)
        .bind(limit(query.limit, STATES))
        .bind(query.subscription.as_deref());
    let states = states.bind(query.event_id).bind(query.state.map(State::as_str));
    let states = states.bind(lowest.unwrap_or(0));
    states.fetch_all(&mut conn, OP).await?.iter().map(|row| state(row, OP)).collect()
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
