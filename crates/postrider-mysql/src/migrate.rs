//! The schema and its versions. Forward only.
//!
//! DDL commits by itself here, so a migration is not one transaction: every statement of it may run twice, and its version is
//! written last. Publishers go on meanwhile.

use std::time::{Duration, Instant};

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::Columns;
use postrider_sql::migration::{Migration, refuse_newer, refuse_other};
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_mysql::{MySqlConnection, MySqlPool};

use crate::error::{acquire, failed};
use crate::existing::{Existing, is_grant};
use crate::limit;
use crate::pools::{SESSION, Session};
use crate::routines;
use crate::script::{for_server, statements};
use crate::server::{self, Kind};

const MIGRATIONS: [Migration; 12] = [
    Migration { version: 1, name: "log", text: include_str!("../sql/migrations/0001_log.sql") },
    Migration { version: 2, name: "lanes", text: include_str!("../sql/migrations/0002_lanes.sql") },
    Migration { version: 3, name: "retention", text: include_str!("../sql/migrations/0003_retention.sql") },
    Migration {
        version: 4,
        name: "proofs",
        text: concat!(
            include_str!("../sql/migrations/0004_proofs.sql"),
            include_str!("../sql/migrations/0004_proofs_settle.sql")
        ),
    },
    Migration { version: 5, name: "running", text: include_str!("../sql/migrations/0005_running.sql") },
    Migration { version: 6, name: "due", text: include_str!("../sql/migrations/0006_due.sql") },
    Migration { version: 7, name: "away", text: include_str!("../sql/migrations/0007_away.sql") },
    Migration { version: 8, name: "relays", text: include_str!("../sql/migrations/0008_relays.sql") },
    Migration { version: 9, name: "attempts", text: include_str!("../sql/migrations/0009_attempts.sql") },
    Migration { version: 10, name: "limits", text: include_str!("../sql/migrations/0010_limits.sql") },
    Migration { version: 11, name: "refusals", text: include_str!("../sql/migrations/0011_refusals.sql") },
    Migration { version: 12, name: "rows", text: include_str!("../sql/migrations/0012_rows.sql") },
];

const LATEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

const TABLE: &str = "create table if not exists postrider_migration (
    version    int not null primary key,
    name       varchar(200) not null,
    applied_at datetime(6) not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin";

const APPLIED: &str =
    "insert ignore into postrider_migration (version, name, applied_at) values (?, ?, utc_timestamp(6))";

/// One process migrates a database at a time; the name is of the database, and short enough for both servers.
macro_rules! lock_name {
    () => {
        "concat('postrider migrate ', left(sha2(database(), 256), 32))"
    };
}

const LOCK: &str = concat!("select get_lock(", lock_name!(), ", ?) as locked");
const UNLOCK: &str = concat!("do release_lock(", lock_name!(), ")");
/// Which connection has the lock; null if none.
const LOCKED_BY: &str = concat!("select cast(is_used_lock(", lock_name!(), ") as signed) as holder");
/// Whose it is; nobody's for who may not see it.
const ACCOUNT: &str =
    "select concat(user, '@', host) as account from information_schema.processlist where id = ?";

/// How long a migration waits for another one, or for whoever else has its lock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// After this time somebody is told what it waits for.
const TELL_AFTER: Duration = Duration::from_secs(3);

/// A connection of the pool with settings of our own: it is closed afterwards, so that the application never gets it.
async fn session(pool: &MySqlPool, op: &'static str) -> Result<Session> {
    let mut conn = acquire(pool, op).await?;
    conn.give_up();
    raw_sql(SESSION).execute(&mut *conn).await.map_err(failed(op))?;
    Ok(conn)
}

/// The version of the schema in a database; 0 where there is none.
pub async fn schema_version(pool: &MySqlPool) -> Result<i64> {
    let mut conn = session(pool, "migrate").await?;
    version(&mut conn, "migrate").await
}

/// Returns the pending migrations as SQL, for a DBA to run with the server's own client; or what creates the triggers and
/// routines that are missing. Empty if the database is up to date.
pub async fn migration_sql(pool: &MySqlPool) -> Result<String> {
    const OP: &str = "migrate";
    let mut conn = session(pool, OP).await?;
    let kind = server::check(&mut conn, OP).await?;
    let found = version(&mut conn, OP).await?;
    refuse_newer(found, LATEST, OP)?;
    let mut existing = Existing::of(&mut conn, kind, OP).await?;
    if found == LATEST {
        let repairs = routines::repairs(&mut conn, kind, &mut existing, OP).await?;
        return Ok(script(&repairs, &existing));
    }
    let mut pending = vec![TABLE.to_owned()];
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        let statements = limit::filled(&mut conn, statements(migration.text), OP).await?;
        pending.extend(for_server(&statements, kind, &mut existing));
        let Migration { version, name, .. } = migration;
        pending.push(format!(
            "insert ignore into postrider_migration (version, name, applied_at) values ({version}, '{name}', utc_timestamp(6))"
        ));
    }
    if found > 0 {
        // What an earlier version made otherwise, and no migration makes anew.
        let repairs = routines::repairs(&mut conn, kind, &mut existing, OP).await?;
        let missing: Vec<_> = repairs.into_iter().filter(|statement| !pending.contains(statement)).collect();
        pending.extend(missing);
    }
    Ok(script(&pending, &existing))
}

fn script(statements: &[String], existing: &Existing) -> String {
    let lines: String = statements.iter().map(|statement| format!("{statement}\n//\n")).collect();
    let warning = existing.warning().map(|warning| format!("-- {warning}\n")).unwrap_or_default();
    if lines.is_empty() { lines } else { format!("{warning}delimiter //\n{SESSION}\n//\n{lines}") }
}

/// The statements of all migrations.
pub(crate) fn all_statements() -> Vec<String> {
    MIGRATIONS.iter().flat_map(|migration| statements(migration.text)).collect()
}

async fn version(conn: &mut MySqlConnection, op: &'static str) -> Result<i64> {
    let there = query(
        "select 1 from information_schema.tables where table_schema = database() and table_name = 'postrider_migration'",
    );
    if there.fetch_optional(&mut *conn).await.map_err(failed(op))?.is_none() {
        return Ok(0);
    }
    let row = query("select coalesce(max(version), 0) as version from postrider_migration");
    row.fetch_one(conn).await.map_err(failed(op))?.number("version", op)
}

/// Brings an empty database to an older version of the schema. For tests of upgrades.
#[doc(hidden)]
pub async fn migrate_to(pool: &MySqlPool, version: i64) -> Result<()> {
    const OP: &str = "migrate";
    let mut conn = session(pool, OP).await?;
    let kind = server::check(&mut conn, OP).await?;
    run(&mut conn, TABLE.to_owned(), OP).await?;
    let mut existing = Existing::of(&mut conn, kind, OP).await?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version <= version) {
        apply_one(&mut conn, migration, kind, &mut existing, OP).await?;
    }
    Ok(())
}

/// Brings the schema up to date, makes its triggers and routines anew where they are missing, and sets the largest payload, if one is given.
/// Many may do it at once; one of them does.
pub(crate) async fn migrate(pool: &MySqlPool, max_payload: Option<usize>, patience: Duration) -> Result<()> {
    const OP: &str = "migrate";
    let mut conn = session(pool, OP).await?;
    let kind = server::check(&mut conn, OP).await?;
    let found = version(&mut conn, OP).await?;
    refuse_newer(found, LATEST, OP)?;
    if found == LATEST
        && routines::missing(&mut conn, OP).await?.is_empty()
        && is_set(&mut conn, max_payload, OP).await?
    {
        return Ok(());
    }
    lock(&mut conn, patience, OP).await?;
    let done = async {
        apply(&mut conn, kind, OP).await?;
        set(&mut conn, max_payload, kind, OP).await
    };
    let done = done.await;
    query(UNLOCK).execute(&mut *conn).await.map_err(failed(OP))?;
    done
}

/// Takes the lock of migrations. Another migration is waited for, and whoever else has the lock, because any user can take it; but
/// not without a word, and not for ever.
async fn lock(conn: &mut MySqlConnection, patience: Duration, op: &'static str) -> Result<()> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        // It answers in between, so that somebody can be told.
        let wait = TELL_AFTER.min(patience.saturating_sub(begun.elapsed())).as_secs();
        let locked = query(LOCK).bind(wait).fetch_one(&mut *conn).await.map_err(failed(op))?;
        if locked.maybe_number("locked", op)? == Some(1) {
            return Ok(());
        }
        let is_over = begun.elapsed() + Duration::from_secs(1) > patience;
        if is_over || !told {
            let (who, remedy) = holder(conn, op).await?;
            let what = format!("the lock for migrations of this database is held by {who}");
            if is_over {
                return Err(Error::new(ErrorKind::Conflict, op, what).with_hint(remedy));
            }
            tracing::warn!("{what}; waiting until it is free");
            told = true;
        }
    }
}

/// Who has the lock of migrations, and what to do about it.
async fn holder(conn: &mut MySqlConnection, op: &'static str) -> Result<(String, String)> {
    let row = query(LOCKED_BY).fetch_one(&mut *conn).await.map_err(failed(op))?;
    let Some(id) = row.maybe_number("holder", op)? else {
        return Ok(("a connection that has ended since".into(), "try again".into()));
    };
    let account = query(ACCOUNT).bind(id).fetch_optional(conn).await.ok().flatten();
    let account = account.and_then(|row| row.maybe_text("account", op).ok().flatten());
    let account = account.map(|account| format!(" ({account})")).unwrap_or_default();
    let remedy = format!(
        "wait until its migration has ended, or end that connection as an administrator (`kill {id}`), and try again"
    );
    Ok((format!("connection {id} of the database{account}"), remedy))
}

/// Whether the largest payload is the one that is given; nobody who may not ask for it may set it.
async fn is_set(conn: &mut MySqlConnection, max_payload: Option<usize>, op: &'static str) -> Result<bool> {
    if max_payload.is_none() {
        return Ok(true);
    }
    let known = limit::known(conn, op).await?;
    Ok(known.is_none() || known == max_payload)
}

async fn set(
    conn: &mut MySqlConnection,
    max_payload: Option<usize>,
    kind: Kind,
    op: &'static str,
) -> Result<()> {
    let Some(bytes) = max_payload else { return Ok(()) };
    if is_set(conn, max_payload, op).await? {
        return Ok(());
    }
    let mut existing = Existing::of(conn, kind, op).await?;
    for change in limit::changes(bytes, kind, &mut existing, op)? {
        match run(conn, change, op).await {
            // Whoever may not set it may use it as it is: it is the owner's.
            Err(error) if error.kind() == ErrorKind::Denied => {
                tracing::warn!(error = %error, "this user may not set max_payload; the log keeps its limit");
                return Ok(());
            }
            done => done?,
        }
    }
    warn(&existing);
    Ok(())
}

/// Says what is lost and can't be seen.
fn warn(existing: &Existing) {
    if let Some(warning) = existing.warning() {
        tracing::warn!("{warning}");
    }
}

async fn apply(conn: &mut MySqlConnection, kind: Kind, op: &'static str) -> Result<()> {
    let found = version(conn, op).await?;
    refuse_newer(found, LATEST, op)?;
    if found == 0 {
        run(conn, TABLE.to_owned(), op).await?;
    }
    let mut existing = Existing::of(conn, kind, op).await?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        apply_one(conn, migration, kind, &mut existing, op).await?;
        tracing::info!(version = migration.version, name = migration.name, "migrated");
    }
    let repairs = routines::repairs(conn, kind, &mut existing, op).await?;
    if !repairs.is_empty() {
        tracing::warn!("creating triggers, routines or views that were missing or of another version");
    }
    for statement in repairs {
        run(conn, statement, op).await?;
    }
    warn(&existing);
    Ok(())
}

async fn apply_one(
    conn: &mut MySqlConnection,
    migration: &Migration,
    kind: Kind,
    existing: &mut Existing,
    op: &'static str,
) -> Result<()> {
    let statements = limit::filled(conn, statements(migration.text), op).await?;
    for statement in for_server(&statements, kind, existing) {
        run(conn, statement, op).await?;
    }
    let applied = query(APPLIED).bind(migration.version).bind(migration.name);
    applied.execute(conn).await.map_err(failed(op))?;
    Ok(())
}

async fn run(conn: &mut MySqlConnection, statement: String, op: &'static str) -> Result<()> {
    let grant = is_grant(&statement).then(|| statement.clone());
    match (raw_sql(AssertSqlSafe(statement)).execute(conn).await.map_err(failed(op)), grant) {
        // The schema is good without it, and the user of the grant may be gone.
        (Err(error), Some(grant)) if error.kind() == ErrorKind::Denied => {
            tracing::warn!(error = %error, "can't give a privilege again that MySQL forgot; run as an administrator: {grant}");
            Ok(())
        }
        (done, _) => done.map(drop),
    }
}

/// Refuses a schema that is not the one that this program knows; `planted` ones may have other routines.
pub(crate) async fn check(pool: &MySqlPool, planted: bool) -> Result<()> {
    const OP: &str = "connect";
    let mut conn = session(pool, OP).await?;
    server::check(&mut conn, OP).await?;
    refuse_other(version(&mut conn, OP).await?, LATEST, OP)?;
    if planted { Ok(()) } else { routines::check(&mut conn, OP).await }
}

/// Whether the next event gets a place in the log behind all that was read, asked on a session of our own. A publisher can't see that;
/// relays do. Gives the largest payload, where this user may ask for it.
pub(crate) async fn ready(pool: &MySqlPool, op: &'static str) -> Result<Option<usize>> {
    let mut conn = session(pool, op).await?;
    let max_payload = limit::known(&mut conn, op).await?;
    if !routines::is_publisher(&mut conn, op).await? {
        crate::position::check_end(&mut conn, op).await?;
    }
    Ok(max_payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_is_taken_apart_where_its_statements_end() {
        for statement in all_statements() {
            let word = statement.split(' ').next().unwrap_or_default();
            let known = [
                "alter",
                "commit",
                "create",
                "deallocate",
                "drop",
                "execute",
                "insert",
                "prepare",
                "set",
                "start",
                "update",
            ];
            assert!(known.contains(&word), "{statement}");
            assert_eq!(statement.matches("\ncreate ").count(), 0, "{statement}");
        }
        assert!(all_statements().len() > 60);
    }

    #[test]
    fn no_migration_needs_a_function_that_newer_servers_lack() {
        for statement in all_statements() {
            for gone in ["md5(", "sha1(", "sha(", "password("] {
                assert!(!statement.contains(gone), "{gone} is not built into MySQL 9.7: {statement}");
            }
        }
    }
}
