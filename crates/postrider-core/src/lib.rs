//! The types and contracts of Postrider, without I/O.
//!
//! An [`Event`] is recorded once, in the transaction that changes the application's data, and is never
//! changed afterwards. A [`Subscription`] is a set of positions in that log, one per lane. A [`Store`]
//! keeps the log in a database; each store crate (`postrider-postgres`, `postrider-sqlite`, …) implements it.
//!
//! The life of an event uses one word per stage everywhere: **record → read → deliver → settle → archive**.

mod delivery;
pub mod duration;
mod error;
mod event;
mod nearest;
mod policy;
mod store;

pub use delivery::*;
pub use error::{Error, ErrorKind, Result};
pub use event::*;
pub use nearest::nearest;
pub use policy::*;
pub use store::*;

#[doc(no_inline)]
pub use time::OffsetDateTime;
#[doc(no_inline)]
pub use uuid::Uuid;
