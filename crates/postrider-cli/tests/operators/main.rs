//! The operators' commands: the built binary, on logs with something wrong in them, on PostgreSQL and SQLite.

#[path = "../support/mod.rs"]
mod support;

mod dead;
mod events;
mod pipes;
mod record;
mod replacing;
mod replay;
mod status;
mod subscriptions;
mod troubles;
