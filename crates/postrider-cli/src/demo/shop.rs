//! The shop itself: its customers, its events, its database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider::sqlite::Outbox;
use postrider::{NewEvent, Uuid};
use serde::{Deserialize, Serialize};
use sqlx_core::query::query;
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

use crate::Failure;

/// What the database is called in its folder.
pub(crate) const FILE: &str = "shop.db";
/// Where every mail fails.
pub(crate) const NOWHERE: &str = "nobody@nowhere.invalid";

/// How many tills record at once, and how long each pauses.
const TILLS: u64 = 4;
const PAUSE: Duration = Duration::from_millis(45);
const CUSTOMERS: u64 = 16;

/// What a customer did, as the events say it: `OrderPlaced`, then `OrderPaid`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) customer: String,
    /// Counts the customer's changes, from 1 on: what the order of events is compared with.
    pub(crate) number: i64,
    pub(crate) address: String,
}

impl Change {
    fn event(&self) -> postrider::Result<NewEvent> {
        let (stream, event_type) =
            if self.number % 2 == 1 { ("orders", "OrderPlaced") } else { ("payments", "OrderPaid") };
        NewEvent::of(stream, event_type, "Customer", &self.customer, self)
    }
}

/// The shop's database, as one process has it.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) pool: SqlitePool,
    pub(crate) outbox: Outbox,
    doors: Arc<Doors>,
}

/// What the tills look at before each sale.
#[derive(Default)]
struct Doors {
    closed: AtomicBool,
    stranger: AtomicBool,
}

impl Shop {
    /// A new one in a folder.
    pub(crate) async fn build(folder: &Path) -> Result<Self, Failure> {
        let pool = pool(folder, true).await?;
        let outbox = Outbox::builder().source("shop").migrated(&pool).await?;
        sqlx_core::raw_sql::raw_sql(include_str!("../../sql/demo/schema.sql")).execute(&pool).await?;
        Ok(Self { pool, outbox, doors: Arc::default() })
    }

    /// The one that is there, for another process.
    pub(crate) async fn open(folder: &Path) -> Result<Self, Failure> {
        let pool = pool(folder, false).await?;
        let outbox = Outbox::builder().source("shop").connect(&pool).await?;
        Ok(Self { pool, outbox, doors: Arc::default() })
    }

    /// Lets the tills sell until the shop is closed.
    pub(crate) fn sell(&self) -> tokio::task::JoinSet<Result<(), Failure>> {
        (0..TILLS).map(|till| self.clone().sell_at(till)).collect()
    }

    /// No more sales.
    pub(crate) fn close(&self) {
        self.doors.closed.store(true, Ordering::Release);
    }

    /// The next customer's address does not exist.
    pub(crate) fn let_a_stranger_in(&self) {
        self.doors.stranger.store(true, Ordering::Release);
    }

    async fn sell_at(self, till: u64) -> Result<(), Failure> {
        let mut sale = 0;
        while !self.doors.closed.load(Ordering::Acquire) {
            let customer = format!("customer-{}", (sale * 7 + till * 5) % CUSTOMERS);
            self.sale(customer, (sale + till) % 10 == 9).await?;
            sale += 1;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// What an application does: it changes its data and records the event, all or nothing.
    async fn sale(&self, customer: String, regretted: bool) -> Result<(), Failure> {
        let mut tx = self.outbox.begin().await?;
        let changed = "insert into customer values ($1, 1)
             on conflict (id) do update set changes = changes + 1 returning changes";
        let number = query(changed).bind(&customer).fetch_one(&mut *tx).await?.try_get(0)?;
        let is_stranger = !regretted && self.doors.stranger.swap(false, Ordering::AcqRel);
        let address = if is_stranger { NOWHERE.to_owned() } else { format!("{customer}@shop.example") };
        let change = Change { customer, number, address };
        let event_id: Uuid = self.outbox.record(&mut tx, &change.event()?).await?;
        let insert = query("insert into change values ($1, $2, $3)").bind(event_id);
        insert.bind(&change.customer).bind(change.number).execute(&mut *tx).await?;
        if regretted {
            tx.rollback().await?;
            query("insert into rolled_back values ($1)").bind(event_id).execute(&self.pool).await?;
        } else {
            tx.commit().await?;
        }
        Ok(())
    }
}

async fn pool(folder: &Path, new: bool) -> Result<SqlitePool, Failure> {
    let options = SqliteConnectOptions::new()
        .filename(folder.join(FILE))
        .create_if_missing(new)
        .busy_timeout(Duration::from_secs(20))
        // Killing a process loses nothing in a write-ahead log; only the machine's own end would.
        .synchronous(SqliteSynchronous::Normal);
    Ok(SqlitePoolOptions::new().max_connections(8).connect_with(options).await?)
}
