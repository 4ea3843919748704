//! The database that the settings name.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use postrider::{NewEvent, mysql, postgres, sqlite};
use sqlx_mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx_postgres::{PgConnectOptions, PgPoolOptions};
use sqlx_sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use crate::Failure;
use crate::bounded;
use crate::config::{Problem, Store, address, without_password};

/// How long a server may take to answer before it is said that it does not.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// The database that the settings name.
pub(crate) enum Database {
    /// PostgreSQL.
    Postgres(postgres::Outbox),
    /// MariaDB or MySQL.
    Mysql(mysql::Outbox),
    /// SQLite.
    Sqlite(sqlite::Outbox),
}

/// How it is reached.
pub(crate) enum Address {
    Postgres(PgConnectOptions),
    Mysql(MySqlConnectOptions),
    Sqlite(SqliteConnectOptions),
}

impl Address {
    /// What the settings say.
    pub(crate) fn of(store: &Store) -> Result<Self, Problem> {
        let Some(url) = &store.url else {
            let what = "store.url is not set; set it in the file, in POSTRIDER_STORE_URL or with --store";
            return Err(Problem::new(what));
        };
        let wrong =
            || Problem::of("store.url", format!("{} is not a valid database URL", without_password(url)));
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

/// Where the database is that the settings name, for sentences: host, port and database, or the file.
pub(crate) fn place(store: &Store) -> String {
    match Address::of(store) {
        Ok(Address::Postgres(options)) => postgres::place(&options),
        Ok(Address::Mysql(options)) => mysql::place(&options),
        Ok(Address::Sqlite(options)) => sqlite::place(&options),
        Err(_) => "not known".to_owned(),
    }
}

/// An address of a PostgreSQL, if it is one.
fn postgres_address(url: &str) -> Option<PgConnectOptions> {
    // A pooler refuses settings that it does not know, and nothing here is a number with a fraction.
    let options = PgConnectOptions::from_str(&address::for_driver(url)).ok()?;
    Some(options.extra_float_digits(None))
}

impl Database {
    /// Opens it; the schema is checked, not changed. A database that does not answer is an error after some seconds.
    pub(crate) async fn open(store: &Store) -> Result<Self, Failure> {
        // In a box, as below: the drivers' futures are so deep that the compiler gives them up within the callers'.
        let opening = Box::pin(Self::opened(store));
        bounded::opened(bounded::OPEN, || place(store), opening).await
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
                let options = mysql::StoreOptions {
                    connections: store.connections,
                    bell: store.bell,
                    ..mysql::StoreOptions::default()
                };
                Ok(Self::Mysql(mysql::Outbox::builder().store_options(options).connect(&pool).await?))
            }
            Address::Sqlite(options) => {
                let pool =
                    SqlitePoolOptions::new().max_connections(store.connections).connect_lazy_with(options);
                let options = sqlite::StoreOptions { bell: store.bell };
                Ok(Self::Sqlite(sqlite::Outbox::builder().store_options(options).connect(&pool).await?))
            }
        }
    }

    /// The log, with connections of its own.
    pub(crate) async fn log(&self) -> Result<SharedStore, Failure> {
        Ok(match self {
            Self::Postgres(outbox) => {
                let store = Box::pin(async { Ok(outbox.store().await?) });
                let place = || postgres::place(&outbox.pool().connect_options());
                bounded(bounded::opened(bounded::OPEN, place, store).await?)
            }
            Self::Mysql(outbox) => bounded(outbox.store()),
            Self::Sqlite(outbox) => bounded(outbox.store()),
        })
    }

    /// Records an event in a transaction of its own; whether it was, where an id that is taken is left at that.
    pub(crate) async fn record(&self, event: &NewEvent, once: bool) -> Result<bool, Failure> {
        let recorded = tokio::time::timeout(bounded::ANSWER, Box::pin(self.recorded(event, once))).await;
        recorded.unwrap_or_else(|_| {
            let (id, limit) = (event.event_id, bounded::ANSWER);
            Err(format!("the database did not answer within {limit:?}, so the event may have been recorded; run `postrider events show {id}` before you record it again").into())
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

/// A log whose every call ends.
pub(crate) type SharedStore = Arc<dyn postrider::store::Store>;

/// The same store with calls that end.
pub(crate) fn bounded(store: impl postrider::store::Store) -> SharedStore {
    Arc::new(postrider::store::Bounded::for_people(Arc::new(store), bounded::ANSWER))
}

/// Opens the log that the settings name.
pub(crate) async fn open(store: &Store) -> Result<SharedStore, Failure> {
    let opening = Box::pin(async { Database::open(store).await?.log().await });
    bounded::opened(bounded::OPEN, || place(store), opening).await
}

fn store_options(store: &Store) -> Result<postgres::StoreOptions, Problem> {
    let listen = store.listen_url.as_ref().map(|url| {
        let wrong = || {
            Problem::of(
                "store.listen_url",
                format!("{} is not a valid PostgreSQL URL", without_password(url)),
            )
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
    }
    Ok(())
}
