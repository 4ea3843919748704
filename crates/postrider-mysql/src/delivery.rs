//! Open deliveries: due ones, and operations on dead ones.

use std::collections::HashSet;

use postrider_core::{DueBatch, Lease, Order, ResolveDead, Result, Subscription};
use postrider_sql::due::DueRows;
use postrider_sql::event::Names;
use postrider_sql::position::number_of;
use postrider_sql::{Columns, statement};
use sqlx_mysql::{MySqlConnection, MySqlRow};
use uuid::Uuid;

use crate::error::failed;
use crate::read::SNAPSHOT;
use crate::row;
use crate::store::MySqlStore;
use crate::subscribe::found;

/// The deliveries of a lane that are to be tried now, and when to look again, as one snapshot shows them, and only while the lane
/// stands where the lease says.
pub(crate) async fn due(store: &MySqlStore, lease: &Lease, limit: u32) -> Result<DueBatch> {
    const OP: &str = "due";
    let mut conn = store.conn(OP).await?;
    let mut snapshot = conn.begin_by(SNAPSHOT).await.map_err(failed(OP))?;
    let now = store.now(&mut snapshot, OP).await?;
    let look = store.sql.query(statement!("due_next.sql")).bind(&lease.subscription);
    let look = look.bind(lease.lane).bind(now).bind(lease.epoch).bind(&lease.owner);
    let look = look.bind(number_of(&lease.position, OP)?).fetch_one(&mut snapshot, OP).await?;
    if !look.flag("sound", OP)? {
        return Err(Lease::moved(OP));
    }

    let heads = match lease.order {
        Order::Strict => Vec::new(),
        Order::Key | Order::None => {
            let head = store.sql.query(statement!("due_head.sql")).bind(&lease.subscription).bind(lease.lane);
            let head = head.bind(limit).bind(now).bind(lease.epoch).bind(lease.order == Order::None);
            head.fetch_all(&mut snapshot, OP).await?
        }
    };
    let heads: Vec<i64> = heads.iter().map(|row| row.number("id", OP)).collect::<Result<_>>()?;
    let chosen = match lease.order {
        Order::Key => statement!("due_by_key.sql"),
        Order::Strict => statement!("due_in_lane.sql"),
        Order::None => statement!("due_each.sql"),
    };
    // Of each key so many that all of them together have as many as are wanted.
    let behind = i64::from(limit).max(1).unsigned_abs().div_ceil(heads.len().max(1) as u64) - 1;
    let due = store.sql.query_due(statement!("due.sql"), chosen).bind(&lease.subscription).bind(lease.lane);
    let due = due.bind(limit).bind(now).bind(lease.epoch);
    let due = due.bind(serde_json::Value::from(heads.as_slice()).to_string());
    let due = due.bind(i64::try_from(behind).unwrap_or(i64::MAX));
    let nothing = heads.is_empty() && lease.order != Order::Strict;
    let (mut names, mut rows) = (Names::default(), DueRows::new(lease, now));
    let take = |row: MySqlRow| rows.take(&row, row::decoded(&row, &mut names, OP)?, OP);
    if nothing || due.fetch_each(&mut snapshot, OP, take).await? {
        snapshot.rollback().await.map_err(failed(OP))?;
    } else {
        // The rest is due at the next look. As in a read: a server would send all of it first.
        drop(snapshot);
        conn.sever();
    }
    rows.batch(&look, OP)
}

/// How many dead deliveries a statement changes.
const AT_ONCE: usize = 1000;

/// What becomes of dead deliveries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Requeue,
    Discard,
}

/// Takes a step with dead deliveries, by their numbers, under the locks of their lanes; how many were still dead.
pub(crate) async fn amend(
    store: &MySqlStore,
    tx: &mut MySqlConnection,
    subscription: &str,
    dead: &[i64],
    step: Step,
    now: i64,
    op: &'static str,
) -> Result<u64> {
    // First they hold their keys or not, then those behind them are found or not, then they are what they are to be.
    let steps = match step {
        Step::Requeue => [statement!("amend_step_in.sql"), statement!("amend_requeue.sql")],
        Step::Discard => [statement!("amend_let_go.sql"), statement!("amend_discard.sql")],
    };
    let dead = serde_json::Value::from(dead).to_string();
    let hold = store.sql.query(statement!("amend_hold.sql")).bind(subscription).bind(&dead);
    hold.bind(step == Step::Requeue).execute(&mut *tx, op).await?;
    let mut amended = 0;
    for statement in steps {
        let step = store.sql.query(statement).bind(subscription).bind(&dead).bind(now);
        amended = step.execute(&mut *tx, op).await?;
    }
    Ok(amended)
}

/// Requeues or discards dead deliveries.
pub(crate) async fn resolve_dead(store: &MySqlStore, action: &ResolveDead) -> Result<u64> {
    const OP: &str = "resolve";
    let (subscription, events, step) = match action {
        ResolveDead::Requeue { subscription, events } => (subscription, events, Step::Requeue),
        ResolveDead::Discard { subscription, events } => (subscription, events, Step::Discard),
    };
    let dead = dead(store, subscription, events).await?;
    let mut tx = store.write(OP).await?;
    store.sql.query(statement!("lanes_lock.sql")).bind(subscription).fetch_all(&mut tx, OP).await?;
    let now = store.now(&mut tx, OP).await?;
    found(store.sql, &mut tx, subscription, OP)
        .await?
        .ok_or_else(|| Subscription::unknown(subscription, OP))?;
    let mut changed = 0;
    for some in dead.chunks(AT_ONCE) {
        changed += amend(store, &mut tx, subscription, some, step, now, OP).await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    store.ring(OP).await?;
    Ok(changed)
}

/// The numbers of the dead deliveries that an operator names, or of all. They are looked for before any lane is locked; what they are by
/// then is looked at again.
async fn dead(store: &MySqlStore, subscription: &str, events: &[Uuid]) -> Result<Vec<i64>> {
    const OP: &str = "resolve";
    let only = if let [one] = events { Some(*one) } else { None };
    let wanted: HashSet<Uuid> = events.iter().copied().collect();
    let mut numbers = Vec::new();
    let take = |row: MySqlRow| {
        if wanted.is_empty() || wanted.contains(&row.id("event_id", OP)?) {
            numbers.push(row.number("id", OP)?);
        }
        Ok(true)
    };
    let mut conn = store.conn(OP).await?;
    let look = store.sql.query(statement!("amend_dead.sql")).bind(subscription).bind(only);
    look.fetch_each(&mut conn, OP, take).await?;
    numbers.sort_unstable();
    Ok(numbers)
}
