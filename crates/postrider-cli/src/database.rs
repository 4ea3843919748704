//! The database that the settings name.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use postrider::{Desk, Limits, NewEvent, mysql, postgres, sqlite};
use serde::Serialize;
use sqlx_mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx_postgres::{PgConnectOptions, PgPoolOptions};
use sqlx_sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use crate::bounded::{self, Bounded};
use crate::config::{Problem, Store, without_password};
use crate::{Failure, os_user, output};

/// How long a server may take to answer before it is said that it does not.
const PATIENCE: Duration = Duration::from_secs(3);

/// The database that the settings name.
pub(crate) enum Database {
    /// PostgreSQL.
    Postgres(postgres::Outbox),
    /// MariaDB or MySQL.
    Mysql(mysql::Outbox),
    /// SQLite.
    Sqlite(sqlite::Outbox),
}

enum Address {
    Postgres(PgConnectOptions),
    Mysql(MySqlConnectOptions),
    Sqlite(SqliteConnectOptions),
}

impl Address {
    fn of(store: &Store) -> Result<Self, Problem> {
        let Some(url) = &store.url else {
            let what =
                "store.url: no database is named; set it in the file, as POSTRIDER_STORE_URL or by --store";
            return Err(Problem::new(what));
        };
        let wrong = || {
            Problem::new(format!("store.url: {} can't be understood as an address", without_password(url)))
        };
        if url.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(url).map_err(|_| wrong())?;
            return Ok(Self::Sqlite(options.busy_timeout(Duration::from_secs(10))));
        }
        if store.is_mysql() {
            // The driver knows one name for both.
            let url = url.replacen("mariadb://", "mysql://", 1);
            return Ok(Self::Mysql(MySqlConnectOptions::from_str(&url).map_err(|_| wrong())?));
        }
        Ok(Self::Postgres(postgres_address(url).ok_or_else(wrong)?))
    }
}

/// An address of a PostgreSQL, if it is one.
fn postgres_address(url: &str) -> Option<PgConnectOptions> {
    // A pooler refuses settings that it does not know, and nothing here is a number with a fraction.
    let options = PgConnectOptions::from_str(url).ok()?.extra_float_digits(None);
    // The driver would log in as `anonymous`.
    Some(match os_user::name().filter(|_| !names_a_user(url)) {
        Some(name) => options.username(&name),
        None => options,
    })
}

/// Whether an address of PostgreSQL, or the environment, names a user.
fn names_a_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    place.contains('@')
        || query.split('&').any(|setting| setting.starts_with("user="))
        || std::env::var_os("PGUSER").is_some_and(|user| !user.is_empty())
}

impl Database {
    /// Opens it; the schema is checked, not changed. A database that does not answer is an error after some seconds.
    pub(crate) async fn open(store: &Store) -> Result<Self, Failure> {
        // In a box, as below: the drivers' futures are so deep that the compiler gives them up within the callers'.
        bounded::opened(bounded::OPEN, Box::pin(Self::opened(store))).await
    }

    async fn opened(store: &Store) -> Result<Self, Failure> {
        match Address::of(store)? {
            Address::Postgres(options) => {
                let pool = PgPoolOptions::new().max_connections(store.connections).acquire_timeout(PATIENCE);
                let pool = pool.connect_lazy_with(options);
                let outbox = postgres::Outbox::builder().schema(&store.schema).pooler(store.pooler);
                Ok(Self::Postgres(outbox.store_options(store_options(store)?).connect(&pool).await?))
            }
            Address::Mysql(options) => {
                let pool = MySqlPoolOptions::new().max_connections(store.connections);
                let pool = pool.acquire_timeout(PATIENCE).connect_lazy_with(options);
                let options =
                    mysql::StoreOptions { connections: store.connections, ..mysql::StoreOptions::default() };
                Ok(Self::Mysql(mysql::Outbox::builder().store_options(options).connect(&pool).await?))
            }
            Address::Sqlite(options) => {
                let pool =
                    SqlitePoolOptions::new().max_connections(store.connections).connect_lazy_with(options);
                Ok(Self::Sqlite(sqlite::Outbox::connect(&pool).await?))
            }
        }
    }

    /// The log for operators, with connections of its own.
    pub(crate) async fn desk(&self) -> Result<Arc<dyn Desk>, Failure> {
        Ok(self.controls().await?.desk)
    }

    /// Both sides of the log, on the same connections.
    pub(crate) async fn controls(&self) -> Result<Controls, Failure> {
        Ok(match self {
            Self::Postgres(outbox) => {
                let store = Box::pin(async { Ok(outbox.store().await?) });
                Controls::of(bounded::opened(bounded::OPEN, store).await?)
            }
            Self::Mysql(outbox) => Controls::of(outbox.store()),
            Self::Sqlite(outbox) => Controls::of(outbox.store()),
        })
    }

    /// Records an event in a transaction of its own; whether it was, where an id that is taken is left at that.
    pub(crate) async fn record(&self, event: &NewEvent, once: bool) -> Result<bool, Failure> {
        let recorded = tokio::time::timeout(bounded::ANSWER, Box::pin(self.recorded(event, once))).await;
        recorded.unwrap_or_else(|_| {
            let (id, limit) = (event.event_id, bounded::ANSWER);
            Err(format!("the database did not answer within {limit:?}; look for the event {id} before you record it again").into())
        })
    }

    async fn recorded(&self, event: &NewEvent, once: bool) -> Result<bool, Failure> {
        match self {
            Self::Postgres(outbox) if once => {
                let mut transaction = outbox.pool().begin().await?;
                let recorded = outbox.record_once(&mut transaction, event).await?;
                transaction.commit().await?;
                Ok(recorded)
            }
            Self::Postgres(outbox) => Ok(outbox.record_outside_transaction(event).await.map(|_| true)?),
            Self::Mysql(outbox) if once => {
                let mut connection = outbox.pool().acquire().await?;
                Ok(outbox.record_once(&mut connection, event).await?)
            }
            Self::Mysql(outbox) => Ok(outbox.record_outside_transaction(event).await.map(|_| true)?),
            Self::Sqlite(outbox) if once => {
                let mut connection = outbox.pool().acquire().await?;
                Ok(outbox.record_once(&mut connection, event).await?)
            }
            Self::Sqlite(outbox) => Ok(outbox.record_outside_transaction(event).await.map(|_| true)?),
        }
    }
}

/// Both sides of a log.
#[derive(Clone)]
pub(crate) struct Controls {
    /// As relays see it.
    pub(crate) store: Arc<dyn postrider::Store>,
    /// As operators see it.
    pub(crate) desk: Arc<dyn Desk>,
}

impl Controls {
    /// Both sides of one store; every call ends.
    pub(crate) fn of<S: postrider::Store + Desk>(store: S) -> Self {
        let store = Arc::new(store);
        let relay: Arc<dyn postrider::Store> = Arc::<S>::clone(&store);
        Self {
            store: Arc::new(postrider::Bounded::new(relay, bounded::ANSWER)),
            desk: Arc::new(Bounded::new(store)),
        }
    }

    /// Opens the log that the settings name.
    pub(crate) async fn open(store: &Store) -> Result<Self, Failure> {
        bounded::opened(bounded::OPEN, Box::pin(async { Database::open(store).await?.controls().await }))
            .await
    }
}

fn store_options(store: &Store) -> Result<postgres::StoreOptions, Problem> {
    let listen = store.listen_url.as_ref().map(|url| {
        let wrong = || {
            Problem::new(format!(
                "store.listen_url: {} can't be understood as an address",
                without_password(url)
            ))
        };
        postgres_address(url).ok_or_else(wrong)
    });
    Ok(postgres::StoreOptions {
        connections: store.connections,
        bell: store.bell,
        listen: listen.transpose()?,
        ..postgres::StoreOptions::default()
    })
}

/// Whether the database is named well, if it is named. Nobody is asked.
pub(crate) fn check(store: &Store) -> Result<(), Problem> {
    if store.url.is_none() {
        return Ok(());
    }
    if let Address::Postgres(_) = Address::of(store)? {
        store_options(store)?;
        let sql = postgres::migration_sql(&store.schema);
        sql.map_err(|error| Problem::new(format!("store.schema: {}", error.message())))?;
    }
    Ok(())
}

/// Prints the SQL that creates or updates the schema: what the database lacks, or all of it.
pub(crate) async fn print_migration(store: &Store, all: bool) -> Result<bool, Failure> {
    if store.is_file() {
        return Err("--print is for servers; SQLite has no DBA to give it to".into());
    }
    let sql = match Address::of(store)? {
        Address::Mysql(_) if all => {
            return Err("--all is for PostgreSQL: on MariaDB and MySQL the SQL depends on the server".into());
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
        format!("{error}; --print asks the database for its version, and --print --all prints everything without it")
    })?;
    Ok(postgres::migration_sql_since(&store.schema, applied)?)
}

/// The usual limits but for the largest payload.
fn payload_limit(bytes: u32) -> Limits {
    Limits { payload: bytes as usize, ..Limits::default() }
}

/// What `migrate` did, as JSON.
#[derive(Serialize)]
struct Migrated {
    up_to_date: bool,
    schema: Option<String>,
}

/// Creates or updates the schema.
pub(crate) async fn migrate(store: &Store, json: bool) -> Result<bool, Failure> {
    let schema = match Address::of(store)? {
        Address::Postgres(options) => {
            let pool = PgPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE);
            let pool = pool.connect_lazy_with(options);
            // Migrations are whole transactions: whatever is in between, they work.
            let outbox = postgres::Outbox::builder().schema(&store.schema).pooler(postgres::Pooler::None);
            let outbox = match store.max_payload {
                Some(bytes) => outbox.limits(payload_limit(bytes)),
                None => outbox,
            };
            outbox.migrated(&pool).await?;
            Some(store.schema.clone())
        }
        Address::Mysql(options) => {
            let pool = MySqlPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE);
            mysql::Outbox::migrated(&pool.connect_lazy_with(options)).await?;
            None
        }
        Address::Sqlite(options) => {
            let pool = SqlitePoolOptions::new()
                .max_connections(1)
                .connect_lazy_with(options.create_if_missing(true));
            let outbox = match store.max_payload {
                Some(bytes) => sqlite::Outbox::builder().limits(payload_limit(bytes)),
                None => sqlite::Outbox::builder(),
            };
            outbox.migrated(&pool).await?;
            pool.close().await;
            None
        }
    };
    if json {
        output::json(&Migrated { up_to_date: true, schema })?;
    } else {
        let name = schema.map(|schema| format!(" {schema}")).unwrap_or_default();
        output::line(format!("the schema{name} is up to date"))?;
    }
    Ok(true)
}
