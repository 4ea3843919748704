//! Open deliveries: due ones, and operations on dead ones.

use postrider_core::{DueBatch, Lease, Order, ResolveDead, Result, Subscription};
use postrider_sql::clock::given;
use postrider_sql::due::DueRows;
use postrider_sql::event::Names;
use postrider_sql::position::number_of;
use postrider_sql::{Columns, statement};
use sqlx_sqlite::SqliteRow;
use uuid::Uuid;

use crate::error::failed;
use crate::read::stand;
use crate::row;
use crate::store::SqliteStore;
use crate::subscribe::found;

/// The deliveries of a lane that are to be tried now, and when to look again. Both go by one time: what becomes due between
/// the two statements is the next one.
pub(crate) async fn due(store: &SqliteStore, lease: &Lease, limit: u32) -> Result<DueBatch> {
    const OP: &str = "due";
    let mut conn = store.snapshot(OP).await?;
    stand(store, &mut conn, lease, number_of(&lease.position, OP)?, OP).await?;
    let look = store.sql.query(statement!("due_next.sql")).bind(&lease.subscription).bind(lease.lane);
    let look = look.bind(given(&store.clock)).fetch_one(&mut conn, OP).await?;
    let now = look.number("now", OP)?;

    let chosen = match lease.order {
        Order::Key => statement!("due_by_key.sql"),
        Order::Strict => statement!("due_in_lane.sql"),
        Order::None => statement!("due_each.sql"),
    };
    let due = store.sql.query_due(statement!("due.sql"), chosen);
    let due = due.bind(&lease.subscription).bind(lease.lane).bind(limit).bind(now).bind(lease.epoch);
    let (mut names, mut rows) = (Names::default(), DueRows::new(lease, now));
    let take = |row: SqliteRow| rows.take(&row, row::decoded(&row, &mut names, OP)?, OP);
    due.fetch_each(&mut conn, OP, take).await?;
    rows.batch(&look, OP)
}

/// Requeues or discards dead deliveries.
pub(crate) async fn resolve_dead(store: &SqliteStore, action: &ResolveDead) -> Result<u64> {
    const OP: &str = "resolve";
    let (subscription, events, statement) = match action {
        ResolveDead::Requeue { subscription, events } => {
            (subscription, events, statement!("amend_requeue.sql"))
        }
        ResolveDead::Discard { subscription, events } => {
            (subscription, events, statement!("amend_discard.sql"))
        }
    };
    let wanted: Vec<Option<Uuid>> =
        if events.is_empty() { vec![None] } else { events.iter().copied().map(Some).collect() };
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    found(store.sql, &mut tx, subscription, OP)
        .await?
        .ok_or_else(|| Subscription::unknown(subscription, OP))?;
    let mut changed = 0;
    for event_id in wanted {
        let amended = store.sql.query(statement).bind(subscription).bind(event_id).bind(now);
        changed += amended.execute(&mut tx, OP).await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    Ok(changed)
}
