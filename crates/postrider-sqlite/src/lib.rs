//! The SQLite store of Postrider: the log, `record`, the inbox, and what relays need of them.
//!
//! An application records events on its own connection, in the transaction that changes its data:
//!
//! ```no_run
//! # use postrider_core::{NewEvent, Payload};
//! # use postrider_sqlite::Outbox;
//! # async fn pay(db: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::migrated(&db).await?;
//! let mut tx = outbox.begin().await?;
//! sqlx::query("update orders set paid = true where id = 7").execute(&mut *tx).await?;
//! let paid = NewEvent::new("orders", "OrderPaid", "Order", "7", Payload::json_text("{\"order\":7}")?);
//! outbox.record(&mut tx, &paid).await?;
//! tx.commit().await?;
//! # Ok(())
//! # }
//! ```
//!
//! SQLite has one writer at a time, so ids are in the order of commits and a position is just an id. A
//! transaction that reads first and writes later can fail whatever the timeout
//! ([`ErrorKind::Conflict`](postrider_core::ErrorKind::Conflict)): [`Outbox::begin`] begins one that can't.

mod archive;
mod bell;
mod checks;
mod delivery;
mod error;
mod figures;
mod hash;
mod inbox;
mod inspect;
mod lane;
mod leader_lease;
mod migrate;
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
mod row;
mod seal;
mod settle;
mod source;
mod sql;
mod state;
mod store;
mod subscribe;
mod sweep;
mod transaction;
mod witness;

#[doc(hidden)]
pub use error::{away, place};
pub use hash::hash_of;
pub use inbox::Inbox;
pub use migrate::schema_version;
pub use outbox::{Outbox, OutboxBuilder};
pub use store::{SqliteStore, StoreOptions};
pub use transaction::HandlerTransaction;
