//! The shop itself: its orders, its events, its database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use postrider::Event;
use postrider::sqlite::Outbox;
use serde::{Deserialize, Serialize};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::Failure;
use super::report::Tally;

const TRANSACTIONS: u64 = 150;
const ORDERS: u64 = 12;

/// An order was changed, and is at this version now.
#[derive(Serialize, Deserialize, Event)]
#[event(aggregate = "Order", id = order, stream = "orders")]
pub(crate) struct OrderChanged {
    pub(crate) order: String,
    pub(crate) version: i64,
}

/// What follows from it.
#[derive(Serialize, Deserialize, Event)]
#[event(aggregate = "Receipt", id = order, stream = "receipts")]
pub(crate) struct ReceiptSent {
    pub(crate) order: String,
    pub(crate) version: i64,
}

/// The shop's database, as one process has it.
#[derive(Clone)]
pub(crate) struct Shop {
    pool: SqlitePool,
    pub(crate) outbox: Outbox,
}

/// What the database holds in the end.
pub(crate) struct Figures {
    pub(crate) receipts: i64,
    pub(crate) distinct_receipts: i64,
    pub(crate) follow_ups: i64,
    pub(crate) out_of_order: i64,
    pub(crate) retried: i64,
    pub(crate) dead: Vec<(String, String)>,
}

impl Shop {
    pub(crate) async fn open(file: &Path) -> Result<Self, Failure> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await?;
        let outbox = Outbox::builder().source("shop").migrated(&pool).await?;
        sqlx_core::raw_sql::raw_sql(
            "create table if not exists shop_order (id text primary key, version integer not null);
             create table if not exists receipt
                 (n integer primary key, event_id blob not null, shop_order text not null, version integer not null)",
        )
        .execute(&pool)
        .await?;
        Ok(Self { pool, outbox })
    }

    /// An application: changes orders and records it, all or nothing.
    pub(crate) async fn write(self, number: u64, tally: Arc<Tally>) -> Result<(), Failure> {
        for n in 0..TRANSACTIONS {
            let order = format!("order-{}", (n * 7 + number * 5) % ORDERS);
            let mut tx = self.outbox.begin().await?;
            let changed = sqlx_core::query::query(
                "insert into shop_order values ($1, 1)
                 on conflict (id) do update set version = version + 1 returning version",
            );
            let version = changed.bind(&order).fetch_one(&mut *tx).await?.try_get(0)?;
            let id = self.outbox.record(&mut tx, &OrderChanged { order, version }).await?;
            if (n + number).is_multiple_of(5) {
                tx.rollback().await?;
                tally.rolled_back.fetch_add(1, Ordering::Relaxed);
            } else {
                tx.commit().await?;
                tally.committed(id);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    pub(crate) async fn figures(&self) -> Result<Figures, Failure> {
        let number = async |sql: &'static str| -> Result<i64, Failure> {
            Ok(sqlx_core::query::query(sql).fetch_one(&self.pool).await?.try_get(0)?)
        };
        let dead = sqlx_core::query::query(
            "select e.aggregate_id, s.error_message from postrider_event_state s
             join postrider_event e on e.id = s.id where s.state = 'dead'",
        );
        let dead = dead.fetch_all(&self.pool).await?;
        let dead: Result<_, sqlx_core::Error> =
            dead.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect();
        Ok(Figures {
            receipts: number("select count(*) from receipt").await?,
            distinct_receipts: number("select count(distinct event_id) from receipt").await?,
            follow_ups: number("select count(*) from postrider_event where event_type = 'ReceiptSent'").await?,
            out_of_order: number(
                "select count(*) from (select version <= lag(version) over (partition by shop_order order by n) as bad
                 from receipt) where bad",
            )
            .await?,
            retried: number("select count(*) from postrider_delivery where state = 'delivered' and attempts > 1").await?,
            dead: dead?,
        })
    }
}
