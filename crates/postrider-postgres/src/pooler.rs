//! Poolers: whether a connection has a session of its own, or each of its transactions whichever the pooler has free.
//!
//! Behind a pooler in transaction mode nothing may be left in a session, and nothing found there: no setting, no statement that was
//! prepared, no LISTEN. Every statement is then prepared without a name and runs in a transaction that brings its settings along.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::Result;
use postrider_sql::session::ANSWER;
use sqlx_core::connection::Connection;
use sqlx_core::error::Error as SqlxError;
use sqlx_core::executor::Executor;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::row::Row;
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr, SqlStr};
use sqlx_postgres::{PgConnectOptions, PgConnection, PgDatabaseError};
use uuid::Uuid;

/// How many other connections are made to tell a pooler's mode.
const ROUNDS: usize = 8;
/// How long an answer is waited for while another connection keeps a session: a pooler may have no second one.
const SECOND: Duration = Duration::from_secs(3);

/// The code of a server that takes no more connections.
const FULL: &str = "53300";

/// What is between a program and its PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooler {
    /// Find out, when the outbox is made.
    #[default]
    Detect,
    /// A pooler in transaction mode: sessions are shared, transaction by transaction.
    Transaction,
    /// None, or one in session mode: each connection has a session of its own.
    None,
}

/// How the statements of an outbox, and of the stores made of it, use their sessions.
#[derive(Debug, Default)]
pub(crate) struct SessionMode {
    shared: AtomicBool,
    /// Since when it is known that sessions are shared, if that became known by an error.
    since: Mutex<Option<Instant>>,
}

impl SessionMode {
    /// Whether sessions are shared with other clients.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    pub(crate) fn share(&self) {
        self.shared.store(true, Ordering::Relaxed);
    }

    /// Learns from an error that only a pooler can cause: the statement that a connection prepared is in another session.
    pub(crate) fn notice(&self, error: &SqlxError) {
        let SqlxError::Database(database) = error else { return };
        let message = database.try_downcast_ref::<PgDatabaseError>().map_or("", PgDatabaseError::message);
        if !is_of_a_pooler(&database.code().unwrap_or_default(), message) {
            return;
        }
        // Also later: a statement that was made before this was known may run on a connection that was made after it.
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if !self.shared.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "found a pooler in transaction mode that was not detected at the start; set store.pooler to transaction"
            );
        }
    }

    /// Whether a connection of that age was made before it was known that its session is shared: it counts on what it has prepared.
    pub(crate) fn outdates(&self, age: Duration) -> bool {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| since.elapsed() <= age)
    }
}

/// Whether an error says that a prepared statement is not the one that was prepared on this connection.
fn is_of_a_pooler(code: &str, message: &str) -> bool {
    match code {
        "26000" | "42P05" => true,
        "08P01" => message.starts_with("bind message") || message.starts_with("insufficient data"),
        _ => false,
    }
}

/// The begin of a transaction of the store's own, where sessions are shared: what [`configure_session`](crate::store) sets for a session,
/// as far as it matters to a statement. It ends with the transaction.
pub(crate) fn begin_with_settings(patience: i64) -> SqlStr {
    let text = format!(
        "begin isolation level read committed read write not deferrable; \
         select set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), \
         set_config('plan_cache_mode', 'force_generic_plan', true), \
         set_config('max_parallel_workers_per_gather', '0', true), \
         set_config('standard_conforming_strings', 'on', true), set_config('row_security', 'on', true), \
         set_config('lock_timeout', '{patience}', true), set_config('statement_timeout', '0', true), \
         set_config('idle_in_transaction_session_timeout', '{patience}', true), \
         case when current_setting('server_version_num')::integer >= 170000 \
              then set_config('transaction_timeout', '0', true) end"
    );
    AssertSqlSafe(text).into_sql_str()
}

/// Whether connections to an address share their sessions, transaction by transaction.
///
/// A server shows a connection under its name as soon as it is made; a pooler takes a session for it when it first has something to
/// say. So one that has a name of its own and says nothing is looked for: nearly always it is there, and that is all. Where it is not,
/// there is a pooler, or several servers behind one address. Then backends tell its mode: two connections that are open at once never
/// have the same one, and one never has two, unless something deals them out. So others begin transactions, each of which may get the
/// session that the first one has just used, or take it away from it.
///
/// It leaves nothing in the sessions: its queries use the protocol without prepared statements.
pub(crate) async fn is_shared(
    first: &mut PgConnection,
    address: &PgConnectOptions,
) -> Result<bool, SqlxError> {
    let name = format!("postrider {}", Uuid::new_v4());
    let silent = match connect(&address.clone().application_name(&name)).await {
        Ok(silent) => silent,
        // The server itself takes no more connections: a pooler would have taken this one.
        Err(SqlxError::Database(error)) if error.code().as_deref() == Some(FULL) => return Ok(false),
        // A pooler that is full looks like this, and so does a server that goes away just now: nobody can tell.
        Err(error) => return Err(error),
    };
    let look = format!("select exists (select from pg_stat_activity where application_name = '{name}')");
    let is_there = match ask(first, AssertSqlSafe(look).into_sql_str()).await {
        Ok(row) => row.try_get(0)?,
        // A server that hides who is there: the rounds will tell.
        Err(SqlxError::Database(_)) => false,
        Err(error) => return Err(error),
    };
    drop(silent);
    if is_there {
        return Ok(false);
    }
    let mut holders = Vec::new();
    for _ in 0..ROUNDS {
        let own = backend(first, "select pg_backend_pid()").await?;
        let Ok(mut other) = connect(address).await else { break };
        let Ok(taken) =
            tokio::time::timeout(SECOND, backend(&mut other, "begin; select pg_backend_pid()")).await
        else {
            // It has no session left for this one: whatever its mode, what works with shared ones works.
            return Ok(true);
        };
        let again = tokio::time::timeout(SECOND, backend(first, "select pg_backend_pid()")).await;
        if taken? == own || again.map_or(Ok(true), |again| again.map(|again| again != own))? {
            return Ok(true);
        }
        holders.push(other);
    }
    // Each kept its own: a pooler in session mode, or several servers.
    Ok(false)
}

/// A connection, within the time that an answer may take.
pub(crate) async fn connect(address: &PgConnectOptions) -> Result<PgConnection, SqlxError> {
    let silent = |_| Err(SqlxError::Io(std::io::ErrorKind::TimedOut.into()));
    tokio::time::timeout(ANSWER, PgConnection::connect_with(address)).await.unwrap_or_else(silent)
}

async fn backend(connection: &mut PgConnection, sql: &'static str) -> Result<i32, SqlxError> {
    ask(connection, sql.into_sql_str()).await?.try_get(0)
}

async fn ask(connection: &mut PgConnection, sql: SqlStr) -> Result<sqlx_postgres::PgRow, SqlxError> {
    let silent = |_| Err(SqlxError::Io(std::io::ErrorKind::TimedOut.into()));
    tokio::time::timeout(ANSWER, connection.fetch_one(raw_sql(sql))).await.unwrap_or_else(silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_is_elsewhere_tells_of_a_pooler_and_a_broken_connection_does_not() {
        assert!(is_of_a_pooler("26000", "prepared statement \"sqlx_s_1\" does not exist"));
        assert!(is_of_a_pooler("42P05", "prepared statement \"sqlx_s_1\" already exists"));
        assert!(is_of_a_pooler(
            "08P01",
            "bind message supplies 3 parameters, but prepared statement requires 2"
        ));
        assert!(!is_of_a_pooler("08P01", "invalid message"));
        assert!(!is_of_a_pooler("57P01", "terminating connection"));
    }
}
