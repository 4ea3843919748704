//! Postrider in memory, for tests: a log that keeps every promise but survival.
//!
//! It passes the same conformance suite as the stores on databases, with transactions that wait for each other as theirs
//! do. So a test that publishes, relays and handles reads like the code in production, and needs no server:
//!
//! ```
//! # use postrider_core::{NewEvent, Result};
//! # use postrider_memory::Outbox;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let outbox = Outbox::new();
//! let mut tx = outbox.begin().await?;
//! tx.set("order 7", "paid").await?;
//! outbox.record(&mut tx, &NewEvent::of("orders", "OrderPaid", "Order", "7", &7)?).await?;
//! tx.commit().await?;
//!
//! assert_eq!(outbox.get("order 7").as_deref(), Some("paid"));
//! assert_eq!(&*outbox.recorded()[0].event_type, "OrderPaid");
//! # Ok(())
//! # }
//! ```
//!
//! An event gets its id when it is recorded and its place in the log when its transaction commits. Lanes read by places, so
//! nothing can appear behind them, and a position is the place of the last event that was passed.

mod bell;
mod clock;
mod delivery;
mod figures;
mod hash;
mod inbox;
mod inspect;
mod lane;
mod leader_lease;
mod lock;
mod log;
mod operate;
mod outbox;
mod position;
mod read;
mod record;
mod relane;
mod relays;
mod replace;
mod replay;
mod settle;
mod share;
mod source;
mod state;
mod store;
mod subscribe;
mod sweep;
mod transaction;

pub use inbox::Inbox;
pub use outbox::{Outbox, OutboxBuilder};
pub use store::MemoryStore;
pub use transaction::{Connection, Savepoint, Transaction};
