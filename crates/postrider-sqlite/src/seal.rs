//! What keeps a handler's transaction whole: nothing on its connection commits but the relay.
//!
//! After some errors (a full disk, `on conflict rollback`, `raise(rollback)`) SQLite rolls a transaction back and goes on in
//! autocommit: each statement that follows would be kept on its own, without the marks of its events. There is no setting
//! against that, but there are hooks: one refuses every commit until the seal is opened, the other sees every rollback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx_core::Error as SqlxError;
use sqlx_sqlite::SqliteConnection;

/// The seal on a handler's transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seal(Arc<State>);

#[derive(Debug, Default)]
struct State {
    open: AtomicBool,
    broken: AtomicBool,
}

impl Seal {
    /// Seals the transaction that a connection is in.
    pub(crate) async fn set(&self, connection: &mut SqliteConnection) -> Result<(), SqlxError> {
        let mut handle = connection.lock_handle().await?;
        let state = Arc::clone(&self.0);
        handle.set_commit_hook(move || {
            let open = state.open.load(Ordering::Acquire);
            if !open {
                state.broken.store(true, Ordering::Release);
            }
            open
        });
        let state = Arc::clone(&self.0);
        handle.set_rollback_hook(move || state.broken.store(true, Ordering::Release));
        Ok(())
    }

    /// Whether the transaction was rolled back, or somebody tried to commit it.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::Acquire)
    }

    /// Lets commits pass: a connection that goes back to the application commits as it likes.
    pub(crate) fn open(&self) {
        self.0.open.store(true, Ordering::Release);
    }

    /// Takes the hooks away.
    pub(crate) async fn lift(&self, connection: &mut SqliteConnection) -> Result<(), SqlxError> {
        self.open();
        let mut handle = connection.lock_handle().await?;
        handle.remove_commit_hook();
        handle.remove_rollback_hook();
        Ok(())
    }
}
