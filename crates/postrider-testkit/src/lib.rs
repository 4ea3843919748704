//! What the tests of several crates share: the servers of the tests, databases, folders and processes that go away with their test,
//! and how to wait.
//!
//! It knows no crate of Postrider, so every one of them can use it. It panics where a test can't continue. What starts and stops
//! servers is in `xtask`.

pub mod address;
pub mod cleanup;
pub mod folder;
pub mod http;
pub mod log_lines;
pub mod logged;
pub mod mysql;
pub mod postgres;
pub mod process;
pub mod program;
pub mod wait;

pub use folder::Folder;
pub use log_lines::LogLines;
pub use logged::Logged;
pub use process::Process;
pub use program::Program;
pub use wait::{PATIENCE, until, until_true, until_within};

/// A new name for a database, a schema or a topic: the prefix, and letters and digits that nobody else has.
pub fn unique(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::new_v4().simple())
}
