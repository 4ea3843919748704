//! Relays as they make themselves known.

use postrider_core::{RelayInfo, RelayReport, Result, Uuid};
use postrider_sql::clock::{micros_of, time_of};
use postrider_sql::{inspect, statement};
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::store::SqliteStore;

const OP: &str = "heartbeat";

/// Makes a relay known, or says that it is still there.
pub(crate) async fn heartbeat(store: &SqliteStore, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
    relay.check()?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let write = store.sql.query(statement!("heartbeat.sql")).bind(relay.id).bind(&relay.name);
    let write = write.bind(&relay.host).bind(relay.process).bind(&relay.version);
    write.bind(relay.runs_as_json()?).bind(now).execute(&mut tx, OP).await?;
    let (day, forget) =
        (micros_of(RelayInfo::FORGOTTEN_AFTER), store.sql.query(statement!("relays_forget.sql")));
    let forget = forget.bind(now.saturating_sub(day)).bind(now.saturating_add(day));
    forget.execute(&mut tx, OP).await?;
    let known = known(store, &mut tx, now).await?;
    tx.commit().await.map_err(failed(OP))?;
    Ok(known)
}

/// Forgets a relay that has ended.
pub(crate) async fn deregister(store: &SqliteStore, relay: Uuid) -> Result<()> {
    const OP: &str = "deregister";
    let mut tx = store.write(OP).await?;
    store.sql.query(statement!("deregister.sql")).bind(relay).execute(&mut tx, OP).await?;
    tx.commit().await.map_err(failed(OP))
}

/// The relays that are known.
pub(crate) async fn relays(store: &SqliteStore) -> Result<Vec<RelayInfo>> {
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    known(store, &mut conn, now).await
}

/// The same on a connection that is in hand.
pub(crate) async fn known(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    now: i64,
) -> Result<Vec<RelayInfo>> {
    let rows = store.sql.query(statement!("relays.sql")).fetch_all(conn, OP).await?;
    let mut known = inspect::relays(&rows, now, OP)?;
    known.retain(|relay| !RelayInfo::is_forgotten(relay.seen_at, time_of(now)));
    Ok(known)
}
