//! The state of events, as operators see it.

use postrider_core::{EventState, Result, State, StateQuery};
use postrider_sql::clock::given;
use postrider_sql::inspect::{STATES, limit, state};
use postrider_sql::statement;

use crate::store::SqliteStore;

const OP: &str = "states";

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
    let states = store.sql.query(statement!("states.sql")).with("{where}", &where_).bind(given(&store.clock));
    let states = states.bind(query.after).bind(limit(query.limit, STATES));
    let states = states.bind(query.subscription.as_deref()).bind(query.event_id);
    let states = states.bind(query.state.map(State::as_str));
    let mut conn = store.conn(OP).await?;
    states.fetch_all(&mut conn, OP).await?.iter().map(|row| state(row, OP)).collect()
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
