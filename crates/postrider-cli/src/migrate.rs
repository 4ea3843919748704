//! `postrider migrate`: the schema, made or brought up to date, or the SQL for it.

use postrider::store::Limits;
use postrider::{mysql, postgres, sqlite};
use serde::Serialize;
use sqlx_mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx_postgres::{PgConnectOptions, PgPoolOptions};
use sqlx_sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use crate::config::{Log, Store};
use crate::database::{Address, PATIENCE};
use crate::{Failure, logging, output};

/// Prints the SQL that creates or updates the schema: what the database lacks, or all of it.
pub(crate) async fn print(store: &Store, all: bool) -> Result<bool, Failure> {
    if store.is_file() {
        return Err(
            "--print works with PostgreSQL, MariaDB and MySQL only; for SQLite, run `postrider migrate`"
                .into(),
        );
    }
    let sql = match Address::of(store)? {
        Address::Mysql(_) if all => {
            return Err(
                "--all works with PostgreSQL only: on MariaDB and MySQL the SQL depends on the server".into(),
            );
        }
        Address::Mysql(options) => {
            let pool = MySqlPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE);
            let pending = mysql::migration_sql(&pool.connect_lazy_with(options)).await?;
            if pending.is_empty() { "-- the schema is up to date\n".to_owned() } else { pending }
        }
        _ => postgres_migration(store, all).await?,
    };
    output::print(&sql)?;
    Ok(true)
}

async fn postgres_migration(store: &Store, all: bool) -> Result<String, Failure> {
    if all || store.url.is_none() {
        return Ok(postgres::migration_sql(&store.schema)?);
    }
    let Address::Postgres(options) = Address::of(store)? else {
        return Ok(postgres::migration_sql(&store.schema)?);
    };
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(PATIENCE).connect_lazy_with(options);
    let applied = postgres::applied_version(&pool, &store.schema).await.map_err(|error| {
        format!("{error}; --print needs the schema version of the database; --print --all prints every migration without connecting")
    })?;
    Ok(postgres::migration_sql_since(&store.schema, applied)?)
}

/// What `migrate` did.
#[derive(Serialize)]
struct Migrated {
    /// `created`, `updated`, `repaired`, `limited` (the payload limit alone was set) or `nothing`.
    done: Done,
    /// The version before; 0 where there was none.
    from: i64,
    /// The version now.
    to: i64,
    /// Always: it is an error otherwise.
    up_to_date: bool,
    schema: Option<String>,
    /// The payload limit in bytes, if it was set now.
    max_payload: Option<usize>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Done {
    Created,
    Updated,
    Repaired,
    Limited,
    Nothing,
}

impl Migrated {
    fn of(from: i64, to: i64, repaired: bool, schema: Option<String>, max_payload: Option<usize>) -> Self {
        let done = match from {
            0 => Done::Created,
            _ if from < to => Done::Updated,
            _ if repaired => Done::Repaired,
            _ if max_payload.is_some() => Done::Limited,
            _ => Done::Nothing,
        };
        Self { done, from, to, up_to_date: true, schema, max_payload }
    }

    fn sentence(&self) -> String {
        let name = self.schema.as_ref().map(|schema| format!(" {schema}")).unwrap_or_default();
        let (from, to) = (self.from, self.to);
        let limit = self.max_payload.map(|bytes| {
            format!("set the payload limit to {} byte{}", bytes, if bytes == 1 { "" } else { "s" })
        });
        let done = match self.done {
            Done::Created => format!("created the schema{name}, version {to}"),
            Done::Updated => format!("updated the schema{name} from version {from} to {to}"),
            Done::Repaired => {
                format!("recreated the missing parts of the schema{name}; it stays at version {to}")
            }
            Done::Limited => {
                let limit = limit.unwrap_or_default();
                return format!("{limit}; the schema{name} is up to date, at version {to}");
            }
            Done::Nothing => format!("nothing to do: the schema{name} is up to date, at version {to}"),
        };
        match limit {
            Some(limit) => format!("{done}; {limit}"),
            None => done,
        }
    }
}

/// The payload limit that a migration was asked for, if it set it: it was another one before, and it is this one now.
fn newly_set(store: &Store, before: Option<&Limits>, now: &Limits) -> Option<usize> {
    let asked = store.max_payload? as usize;
    (now.payload == asked && before.is_none_or(|before| before.payload != asked)).then_some(asked)
}

/// The usual limits but for the largest payload.
fn payload_limit(bytes: u32) -> Limits {
    Limits { payload: bytes as usize, ..Limits::default() }
}

async fn migrate_postgres(store: &Store, options: PgConnectOptions) -> Result<Migrated, Failure> {
    let pool = PgPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE);
    let pool = pool.connect_lazy_with(options);
    let from = postgres::applied_version(&pool, &store.schema).await?;
    // Migrations are whole transactions: whatever is in between, they work.
    let outbox = postgres::Outbox::builder().schema(&store.schema).pooler(postgres::Pooler::None);
    let (before, outbox) = match store.max_payload {
        // A schema that is not up to date may have no limit yet.
        Some(bytes) => (outbox.clone().connect(&pool).await.ok(), outbox.limits(payload_limit(bytes))),
        None => (None, outbox),
    };
    let outbox = outbox.migrated(&pool).await?;
    let limit = newly_set(store, before.as_ref().map(postgres::Outbox::limits), outbox.limits());
    let to = postgres::applied_version(&pool, &store.schema).await?;
    Ok(Migrated::of(from.into(), to.into(), false, Some(store.schema.clone()), limit))
}

async fn migrate_mysql(store: &Store, options: MySqlConnectOptions) -> Result<Migrated, Failure> {
    let pool = MySqlPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE);
    let pool = pool.connect_lazy_with(options);
    let from = mysql::schema_version(&pool).await?;
    let lacks = !mysql::migration_sql(&pool).await?.is_empty();
    let outbox = mysql::Outbox::builder();
    let (before, outbox) = match store.max_payload {
        Some(bytes) => (outbox.clone().connect(&pool).await.ok(), outbox.limits(payload_limit(bytes))),
        None => (None, outbox),
    };
    let outbox = outbox.migrated(&pool).await?;
    let limit = newly_set(store, before.as_ref().map(mysql::Outbox::limits), outbox.limits());
    Ok(Migrated::of(from, mysql::schema_version(&pool).await?, lacks, None, limit))
}

async fn migrate_sqlite(store: &Store, options: SqliteConnectOptions) -> Result<Migrated, Failure> {
    let pool = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options.create_if_missing(true));
    let from = sqlite::schema_version(&pool).await?;
    let outbox = sqlite::Outbox::builder();
    let (before, outbox) = match store.max_payload {
        Some(bytes) => (outbox.clone().connect(&pool).await.ok(), outbox.limits(payload_limit(bytes))),
        None => (None, outbox),
    };
    let outbox = outbox.migrated(&pool).await?;
    let limit = newly_set(store, before.as_ref().map(sqlite::Outbox::limits), outbox.limits());
    let to = sqlite::schema_version(&pool).await?;
    pool.close().await;
    Ok(Migrated::of(from, to, false, None, limit))
}

/// What a migration says meanwhile: who it waits for, and what is left to do by hand.
const REMARKS: &str = "error,postrider_postgres=warn,postrider_mysql=warn,postrider_sqlite=warn";

/// Creates or updates the schema.
pub(crate) async fn run(store: &Store, json: bool) -> Result<bool, Failure> {
    logging::start(&Log { json: false, level: REMARKS.to_owned() })?;
    let migrated = match Address::of(store)? {
        Address::Postgres(options) => migrate_postgres(store, options).await?,
        Address::Mysql(options) => migrate_mysql(store, options).await?,
        Address::Sqlite(options) => migrate_sqlite(store, options).await?,
    };
    if json {
        output::json(&migrated)?;
    } else {
        output::line(migrated.sentence())?;
    }
    Ok(true)
}
