//! Migrations: embedded, numbered, forward only.

use std::time::{Duration, Instant};

use postrider_core::{Error, ErrorKind, Result};
use sqlx_core::executor::Executor;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::row::Row;
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr};
use sqlx_postgres::{PgConnection, PgPool};

use crate::bell::stable_hash;
use crate::error::{acquire, during};
use crate::schema::Schema;
use crate::session::{SessionTransaction, Sessions};
use crate::sql::Sql;

/// Each with its name; the number is its place. Never changed once released: only added to.
const MIGRATIONS: &[(&str, &str)] = &[
    ("log", include_str!("../sql/migrations/0001_log.sql")),
    ("lanes", include_str!("../sql/migrations/0002_lanes.sql")),
    (
        "retention",
        concat!(
            include_str!("../sql/migrations/0003_retention.sql"),
            include_str!("../sql/migrations/0003_retention_views.sql")
        ),
    ),
    ("guard", include_str!("../sql/migrations/0004_guard.sql")),
    ("proofs", include_str!("../sql/migrations/0005_proofs.sql")),
    ("running", include_str!("../sql/migrations/0006_running.sql")),
    ("due", include_str!("../sql/migrations/0007_due.sql")),
    ("away", include_str!("../sql/migrations/0008_away.sql")),
    ("relays", include_str!("../sql/migrations/0009_relays.sql")),
    ("attempts", include_str!("../sql/migrations/0010_attempts.sql")),
    ("privileges", include_str!("../sql/migrations/0011_privileges.sql")),
    ("limits", include_str!("../sql/migrations/0012_limits.sql")),
    ("trigger", include_str!("../sql/migrations/0013_trigger.sql")),
    ("sweep", include_str!("../sql/migrations/0014_sweep.sql")),
    ("sentences", include_str!("../sql/migrations/0015_sentences.sql")),
];

const OLDEST_SERVER: i32 = 130_000;

/// The version of the schema that this program knows.
pub fn schema_version() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// All migrations as SQL, for those whose DBA runs them on a database without the schema.
pub fn migration_sql(schema: &str) -> Result<String> {
    migration_sql_since(schema, 0)
}

/// The migrations that follow a version, as SQL: one transaction, which fails as a whole if the schema is at another version.
pub fn migration_sql_since(schema: &str, applied: i32) -> Result<String> {
    let schema = Schema::new(schema)?;
    refuse_newer(applied, &schema)?;
    if applied == schema_version() {
        return Ok(format!("-- the schema {} is up to date: version {applied}\n", schema.name));
    }
    let mut text = format!("begin;\n{SESSION}");
    text.push_str(
        &schema.fill(&LOCK.replace("{holder}", LOCKED_BY).replace("$1", &lock_of(&schema).to_string())),
    );
    text.push_str(&schema.fill(PREPARE));
    text.push_str(&schema.fill(EXPECT).replace("{version}", &applied.to_string()));
    for (place, (name, sql)) in pending(applied) {
        text.push_str(&format!("\n-- migration {}: {name}\n", place + 1));
        text.push_str(&schema.fill(sql));
        text.push_str(&schema.fill(&format!(
            "insert into {{schema}}.migration (version, name) values ({}, '{name}');\n",
            place + 1
        )));
    }
    text.push_str("commit;\n");
    Ok(text)
}

/// The version of a schema in a database; 0 if it was never made.
pub async fn applied_version(pool: &PgPool, schema: &str) -> Result<i32> {
    let schema = Schema::new(schema)?;
    Ok(look(pool, &schema, "connect").await?.unwrap_or(0))
}

fn pending(applied: i32) -> impl Iterator<Item = (usize, &'static (&'static str, &'static str))> {
    MIGRATIONS.iter().enumerate().skip(usize::try_from(applied).unwrap_or(0))
}

fn lock_of(schema: &Schema) -> i64 {
    stable_hash(&format!("postrider migrate {}", schema.name))
}

/// What a migration needs of its session, whatever a role or a database has set; it ends with the transaction.
const SESSION: &str = "set local standard_conforming_strings = on;
set local search_path = pg_catalog, pg_temp;
set local statement_timeout = 0;
set local check_function_bodies = on;
";

/// How long a migration waits for another one, or for whoever else has its lock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// After this time somebody is told what it waits for.
const TELL_AFTER: Duration = Duration::from_secs(3);
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Who has the advisory lock $1.
const LOCKED_BY: &str = "select 'process ' || l.pid || ' of the database (user ' || coalesce(a.usename, 'unknown') || ')' \
     from pg_locks l left join pg_stat_activity a on a.pid = l.pid \
     where l.locktype = 'advisory' and l.granted and l.objsubid = 1 \
       and l.database = (select oid from pg_database where datname = current_database()) \
       and (l.classid::bigint << 32) | l.objid::bigint = $1";

/// What [`lock`] does, in SQL: $1 is the lock, {holder} says who has it.
const LOCK: &str = "do $$
declare
    begun timestamptz := clock_timestamp();
    told boolean := false;
    holder text;
begin
    while not pg_try_advisory_xact_lock($1) loop
        if not told and clock_timestamp() - begun > interval '3 seconds' then
            holder := ({holder} limit 1);
            raise warning 'postrider: the lock for migrations of the schema {schema} is held by %; waiting until it is free',
                coalesce(holder, 'a session that has ended since');
            told := true;
        end if;
        if clock_timestamp() - begun > interval '5 minutes' then
            holder := ({holder} limit 1);
            raise exception 'postrider: the lock for migrations of the schema {schema} is held by %',
                coalesce(holder, 'a session that has ended since')
                using errcode = 'lock_not_available',
                      hint = 'Wait until its migration has ended, or end that session, and try again.';
        end if;
        perform pg_sleep(0.1);
    end loop;
end $$;
";

const EXPECT: &str = "do $$
begin
    if (select coalesce(max(version), 0) from {schema}.migration) <> {version} then
        raise exception 'postrider: this SQL is for the schema {schema} at version {version}, and it is at version %',
            (select coalesce(max(version), 0) from {schema}.migration)
            using hint = 'Print it anew: postrider migrate --print';
    end if;
end $$;
";

const PREPARE: &str = "create schema if not exists {schema};
create table if not exists {schema}.migration (
    version    integer primary key,
    name       text not null,
    applied_at timestamptz not null default clock_timestamp()
);
";

/// Applies what is missing, in one transaction, one process at a time.
pub(crate) async fn migrate(pool: &PgPool, schema: &Schema, patience: Duration) -> Result<()> {
    // Nothing to do is the usual case, and asks for no lock and no privilege to create.
    match look(pool, schema, "migrate").await {
        Ok(found) if found == Some(schema_version()) => return Ok(()),
        // Whoever may not look may not create either, and is told what is missing for that.
        Err(error) if error.kind() != ErrorKind::Denied => return Err(error),
        _ => {}
    }
    let connection = acquire(pool, "migrate").await?;
    let begin = format!("begin isolation level read committed read write;\n{SESSION}");
    let begin = AssertSqlSafe(begin).into_sql_str();
    let mut tx = SessionTransaction::begin(connection, Some(begin)).await.map_err(during("migrate"))?;
    lock(&mut tx, schema, patience).await?;
    run(&mut tx, &schema.fill(PREPARE)).await?;
    let applied = version(&mut tx, schema).await?.unwrap_or(0);
    refuse_newer(applied, schema)?;
    for (place, (name, sql)) in pending(applied) {
        run(&mut tx, &schema.fill(sql)).await?;
        let note = schema.fill("insert into {schema}.migration (version, name) values ($1, $2)");
        let note = sqlx_core::query::query(AssertSqlSafe(note))
            .persistent(false)
            .bind(i32::try_from(place + 1).unwrap_or(i32::MAX))
            .bind(*name);
        note.execute(&mut *tx).await.map_err(during("migrate"))?;
    }
    tx.commit().await.map_err(during("migrate"))
}

/// Takes the lock of migrations. Another migration is waited for, and whoever else has the lock, because any role can take it; but
/// not without a word, and not for ever.
async fn lock(tx: &mut PgConnection, schema: &Schema, patience: Duration) -> Result<()> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        let free = sqlx_core::query::query("select pg_try_advisory_xact_lock($1)");
        let free = free.persistent(false).bind(lock_of(schema));
        let free = free.fetch_one(&mut *tx).await.map_err(during("migrate"))?;
        if free.try_get(0).map_err(during("migrate"))? {
            return Ok(());
        }
        let is_over = begun.elapsed() >= patience;
        if is_over || (!told && begun.elapsed() >= TELL_AFTER) {
            let who = sqlx_core::query::query(LOCKED_BY).persistent(false).bind(lock_of(schema));
            let who = who.fetch_optional(&mut *tx).await.map_err(during("migrate"))?;
            let who: Option<String> = who.and_then(|row| row.try_get(0).ok());
            let who = who.unwrap_or_else(|| "a session that has ended since".into());
            let what = format!("the lock for migrations of schema \"{}\" is held by {who}", schema.name);
            if is_over {
                let hint = "wait until its migration has ended, or end that session, and try again";
                return Err(Error::new(ErrorKind::Conflict, "migrate", what).with_hint(hint));
            }
            tracing::warn!("{what}; waiting until it is free");
            told = true;
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// The largest payload, in bytes, that the log takes; set first, if a size is given.
pub(crate) async fn max_payload(sessions: &Sessions, sql: &Sql, set: Option<usize>) -> Result<usize> {
    const OP: &str = "migrate";
    if let Some(size) = set {
        let size = i32::try_from(size).map_err(|_| {
            Error::new(
                ErrorKind::Invalid,
                OP,
                "max_payload must be below 2 GiB, the largest value that the database can store",
            )
        })?;
        if limit_of(sessions, sql).await? != size {
            let set = sql.schema.fill(&format!("select {{schema}}.set_max_payload({size})"));
            match sessions.execute(raw_sql(AssertSqlSafe(set))).await.map_err(during(OP)) {
                // Whoever may not set it may use it as it is: it is the owner's.
                Err(error) if error.kind() != ErrorKind::Denied => return Err(error),
                _ => {}
            }
        }
    }
    Ok(usize::try_from(limit_of(sessions, sql).await?).unwrap_or(usize::MAX))
}

/// Asked by the protocol that prepares nothing: there may be a pooler in between, whatever was said of it.
async fn limit_of(sessions: &Sessions, sql: &Sql) -> Result<i32> {
    let text = sql.schema.fill("select {schema}.max_payload()");
    let row = sessions.fetch_one(raw_sql(AssertSqlSafe(text))).await;
    row.and_then(|row| row.try_get(0)).map_err(during("migrate"))
}

/// Whether the schema is what this program needs.
pub(crate) async fn check(pool: &PgPool, schema: &Schema) -> Result<()> {
    let applied = look(pool, schema, "connect").await?.unwrap_or(0);
    refuse_newer(applied, schema)?;
    if applied < schema_version() {
        return Err(Error::new(
            ErrorKind::NotMigrated,
            "connect",
            format!(
                "the schema {} is at version {applied}, but this program needs version {}; run the migration (`postrider migrate`)",
                schema.name,
                schema_version()
            ),
        ));
    }
    Ok(())
}

fn refuse_newer(applied: i32, schema: &Schema) -> Result<()> {
    if applied <= schema_version() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::SchemaTooNew,
        "migrate",
        format!(
            "the schema {} is at version {applied}, newer than version {} that this program knows; upgrade the program",
            schema.name,
            schema_version()
        ),
    ))
}

/// The version of a schema; nothing if it was never made. It is asked in a transaction and without prepared statements: nobody knows
/// yet whether there is a pooler.
async fn look(pool: &PgPool, schema: &Schema, op: &'static str) -> Result<Option<i32>> {
    let begin = Some("begin".into_sql_str());
    let mut tx = SessionTransaction::begin(acquire(pool, op).await?, begin).await.map_err(during(op))?;
    let found = async {
        check_server(&mut tx).await?;
        version(&mut tx, schema).await
    };
    let found = found.await;
    tx.rollback().await.map_err(during(op))?;
    found
}

async fn check_server(connection: &mut PgConnection) -> Result<()> {
    let query = sqlx_core::query::query(
        "select current_setting('server_version_num')::integer, current_setting('server_version')",
    );
    let row = query.persistent(false).fetch_one(connection).await.map_err(during("connect"))?;
    let number: i32 = row.try_get(0).map_err(during("connect"))?;
    if number < OLDEST_SERVER {
        let version: String = row.try_get(1).map_err(during("connect"))?;
        let message =
            format!("this is PostgreSQL {version}; it must be 13 or later (64-bit transaction ids in SQL)");
        return Err(Error::new(ErrorKind::Invalid, "connect", message));
    }
    Ok(())
}

/// The version that was applied last; nothing if the schema was never made.
async fn version(connection: &mut PgConnection, schema: &Schema) -> Result<Option<i32>> {
    let there =
        sqlx_core::query::query("select to_regclass($1) is not null").bind(schema.fill("{schema}.migration"));
    let row = there.persistent(false).fetch_one(&mut *connection).await.map_err(during("connect"))?;
    if !row.try_get::<bool, _>(0).map_err(during("connect"))? {
        return Ok(None);
    }
    let newest = schema.fill("select max(version) from {schema}.migration");
    let row = sqlx_core::query::query(AssertSqlSafe(newest))
        .persistent(false)
        .fetch_one(connection)
        .await
        .map_err(during("connect"))?;
    row.try_get(0).map_err(during("connect"))
}

async fn run(connection: &mut PgConnection, sql: &str) -> Result<()> {
    connection.execute(raw_sql(AssertSqlSafe(sql.to_owned()))).await.map_err(during("migrate"))?;
    Ok(())
}
