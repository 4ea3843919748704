//! Developers' commands as a library: throw-away servers for tests, the test run, the checks of CI.
//!
//! The binary `xtask` only reads arguments and calls what is here. The integration tests of the other crates
//! use [`postgres::Cluster`], [`pgbouncer::Pgbouncer`], [`mariadb::Mariadb`] and [`kafka::Broker`] when they need a server of their own that they may stop, kill
//! or restore, and [`line::Line`] for a server that falls silent.
//!
//! Nothing here knows what Postrider does: it starts servers and runs `cargo`.

pub mod account;
pub mod checks;
pub mod compat;
pub mod container;
pub mod detached;
pub mod docs;
pub mod folder;
pub mod foreground;
pub mod jdbc;
pub mod kafka;
pub mod kind;
pub mod line;
pub mod mariadb;
pub mod maven;
pub mod nats;
pub mod node;
pub mod openssl;
pub mod package;
pub mod pgbouncer;
pub mod port;
pub mod postgres;
pub mod process;
pub mod program;
pub mod python;
pub mod requirements;
pub mod server;
pub mod service;
pub mod services;
pub mod session;
pub mod sizes;
pub mod suite;
pub mod system;
pub mod tally;
pub mod task_error;
pub mod unstable;
pub mod watchdog;
pub mod workspace;

pub use task_error::TaskError;

/// Tells the developer what is being done: on stderr, so that stdout keeps what a command was asked for.
pub fn say(sentence: &str) {
    eprintln!("xtask: {sentence}");
}
