//! Internal to Postrider: what its SQL stores share, so that each thing is written once. It has no promise of stability; use
//! `postrider-postgres`, `postrider-mysql` or `postrider-sqlite`.
//!
//! Most of it is for stores that number their events in the order of commits (MariaDB, MySQL, SQLite): how they keep times, positions
//! and filters, and what their rows mean. It knows the driver's traits and no database. The text of every statement is in the store
//! that sends it.

pub mod archive;
pub mod checks;
pub mod clock;
mod columns;
mod contract;
pub mod due;
pub mod event;
pub mod figures;
mod inbox;
pub mod inspect;
pub mod json;
pub mod migration;
pub mod operate;
mod pace;
pub mod position;
pub mod record;
pub mod replay;
pub mod session;
mod settings;
mod silent_bell;
mod statement;
pub mod subscription;
pub mod sweep;
pub mod unread;
mod value;

pub use columns::{Column, Columns};
pub use pace::Pace;
pub use settings::Settings;
pub use silent_bell::SilentBell;
pub use statement::{Call, Connection, Dialect, DriverQuery, DriverRow, Patch, Sql, Statement};
pub use value::Value;
