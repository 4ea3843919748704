//! Relays as they make themselves known.

use postrider_core::{RelayInfo, RelayReport, Result, Uuid};
use postrider_sql::clock::time_of;
use postrider_sql::{inspect, statement};
use sqlx_mysql::MySqlConnection;

use crate::store::MySqlStore;

const OP: &str = "heartbeat";

/// Makes a relay known, or says that it is still there.
pub(crate) async fn heartbeat(store: &MySqlStore, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
    relay.check()?;
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let write = store.sql.query(statement!("heartbeat.sql")).bind(relay.id).bind(&relay.name);
    let write = write.bind(&relay.host).bind(relay.process).bind(&relay.version);
    write.bind(relay.runs_as_json()?).bind(now).execute(&mut conn, OP).await?;
    let (forgotten, known) = all(store, &mut conn, now).await?;
    // One by one, by their keys: a range would lock what others write.
    for gone in forgotten {
        let forget = store.sql.query(statement!("deregister.sql")).bind(gone.report.id);
        forget.execute(&mut conn, OP).await?;
    }
    Ok(known)
}

/// Forgets a relay that has ended.
pub(crate) async fn deregister(store: &MySqlStore, relay: Uuid) -> Result<()> {
    const OP: &str = "deregister";
    let mut conn = store.conn(OP).await?;
    store.sql.query(statement!("deregister.sql")).bind(relay).execute(&mut conn, OP).await?;
    Ok(())
}

/// The relays that are known.
pub(crate) async fn relays(store: &MySqlStore) -> Result<Vec<RelayInfo>> {
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    known(store, &mut conn, now).await
}

/// The same on a connection that is in hand.
pub(crate) async fn known(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    now: i64,
) -> Result<Vec<RelayInfo>> {
    Ok(all(store, conn, now).await?.1)
}

/// Those that disappeared so long ago that they are listed no more, and the others.
async fn all(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    now: i64,
) -> Result<(Vec<RelayInfo>, Vec<RelayInfo>)> {
    let rows = store.sql.query(statement!("relays.sql")).fetch_all(conn, OP).await?;
    let all = inspect::relays(&rows, now, OP)?;
    Ok(all.into_iter().partition(|relay| RelayInfo::is_forgotten(relay.seen_at, time_of(now))))
}
