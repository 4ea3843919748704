//! Locks between transactions: who touches a key first keeps it until its transaction ends, and the others wait.
//!
//! A transaction waits for one other at a time, so who waits for whom is a chain: where it comes back to its beginning,
//! nobody would ever go on, and the one who closed it is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Result};
use tokio::sync::Notify;
use uuid::Uuid;

/// How long a transaction waits for another where nothing else was said.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is locked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// An event id, so that two transactions can't both record it.
    Event(Uuid),
    /// The counter of a key that has numbers.
    Counter(String),
    /// What a consumer says of an event.
    Mark(Arc<str>, Uuid),
    /// A value of the application.
    Value(String),
}

/// All locks of a log.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    table: Mutex<Table>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    last_transaction: u64,
    holders: HashMap<Key, u64>,
    /// Who waits for whom.
    waiting: HashMap<u64, u64>,
}

impl Locks {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one transaction has locked. Dropped, it lets go of everything.
#[derive(Debug)]
pub(crate) struct Hold {
    locks: Arc<Locks>,
    transaction: u64,
    keys: Vec<Key>,
    patience: Duration,
}

impl Hold {
    /// Nothing yet, for a transaction that waits for others for so long; `None` and zero leave it to the store.
    pub(crate) fn new(locks: &Arc<Locks>, patience: Option<Duration>) -> Self {
        let transaction = {
            let mut table = locks.table();
            table.last_transaction += 1;
            table.last_transaction
        };
        let patience = patience.filter(|patience| !patience.is_zero()).unwrap_or(PATIENCE);
        Self { locks: Arc::clone(locks), transaction, keys: Vec::new(), patience }
    }

    /// Locks a key, once whoever has it has ended. Dropping this halfway is fine.
    pub(crate) async fn take(&mut self, key: Key, op: &'static str) -> Result<()> {
        if self.attempt(&key, op)? {
            return Ok(());
        }
        let patience = self.patience;
        tokio::time::timeout(patience, self.wait_for(&key, op)).await.unwrap_or_else(|_| {
            let message = format!("another transaction kept a lock for longer than {patience:?}; try again");
            Err(Error::new(ErrorKind::Conflict, op, message))
        })
    }

    async fn wait_for(&mut self, key: &Key, op: &'static str) -> Result<()> {
        let locks = Arc::clone(&self.locks);
        let _waiting = Waiting { locks: &locks, transaction: self.transaction };
        loop {
            let ended = locks.ended.notified();
            if self.attempt(key, op)? {
                return Ok(());
            }
            ended.await;
        }
    }

    /// Locks a key if it is free; otherwise notes who is waited for.
    fn attempt(&mut self, key: &Key, op: &'static str) -> Result<bool> {
        let mut table = self.locks.table();
        match table.holders.get(key).copied() {
            None => {
                table.holders.insert(key.clone(), self.transaction);
                self.keys.push(key.clone());
                Ok(true)
            }
            Some(holder) if holder == self.transaction => Ok(true),
            Some(holder) => {
                let mut next = Some(holder);
                while let Some(other) = next {
                    if other == self.transaction {
                        let message = "this transaction and another one wait for each other; \
                                       take locks in the same order everywhere, or try again";
                        return Err(Error::new(ErrorKind::Conflict, op, message));
                    }
                    next = table.waiting.get(&other).copied();
                }
                table.waiting.insert(self.transaction, holder);
                Ok(false)
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut table = self.locks.table();
        table.waiting.remove(&self.transaction);
        for key in &self.keys {
            table.holders.remove(key);
        }
        drop(table);
        self.locks.ended.notify_waiters();
    }
}

/// A transaction that waits. Dropped, it does not wait any more.
struct Waiting<'a> {
    locks: &'a Locks,
    transaction: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.locks.table().waiting.remove(&self.transaction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Key {
        Key::Value(name.to_owned())
    }

    #[tokio::test]
    async fn who_closes_a_circle_is_told_and_the_other_goes_on() {
        let locks = Arc::new(Locks::default());
        let (mut one, mut two) = (Hold::new(&locks, None), Hold::new(&locks, None));
        one.take(value("a"), "set").await.expect("free");
        two.take(value("b"), "set").await.expect("free");
        let (first, ()) = tokio::join!(one.take(value("b"), "set"), async move {
            let error = two.take(value("a"), "set").await.expect_err("a circle");
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            drop(two);
        });
        first.expect("the other has ended");
    }

    #[tokio::test]
    async fn a_wait_that_was_dropped_closes_no_circle() {
        let locks = Arc::new(Locks::default());
        let (mut one, mut two) = (Hold::new(&locks, None), Hold::new(&locks, None));
        one.take(value("a"), "set").await.expect("free");
        two.take(value("b"), "set").await.expect("free");
        assert!(tokio::time::timeout(Duration::ZERO, one.take(value("b"), "set")).await.is_err());
        let (second, ()) = tokio::join!(two.take(value("a"), "set"), async move { drop(one) });
        second.expect("nobody waits for it any more");
    }

    #[tokio::test]
    async fn who_waits_too_long_is_told() {
        let locks = Arc::new(Locks::default());
        let (mut one, mut two) = (Hold::new(&locks, None), Hold::new(&locks, Some(Duration::from_millis(1))));
        one.take(value("a"), "set").await.expect("free");
        let error = two.take(value("a"), "set").await.expect_err("it is held");
        assert!(error.kind() == ErrorKind::Conflict && error.is_retryable(), "{error}");
    }
}
