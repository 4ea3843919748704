//! The largest payload that the log takes: one setting for all publishers, in any language.
//!
//! It is a function with a number in it, which the trigger of the log calls. This module owns how that number is asked for, chosen and
//! replaced. Whoever may not call the function is told by the trigger.

use postrider_core::{Error, ErrorKind, Limits, Result};
use postrider_sql::Columns;
use sqlx_core::query::query;
use sqlx_mysql::MySqlConnection;

use crate::error::{failed, number_of};
use crate::existing::Existing;
use crate::routines::definition_of;
use crate::script::for_server;
use crate::server::Kind;

/// The function.
pub(crate) const NAME: &str = "postrider_max_payload";
const CALL: &str = "postrider_max_payload()";
/// Stands in for it on MySQL while it is made anew.
const SPARE_CALL: &str = "postrider_max_payload_spare()";
/// The trigger that calls it.
const CALLER: &str = "postrider_event_record";
/// Where the number is in the statement that makes it.
const PLACE: &str = "{max_payload}";

const OF_A_NEW_LOG: i64 = Limits::PAYLOAD as i64;
/// A log that has events goes on taking what it took until somebody sets a limit: the server takes no larger packet.
const OF_A_LOG_WITH_EVENTS: i64 = 1 << 30;
/// The database keeps no larger value.
const LARGEST: i64 = (1 << 32) - 1;

const NO_TABLE: u16 = 1146;
const NO_FUNCTION: u16 = 1305;
const NO_RIGHT: u16 = 1370;

/// The limit; nothing where this user may not ask for it.
pub(crate) async fn known(conn: &mut MySqlConnection, op: &'static str) -> Result<Option<usize>> {
    match query("select postrider_max_payload() as bytes").fetch_one(conn).await {
        Ok(row) => Ok(Some(usize::try_from(row.number("bytes", op)?).unwrap_or(usize::MAX))),
        Err(error) if number_of(&error) == Some(NO_RIGHT) => Ok(None),
        Err(error) => Err(failed(op)(error)),
    }
}

/// Statements of migrations with the number in them. Where the function is there already, it is left alone: the number in it was set.
pub(crate) async fn filled(
    conn: &mut MySqlConnection,
    mut statements: Vec<String>,
    op: &'static str,
) -> Result<Vec<String>> {
    if !statements.iter().any(|statement| statement.contains(PLACE)) {
        return Ok(statements);
    }
    if asked(conn, "select postrider_max_payload() as bytes", op).await?.is_some() {
        statements.retain(|statement| !statement.contains(PLACE));
        return Ok(statements);
    }
    // Who set it may have been cut off.
    let bytes = match asked(conn, "select postrider_max_payload_spare() as bytes", op).await? {
        Some(bytes) => bytes,
        None if has_events(conn, op).await? => OF_A_LOG_WITH_EVENTS,
        None => OF_A_NEW_LOG,
    };
    Ok(statements.iter().map(|statement| statement.replace(PLACE, &bytes.to_string())).collect())
}

/// What a function says; nothing where there is none.
async fn asked(conn: &mut MySqlConnection, sql: &'static str, op: &'static str) -> Result<Option<i64>> {
    match query(sql).fetch_one(conn).await {
        Ok(row) => row.number("bytes", op).map(Some),
        Err(error) if number_of(&error) == Some(NO_FUNCTION) => Ok(None),
        Err(error) => Err(failed(op)(error)),
    }
}

async fn has_events(conn: &mut MySqlConnection, op: &'static str) -> Result<bool> {
    let sql =
        "select exists (select 1 from postrider_event) or exists (select 1 from postrider_archive) as used";
    match query(sql).fetch_one(conn).await {
        Ok(row) => row.flag("used", op),
        Err(error) if number_of(&error) == Some(NO_TABLE) => Ok(false),
        Err(error) => Err(failed(op)(error)),
    }
}

/// The statements that set it: publishers have the old limit or the new one, and are never without.
pub(crate) fn changes(
    bytes: usize,
    kind: Kind,
    existing: &mut Existing,
    op: &'static str,
) -> Result<Vec<String>> {
    let bytes = i64::try_from(bytes).ok().filter(|bytes| (1..=LARGEST).contains(bytes)).ok_or_else(|| {
        let message =
            "max_payload must be at least 1 byte and below 4 GiB, the largest value that the database can store";
        Error::new(ErrorKind::Invalid, op, message)
    })?;
    let made = definition_of(NAME).replace(PLACE, &bytes.to_string());
    if kind == Kind::Mariadb {
        return Ok(for_server(&[made], kind, existing));
    }
    // A function can't be replaced there, and not be made while a table is locked: the trigger calls another one meanwhile. Who is cut off
    // in the middle leaves a trigger and the function that it calls.
    let caller = definition_of(CALLER);
    let spare_name = SPARE_CALL.trim_end_matches("()");
    let steps = [made.replace(CALL, SPARE_CALL), caller.replace(CALL, SPARE_CALL), made, caller];
    let mut changes = for_server(&steps, kind, existing);
    changes.push(format!("drop function if exists {spare_name}"));
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trigger_of_the_log_always_calls_a_function_that_is_there() {
        let changes = changes(77, Kind::Mysql, &mut Existing::default(), "migrate").expect("statements");
        let (mut functions, mut called) = (vec![CALL.to_owned()], CALL);
        for change in &changes {
            if let Some(gone) = change.strip_prefix("drop function if exists ") {
                functions.retain(|function| *function != format!("{gone}()"));
            } else if let Some(made) = change.strip_prefix("create function ") {
                functions.push(made.split(' ').next().expect("a name").to_owned());
                assert!(made.ends_with("return 77"), "{made}");
            } else if change.starts_with("create trigger postrider_event_record ") {
                called = if change.contains(SPARE_CALL) { SPARE_CALL } else { CALL };
            }
            assert!(functions.iter().any(|function| function == called), "{called} is gone: {change}");
        }
        assert_eq!((functions.as_slice(), called), ([CALL.to_owned()].as_slice(), CALL));
        let replaced =
            super::changes(77, Kind::Mariadb, &mut Existing::default(), "migrate").expect("a statement");
        assert!(
            replaced.len() == 1 && replaced[0].starts_with("create or replace function "),
            "{replaced:?}"
        );
    }

    #[test]
    fn a_limit_that_no_payload_or_no_column_meets_is_refused() {
        for bytes in [0, usize::MAX] {
            let error =
                changes(bytes, Kind::Mysql, &mut Existing::default(), "migrate").expect_err("refused");
            assert!(error.message().contains("max_payload must be"), "{error}");
        }
    }
}
