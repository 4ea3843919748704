//! The schema and its versions. Forward only.

use std::time::Duration;

use postrider_core::{ErrorKind, Result};
use postrider_sql::migration::{Migration, refuse_newer, refuse_other};
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::row::Row;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_sqlite::{SqliteConnection, SqlitePool};

use crate::error::{failed, placed};

const MIGRATIONS: [Migration; 9] = [
    Migration { version: 1, name: "log", text: include_str!("../sql/migrations/0001_log.sql") },
    Migration { version: 2, name: "lanes", text: include_str!("../sql/migrations/0002_lanes.sql") },
    Migration { version: 3, name: "retention", text: include_str!("../sql/migrations/0003_retention.sql") },
    Migration { version: 4, name: "running", text: include_str!("../sql/migrations/0004_running.sql") },
    Migration { version: 5, name: "due", text: include_str!("../sql/migrations/0005_due.sql") },
    Migration { version: 6, name: "away", text: include_str!("../sql/migrations/0006_away.sql") },
    Migration { version: 7, name: "relays", text: include_str!("../sql/migrations/0007_relays.sql") },
    Migration { version: 8, name: "attempts", text: include_str!("../sql/migrations/0008_attempts.sql") },
    Migration { version: 9, name: "limits", text: include_str!("../sql/migrations/0009_limits.sql") },
];

const LATEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

const TABLE: &str = "create table if not exists postrider_migration (
    version integer primary key, name text not null,
    applied_at integer not null default (cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer) * 1000)
) strict";

/// The version of the schema in a database; 0 where there is none.
pub async fn schema_version(pool: &SqlitePool) -> Result<i64> {
    let found = async {
        let mut conn = pool.acquire().await.map_err(failed("migrate"))?;
        version(&mut conn, "migrate").await
    };
    found.await.map_err(placed(pool))
}

async fn version(conn: &mut SqliteConnection, op: &'static str) -> Result<i64> {
    let there = query("select 1 from sqlite_master where type = 'table' and name = 'postrider_migration'");
    if there.fetch_optional(&mut *conn).await.map_err(failed(op))?.is_none() {
        return Ok(0);
    }
    let row = query("select coalesce(max(version), 0) from postrider_migration").fetch_one(conn).await;
    row.and_then(|row| row.try_get(0)).map_err(failed(op))
}

/// The largest payload, in bytes, that the log takes; set first, if a size is given.
pub(crate) async fn max_payload(pool: &SqlitePool, set: Option<usize>, op: &'static str) -> Result<usize> {
    let mut conn = pool.acquire().await.map_err(failed(op))?;
    if let Some(size) = set {
        let sql = "update postrider_setting set value = ?1 where name = 'max_payload' and value <> ?1";
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        query(sql).bind(size).execute(&mut *conn).await.map_err(failed(op))?;
    }
    let row =
        query("select value from postrider_setting where name = 'max_payload'").fetch_one(&mut *conn).await;
    let size: i64 = row.and_then(|row| row.try_get(0)).map_err(failed(op))?;
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

/// All bytes, as a literal.
fn bytes() -> String {
    let bytes: String = (0..=u8::MAX).map(|byte| format!("{byte:02x}")).collect();
    format!("x'{bytes}'")
}

/// Brings the schema up to date, in one transaction. Many may do it at once; one of them does.
pub(crate) async fn migrate(pool: &SqlitePool) -> Result<()> {
    const OP: &str = "migrate";
    let mut conn = pool.acquire().await.map_err(failed(OP))?;
    use_wal(&mut conn, OP).await?;
    let found = version(&mut conn, OP).await?;
    refuse_newer(found, LATEST, OP)?;
    if found == LATEST {
        return Ok(());
    }
    drop(conn);
    let mut tx = pool.begin_with("begin immediate").await.map_err(failed(OP))?;
    let found = version(&mut tx, OP).await?;
    refuse_newer(found, LATEST, OP)?;
    query(TABLE).execute(&mut *tx).await.map_err(failed(OP))?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        raw_sql(AssertSqlSafe(migration.text.replace("{bytes}", &bytes())))
            .execute(&mut *tx)
            .await
            .map_err(failed(OP))?;
        let applied = query("insert into postrider_migration (version, name) values (?1, ?2)");
        applied.bind(migration.version).bind(migration.name).execute(&mut *tx).await.map_err(failed(OP))?;
        tracing::info!(version = migration.version, name = migration.name, "migrated");
    }
    tx.commit().await.map_err(failed(OP))
}

/// Refuses a schema that is not the one that this program knows.
pub(crate) async fn check(pool: &SqlitePool) -> Result<()> {
    const OP: &str = "connect";
    let mut conn = pool.acquire().await.map_err(failed(OP))?;
    refuse_other(version(&mut conn, OP).await?, LATEST, OP)?;
    use_wal(&mut conn, OP).await
}

/// Readers and the writer must not stop each other, so the journal is a write-ahead log. That is a property of
/// the file; a database in memory has none, and one connection at a time.
///
/// The switch needs the file for itself, and SQLite does not wait for that by itself.
async fn use_wal(conn: &mut SqliteConnection, op: &'static str) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(20);
    const TRIES: u32 = 250;
    for tried in 1.. {
        let mode = query("pragma journal_mode").fetch_one(&mut *conn).await;
        let mode: String = mode.and_then(|row| row.try_get(0)).map_err(failed(op))?;
        if mode == "wal" || mode == "memory" {
            break;
        }
        let switched =
            query("pragma journal_mode = wal").fetch_one(&mut *conn).await.and_then(|row| row.try_get(0));
        match switched.map_err(failed(op)) {
            Ok(mode) if String::as_str(&mode) == "wal" => break,
            Ok(mode) => {
                tracing::warn!(
                    mode,
                    "the database can't use a write-ahead log (WAL), so readers and writers block each other"
                );
                break;
            }
            Err(error) if error.kind() == ErrorKind::Conflict && tried < TRIES => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
