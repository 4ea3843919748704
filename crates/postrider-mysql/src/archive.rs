//! Events that are masked, or go to a table of the application, in the transaction that takes them out of the log.

use postrider_core::{ArchiveOptions, ArchiveTable, ByteBudget, Recorded, Result};
use postrider_sql::archive::{Kind, TargetColumn, archived, blame, check_target, mapped, not_unique};
use postrider_sql::event::Names;
use postrider_sql::{Columns, Dialect, statement};
use sqlx_core::error::DatabaseError;
use sqlx_core::query::query;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::error::failed;
use crate::row;
use crate::sql::MySqlDialect;
use crate::store::MySqlStore;

const OP: &str = "archive";

/// How many of these events, numbers and ids, go through memory at once, from the first on.
pub(crate) async fn fitting(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    places: &[[i64; 2]],
) -> Result<usize> {
    let (mut fill, mut measured, mut page) = (ByteBudget::new(ArchiveOptions::BYTES), 0, 8);
    while measured < places.len() {
        let some = &places[measured..places.len().min(measured + page)];
        let sizes = store.sql.query(statement!("sweep_sizes.sql")).bind(serde_json::json!(some).to_string());
        for (place, row) in sizes.fetch_all(conn, OP).await?.iter().enumerate() {
            if !fill.takes(row.number(0, OP)?.unsigned_abs()) {
                return Ok(measured + place);
            }
        }
        measured += some.len();
        page *= 2;
    }
    Ok(measured)
}

/// Files the events of these places, a JSON array of numbers and ids.
pub(crate) async fn file(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    archiving: &ArchiveOptions,
    places: &str,
    now: i64,
) -> Result<()> {
    let rows = store.sql.query(statement!("sweep_take.sql")).bind(places).fetch_all(conn, OP).await?;
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
                let insert = query(include_str!("../sql/sweep_file.sql"));
                let insert = archived(&event, now).into_iter().fold(insert, MySqlDialect::bind);
                insert.execute(&mut *conn).await.map_err(failed(OP))?;
            }
            Some(target) => {
                let insert = query(AssertSqlSafe(insert_into(target, "?")));
                let insert = mapped(&event, target, &columns, now).fold(insert, MySqlDialect::bind);
                match insert.execute(&mut *conn).await {
                    Ok(_) => {}
                    // The statement failed and the transaction goes on. Another unique column may be what it fails by.
                    Err(error)
                        if is_duplicate(&error) && is_there(conn, target, &event, &columns, now).await? => {}
                    Err(error) => return Err(blame(target, &failed(OP)(error))),
                }
            }
        }
    }
    Ok(())
}

/// Names are quoted as this server quotes them.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn table(target: &ArchiveTable) -> String {
    let (schema, table) = target.table();
    schema.into_iter().chain([table]).map(quoted).collect::<Vec<_>>().join(".")
}

/// The statement, with the same for every value.
fn insert_into(target: &ArchiveTable, value: &str) -> String {
    let columns: Vec<String> = target.columns().iter().map(|(column, _)| quoted(column)).collect();
    let values = vec![value; columns.len()].join(", ");
    format!("insert into {} ({}) values ({values})", table(target), columns.join(", "))
}

fn is_duplicate(error: &sqlx_core::Error) -> bool {
    error.as_database_error().is_some_and(DatabaseError::is_unique_violation)
}

/// Whether rows that are there already are left alone, and that of this event is one of them.
async fn is_there(
    conn: &mut MySqlConnection,
    target: &ArchiveTable,
    event: &Recorded,
    columns: &[TargetColumn],
    now: i64,
) -> Result<bool> {
    let Some((column, _)) = target.existing_by() else { return Ok(false) };
    let place = target.columns().iter().position(|(name, _)| name == column).unwrap_or_default();
    let text = format!("select 1 from {} where {} = ?", table(target), quoted(column));
    let look = mapped(event, target, columns, now).skip(place).take(1);
    let look = look.fold(query(AssertSqlSafe(text)), MySqlDialect::bind);
    let row = look.fetch_optional(conn).await.map_err(|error| blame(target, &failed(OP)(error)))?;
    Ok(row.is_some())
}

async fn columns(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    target: &ArchiveTable,
) -> Result<Vec<TargetColumn>> {
    let (schema, table) = target.table();
    let look = store.sql.query(statement!("target.sql")).bind(table).bind(schema);
    let column = |row: &MySqlRow| {
        let (name, needed) = (row.text("name", OP)?.into_owned(), row.flag("needed", OP)?);
        Ok(TargetColumn { name, kind: kind(&row.text("kind", OP)?), needed })
    };
    look.fetch_all(conn, OP).await?.iter().map(column).collect()
}

fn kind(data_type: &str) -> Kind {
    match data_type.to_lowercase().as_str() {
        "datetime" | "timestamp" | "date" => Kind::Date,
        text if text.contains("char") || text.contains("text") => Kind::Text,
        _ => Kind::Other,
    }
}

/// Whether a table of the application can take events.
pub(crate) async fn check(store: &MySqlStore, target: &ArchiveTable) -> Result<()> {
    let mut conn = store.conn(OP).await?;
    check_target(target, &columns(store, &mut conn, target).await?)?;
    if let Some((column, _)) = target.existing_by() {
        let (schema, table) = target.table();
        let look = store.sql.query(statement!("target_unique.sql")).bind(table).bind(schema).bind(column);
        if look.fetch_all(&mut conn, OP).await?.is_empty() {
            return Err(not_unique(target));
        }
    }
    // It is understood and not carried out: the server says whether this user may do it.
    let explained = query(AssertSqlSafe(format!("explain {}", insert_into(target, "null"))));
    let explained = explained.fetch_all(&mut *conn).await;
    explained.map(|_| ()).map_err(|error| blame(target, &failed(OP)(error)))
}
