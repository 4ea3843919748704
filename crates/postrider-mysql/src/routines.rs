//! The triggers, routines and views of the schema: whether they are there and are this version's, and making them anew.
//!
//! Dumps leave routines out unless they are asked for (`--routines`): the tables say then that they are migrated, and nothing works.

use std::collections::HashMap;

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::Columns;
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::error::failed;
use crate::existing::Existing;
use crate::limit;
use crate::migrate::all_statements;
use crate::script::{Definition, Object, dropped, for_server, plain};
use crate::server::Kind;

/// What there is, with what it does where this user may see it.
const THERE: &str = "select 'routine' as sort, routine_name as name, routine_definition as body from information_schema.routines \
     where routine_schema = database() and routine_name like 'postrider\\_%' \
     union all select 'trigger', trigger_name, action_statement from information_schema.triggers \
     where trigger_schema = database() and event_object_table like 'postrider\\_%' \
     union all select 'view', table_name, null from information_schema.tables \
     where table_schema = database() and table_name like 'postrider\\_%' and table_type = 'VIEW'";

/// Records an event, for a look at what its trigger makes of it.
const TRIED: &str = "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) \
     values ('postrider.check', 'postrider', 'check', '1')";

/// Whether this user sees the lanes: a server shows who asks only what that user has a right to.
const LANES: &str = "select 1 from information_schema.tables where table_schema = database() and table_name = 'postrider_lane'";

/// What a publisher may call.
const FOR_PUBLISHERS: [&str; 2] = ["postrider_record", "postrider_record_with"];

/// Whether this user may record and do nothing else; what only relays need is not theirs to judge then, and can't be seen.
pub(crate) async fn is_publisher(conn: &mut MySqlConnection, op: &'static str) -> Result<bool> {
    Ok(query(LANES).fetch_optional(conn).await.map_err(failed(op))?.is_none())
}

/// The definitions that this version ends with: of each name the last one, unless it was taken away.
fn definitions(statements: &[String]) -> Vec<(Definition<'_>, &str)> {
    let mut made: Vec<(Definition<'_>, &str)> = Vec::new();
    for statement in statements {
        let definition = Definition::of(statement);
        let name = definition.map(|made| made.name).or_else(|| dropped(statement));
        made.retain(|(before, _)| Some(before.name) != name);
        made.extend(definition.map(|definition| (definition, statement.as_str())));
    }
    made
}

/// The statement that makes what has this name, as this version ends with it.
pub(crate) fn definition_of(name: &str) -> String {
    let statements = all_statements();
    let made = definitions(&statements).into_iter().find(|(definition, _)| definition.name == name);
    made.map(|(_, statement)| statement.to_owned()).unwrap_or_default()
}

/// What is missing, or does something else than it should: its name and the statement that makes it.
pub(crate) async fn missing(conn: &mut MySqlConnection, op: &'static str) -> Result<Vec<(String, String)>> {
    let rows = query(THERE).fetch_all(&mut *conn).await.map_err(failed(op))?;
    let mut there: HashMap<(String, String), Option<String>> = HashMap::new();
    for row in &rows {
        there.insert((word(row, 0, op)?, word(row, 1, op)?), row.maybe_text(2, op)?);
    }
    // A user who may not create triggers does not see them: then one is tried.
    let blind = !there.keys().any(|(sort, _)| sort == "trigger");
    let tried = blind && is_triggered(conn).await;
    let publisher = is_publisher(conn, op).await?;
    let is_right = |definition: &Definition<'_>| {
        let is_event_trigger =
            definition.object == Object::Trigger && definition.name == "postrider_event_record";
        if publisher && !is_event_trigger && !FOR_PUBLISHERS.contains(&definition.name) {
            return true;
        }
        let sort = match definition.object {
            Object::Trigger => "trigger",
            Object::View => "view",
            Object::Procedure | Object::Function => "routine",
        };
        match there.get(&(sort.to_owned(), definition.name.to_owned())) {
            // The number in it is a setting.
            Some(Some(_)) if definition.name == limit::NAME => true,
            Some(Some(body)) => plain(body) == definition.body(),
            // A routine that this user may call but not read can't be checked here.
            Some(None) => true,
            // Plain inserts are all that some publishers do.
            None if publisher && FOR_PUBLISHERS.contains(&definition.name) => tried,
            None => definition.object == Object::Trigger && tried,
        }
    };
    let statements = all_statements();
    let wrong = definitions(&statements).into_iter().filter(|(definition, _)| !is_right(definition));
    Ok(wrong.map(|(definition, statement)| (definition.name.to_owned(), statement.to_owned())).collect())
}

fn word(row: &MySqlRow, column: usize, op: &'static str) -> Result<String> {
    Ok(row.text(column, op)?.into_owned())
}

/// Whether an event that is recorded gets its id; it is taken back.
async fn is_triggered(conn: &mut MySqlConnection) -> bool {
    let began = raw_sql("start transaction").execute(&mut *conn).await;
    let tried = query(TRIED).execute(&mut *conn).await;
    let given = query("select 1 from postrider_event where id = 0").fetch_optional(&mut *conn).await;
    let ended = raw_sql("rollback").execute(conn).await;
    // A user who may only insert can't look; the table refuses a row without its trigger anyway.
    let placed = given.map_or(true, |row| row.is_none());
    began.is_ok() && tried.is_ok() && ended.is_ok() && placed
}

/// Refuses a schema without its triggers and routines.
pub(crate) async fn check(conn: &mut MySqlConnection, op: &'static str) -> Result<()> {
    let missing = missing(conn, op).await?;
    sentence(&missing).map_or(Ok(()), |message| Err(Error::new(ErrorKind::NotMigrated, op, message)))
}

/// What is said of those that are missing.
pub(crate) fn sentence(missing: &[(String, String)]) -> Option<String> {
    const MOST: usize = 4;
    let names: Vec<&str> = missing.iter().take(MOST).map(|(name, _)| name.as_str()).collect();
    let more = missing.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!missing.is_empty()).then(|| {
        format!(
            "these triggers, routines or views are missing or of another version: {}{more}; run `postrider migrate` to \
             create them (a dump contains routines only if it is made with --routines)",
            names.join(", ")
        )
    })
}

/// The statements that make anew what is missing in a database that has these routines.
pub(crate) async fn repairs(
    conn: &mut MySqlConnection,
    kind: Kind,
    existing: &mut Existing,
    op: &'static str,
) -> Result<Vec<String>> {
    let missing = missing(conn, op).await?;
    let statements: Vec<String> = missing.into_iter().map(|(_, statement)| statement).collect();
    let statements = limit::filled(conn, statements, op).await?;
    Ok(for_server(&statements, kind, existing))
}
