//! The MariaDB and MySQL store of Postrider: the log, `record`, the inbox, and what relays need of them.
//!
//! An application records events on its own connection, in the transaction that changes its data:
//!
//! ```no_run
//! # use postrider_core::{NewEvent, Payload};
//! # use postrider_mysql::Outbox;
//! # async fn pay(db: sqlx::MySqlPool) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::migrated(&db).await?;
//! let mut tx = db.begin().await?;
//! sqlx::query("update orders set paid = true where id = 7").execute(&mut *tx).await?;
//! let paid = NewEvent::new("orders", "OrderPaid", "Order", "7", Payload::json_text("{\"order\":7}")?);
//! outbox.record(&mut tx, &paid).await?;
//! tx.commit().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Ids are handed out before commit, and SQL shows no transaction ids here. So a short step, which waits for no publisher,
//! gives what has been committed consecutive numbers, and readers follow those: a position is just a number.
//!
//! It is written for MariaDB 10.6 and MySQL 8.0.11 and later, and tested on MariaDB 10.11; `cargo xtask compat`
//! runs the tests on 11.4, 11.8 and MySQL 9.7 as well (11.4.5, 11.8.9 and 9.7.4 were run). All tables are named `postrider_…` and
//! lie in the application's own database. Publishers may use any isolation level. In any language, in the transaction that changes
//! the data:
//!
//! ```sql
//! call postrider_record('orders', 'OrderPaid', 'Order', '7', '{"order": 7}');
//! ```

mod archive;
mod bell;
mod checks;
mod delivery;
mod error;
mod existing;
mod figures;
mod hash;
mod inbox;
mod inspect;
mod lane;
mod leader_lease;
mod limit;
mod migrate;
mod months;
mod number;
mod operate;
mod outbox;
mod pools;
mod position;
mod read;
mod record;
mod relane;
mod relays;
mod replace;
mod replay;
mod routines;
mod row;
mod run;
mod script;
mod server;
mod settle;
mod source;
mod sql;
mod state;
mod store;
mod subscribe;
mod sweep;
mod tend;
mod walk;

#[doc(hidden)]
pub use error::{away, place};
pub use hash::hash_of;
pub use inbox::Inbox;
#[doc(hidden)]
pub use migrate::migrate_to;
pub use migrate::{migration_sql, schema_version};
pub use outbox::{Outbox, OutboxBuilder};
pub use pools::StoreOptions;
pub use source::HandlerTransaction;
pub use store::MySqlStore;
