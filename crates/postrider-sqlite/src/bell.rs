//! How a relay learns of new events: SQLite can't call, but it can be asked cheaply.
//!
//! `PRAGMA data_version` changes on a connection when any other connection, of this process or another, has
//! committed. So one connection of the store does nothing but ask, every millisecond after work and every
//! fifty when idle. Whoever records through this process hurries it up.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{Bell, Result};
use postrider_sql::Pace;
use sqlx_core::connection::ConnectOptions;
use sqlx_core::query::query;
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteConnection;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::error::failed;
use crate::pools::Pools;

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);
const OP: &str = "wait";

/// The connection that asks, shared by all bells of a store.
#[derive(Debug)]
pub(crate) struct LogPoller {
    pools: Pools,
    asking: Mutex<Asking>,
    recorded: Notify,
}

#[derive(Debug, Default)]
struct Asking {
    conn: Option<SqliteConnection>,
    /// How many connections there were: versions of two connections can't be compared.
    generation: u64,
}

/// What had been committed when it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    generation: u64,
    version: i64,
}

impl LogPoller {
    pub(crate) fn new(pools: &Pools) -> Self {
        Self { pools: pools.clone(), asking: Mutex::default(), recorded: Notify::new() }
    }

    /// This process recorded an event and will probably commit soon.
    pub(crate) fn recorded(&self) {
        self.recorded.notify_waiters();
    }

    /// What has been committed; nothing where that can't be told.
    async fn version(&self) -> Result<Option<Version>> {
        if self.pools.in_memory {
            return Ok(None);
        }
        let mut asking = self.asking.lock().await;
        // Taken out while it is used: a wait that is dropped half-way drops it too.
        let mut conn = match asking.conn.take() {
            Some(conn) => conn,
            None => {
                asking.generation += 1;
                self.pools.reading.connect_options().connect().await.map_err(failed(OP))?
            }
        };
        let row = query("pragma data_version").fetch_one(&mut conn).await;
        let version = row.and_then(|row| row.try_get(0)).map_err(failed(OP))?;
        asking.conn = Some(conn);
        Ok(Some(Version { generation: asking.generation, version }))
    }
}

/// The bell of one lane's reader.
pub(crate) struct SqliteBell {
    poller: Arc<LogPoller>,
    /// What had been committed when the last wait ended, and so before the read after it began.
    seen: Option<Version>,
    pace: Pace,
}

impl SqliteBell {
    pub(crate) fn new(poller: Arc<LogPoller>) -> Self {
        Self { poller, seen: None, pace: Pace::new(SHORTEST, LONGEST) }
    }
}

#[async_trait]
impl Bell for SqliteBell {
    async fn wait(&mut self, longest: Duration) -> Result<()> {
        let poller = Arc::clone(&self.poller);
        let end = Pace::end(longest);
        loop {
            let recorded = poller.recorded.notified();
            let version = poller.version().await?;
            let changed = version.is_some() && version != self.seen;
            self.seen = version;
            if changed || Instant::now() >= end {
                return Ok(());
            }
            self.pace.rest(end, recorded).await;
            if version.is_none() {
                return Ok(());
            }
        }
    }

    fn worked(&mut self) {
        self.pace.worked();
    }
}
