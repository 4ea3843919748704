//! Events that are masked, or go to a table of the application, in the transaction that takes them out of the log.

use postrider_core::{ArchiveOptions, ArchiveTable, ByteBudget, Result};
use postrider_sql::archive::{Kind, TargetColumn, archived, blame, check_target, mapped, not_unique};
use postrider_sql::event::Names;
use postrider_sql::{Call, Columns, Dialect, statement};
use sqlx_core::query::query;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::error::failed;
use crate::row;
use crate::sql::SqliteDialect;
use crate::store::SqliteStore;

const OP: &str = "archive";

/// How many of these events, from the first on, go through memory at once.
pub(crate) async fn fitting(store: &SqliteStore, conn: &mut SqliteConnection, ids: &[i64]) -> Result<usize> {
    let sizes = store.sql.query(statement!("sweep_sizes.sql")).bind(serde_json::Value::from(ids).to_string());
    let mut fill = ByteBudget::new(ArchiveOptions::BYTES);
    for (count, row) in sizes.fetch_all(conn, OP).await?.iter().enumerate() {
        if !fill.takes(row.number(0, OP)?.unsigned_abs()) {
            return Ok(count);
        }
    }
    Ok(ids.len())
}

/// Files the events of these ids, a JSON array.
pub(crate) async fn file(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    archiving: &ArchiveOptions,
    ids: &str,
    now: i64,
) -> Result<()> {
    let rows = store.sql.query(statement!("sweep_take.sql")).bind(ids).fetch_all(conn, OP).await?;
    let mut names = Names::default();
    let columns = match &archiving.target {
        Some(target) => columns(store, conn, target).await?,
        None => Vec::new(),
    };
    for row in &rows {
        let mut event = row::decoded(row, &mut names, OP)?.event;
        archiving.mask.apply(&mut event);
        match &archiving.target {
            None => {
                let insert = store.sql.query(statement!("sweep_file.sql"));
                let values = archived(&event, now).into_iter();
                values.fold(insert, Call::bind).execute(conn, OP).await?;
            }
            Some(target) => {
                let insert = query(AssertSqlSafe(insert_into(target)));
                let insert = mapped(&event, target, &columns, now).fold(insert, SqliteDialect::bind);
                let done = insert.execute(&mut *conn).await;
                done.map_err(|error| blame(target, &failed(OP)(error)))?;
            }
        }
    }
    Ok(())
}

fn insert_into(target: &ArchiveTable) -> String {
    let places: Vec<String> = (1..=target.columns().len()).map(|place| format!("?{place}")).collect();
    let skip = match target.quoted_existing() {
        Some(column) => format!(" on conflict ({column}) do nothing"),
        None => String::new(),
    };
    format!(
        "insert into {} ({}) values ({}){skip}",
        target.quoted_table(),
        target.quoted_columns(),
        places.join(", ")
    )
}

async fn columns(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    target: &ArchiveTable,
) -> Result<Vec<TargetColumn>> {
    let (schema, table) = target.table();
    let look = store.sql.query(statement!("target.sql")).bind(table).bind(schema.unwrap_or("main"));
    let column = |row: &SqliteRow| {
        let (name, needed) = (row.text(0, OP)?.into_owned(), row.flag(2, OP)?);
        Ok(TargetColumn { name, kind: kind(&row.text(1, OP)?), needed })
    };
    look.fetch_all(conn, OP).await?.iter().map(column).collect()
}

fn kind(declared: &str) -> Kind {
    let declared = declared.to_uppercase();
    let is_text = ["TEXT", "CHAR", "CLOB"].iter().any(|part| declared.contains(part));
    if is_text { Kind::Text } else { Kind::Other }
}

/// Whether a table of the application can take events.
pub(crate) async fn check(store: &SqliteStore, target: &ArchiveTable) -> Result<()> {
    let mut conn = store.conn(OP).await?;
    check_target(target, &columns(store, &mut conn, target).await?)?;
    // It is understood and not carried out: SQLite says what it thinks of it.
    let explained = query(AssertSqlSafe(format!("explain {}", insert_into(target))));
    match explained.fetch_all(&mut *conn).await {
        Ok(_) => Ok(()),
        Err(error) if error.to_string().contains("ON CONFLICT clause does not match") => {
            Err(not_unique(target))
        }
        Err(error) => Err(blame(target, &failed(OP)(error))),
    }
}
