//! Postrider on PostgreSQL 13 and later.
//!
//! [`Outbox`] records events on the caller's own connection, inside the caller's own transaction.
//! [`PgStore`] reads the log for relays. The position of a lane is a snapshot: every committed event is read
//! exactly once, a slow transaction delays only its own events, and nothing is ever updated in the log.
//!
//! *Record after you lock or change the aggregate*: then the events of an aggregate have the order of its
//! changes. A sequenced event locks its key's counter and is in order anyway.

mod archive;
mod bell;
mod careful;
mod checks;
mod delivery;
mod error;
mod figures;
mod inbox;
mod inspect;
mod lane;
mod leader_lease;
mod migrate;
mod operate;
mod outbox;
mod pooler;
mod position;
mod read;
mod record;
mod relane;
mod relays;
mod replace;
mod replay;
mod row;
mod schema;
mod session;
mod settle;
mod settle_each;
mod source;
mod sql;
mod state;
mod store;
mod subscribe;
mod sweep;

#[doc(hidden)]
pub use error::{away, place};
pub use inbox::Inbox;
pub use migrate::{applied_version, migration_sql, migration_sql_since, schema_version};
pub use outbox::{Outbox, OutboxBuilder};
pub use pooler::Pooler;
pub use source::HandlerTransaction;
pub use sql::Patch;
pub use store::{PgStore, StoreOptions};
