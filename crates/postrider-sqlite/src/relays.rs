//! Relays as they make themselves known.

use postrider_core::{RelayInfo, RelayReport, Result, Uuid};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::clock::{micros_of, time_of};
use crate::error::failed;
use crate::row;
use crate::sql::statement;
use crate::store::SqliteStore;

const OP: &str = "heartbeat";

/// Makes a relay known, or says that it is still there.
pub(crate) async fn heartbeat(store: &SqliteStore, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
    relay.check()?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let write = store.sql.query(statement!("heartbeat.sql")).bind(relay.id).bind(&relay.name);
    let write = write.bind(&relay.host).bind(i64::from(relay.process)).bind(&relay.version);
    let write = write.bind(relay.runs_as_json()?).bind(now);
    write.execute(&mut *tx).await.map_err(failed(OP))?;
    let long_ago = now.saturating_sub(micros_of(RelayInfo::FORGOTTEN_AFTER));
    let forget = store.sql.query(statement!("relays_forget.sql")).bind(long_ago);
    forget.execute(&mut *tx).await.map_err(failed(OP))?;
    let known = known(store, &mut tx, now).await?;
    tx.commit().await.map_err(failed(OP))?;
    Ok(known)
}

/// Forgets a relay that has ended.
pub(crate) async fn deregister(store: &SqliteStore, relay: Uuid) -> Result<()> {
    const OP: &str = "deregister";
    let mut tx = store.write(OP).await?;
    let forget = store.sql.query(statement!("deregister.sql")).bind(relay);
    forget.execute(&mut *tx).await.map_err(failed(OP))?;
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
    let rows = store.sql.query(statement!("relays.sql")).fetch_all(conn).await.map_err(failed(OP))?;
    rows.iter().map(|row| info(row, now)).collect()
}

fn info(row: &SqliteRow, now: i64) -> Result<RelayInfo> {
    let number = |column: &str| row.try_get::<i64, _>(column).map_err(failed(OP));
    let words = |column: usize| row::text(row, column, OP).map(std::borrow::Cow::into_owned);
    let seen_at = time_of(number("seen_at")?);
    Ok(RelayInfo {
        report: RelayReport {
            id: row.try_get(0).map_err(failed(OP))?,
            name: words(1)?,
            host: words(2)?,
            process: u32::try_from(number("process")?).unwrap_or(0),
            version: words(4)?,
            runs: RelayReport::runs_from_json(&words(7)?),
        },
        started_at: time_of(number("started_at")?),
        seen_at,
        live: RelayInfo::is_live(seen_at, time_of(now)),
    })
}
