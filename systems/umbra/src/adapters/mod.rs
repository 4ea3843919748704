//! What connects the contexts to a database, to Postrider and to the outside world.
//!
//! The files in `store` are compiled twice: once with the types of PostgreSQL and once with those of SQLite.

pub mod clock;
pub mod delivery;
pub mod discord;
pub mod events;
pub mod nightly;
pub mod postgres;
pub mod sqlite;
pub mod toss;
