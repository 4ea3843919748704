//! An application's transaction: what it writes is seen by nobody else until it commits, and then at once.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Recorded, Result};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::lock::{Hold, Key};
use crate::log::{Data, Log};

/// An open transaction. Dropped, it is rolled back.
#[derive(Debug)]
pub struct Transaction {
    connection: Connection,
}

impl Transaction {
    /// Begins one that waits for others for so long; `None` leaves that to the store.
    pub(crate) fn begin(log: &Arc<Log>, patience: Option<Duration>) -> Self {
        let hold = Hold::new(&log.locks, patience);
        let connection =
            Connection { log: Arc::clone(log), writes: Vec::new(), own: Own::default(), hold, pin: None };
        Self { connection }
    }

    /// Keeps a lane from being claimed by others until the transaction ends.
    pub(crate) fn pin(&mut self, pin: Arc<()>) {
        self.connection.pin = Some(pin);
    }

    /// Commits: everything that was written is there from now on.
    pub async fn commit(self) -> Result<()> {
        self.commit_with(|_| Ok(()))
    }

    /// Commits together with a change of the log's own; where that fails, nothing of either remains.
    pub(crate) fn commit_with<T>(self, change: impl FnOnce(&mut Data) -> Result<T>) -> Result<T> {
        let mut connection = self.connection;
        let writes = std::mem::take(&mut connection.writes);
        let records = writes.iter().any(|write| matches!(write, Write::Event { .. }));
        let mut data = connection.log.data();
        let changed = change(&mut data)?;
        for write in writes {
            match write {
                Write::Event { event, sequenced } => data.append(*event, sequenced),
                Write::Mark { consumer, event_id, at } => {
                    data.inbox.insert((consumer, event_id), at);
                }
                Write::Value { key, value } => {
                    data.values.insert(key, value);
                }
            }
        }
        drop(data);
        if records {
            connection.log.bell.committed();
        }
        Ok(changed)
    }

    /// Rolls back: nothing of it remains.
    pub async fn rollback(self) -> Result<()> {
        drop(self);
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

/// What runs in a transaction: events are recorded through it, and it has a small table of values, so that a test can
/// see what a handler changes commit or roll back with everything else.
pub struct Connection {
    pub(crate) log: Arc<Log>,
    writes: Vec<Write>,
    own: Own,
    pub(crate) hold: Hold,
    pin: Option<Arc<()>>,
}

/// One thing that a commit will do.
enum Write {
    Event { event: Box<Recorded>, sequenced: bool },
    Mark { consumer: Arc<str>, event_id: Uuid, at: OffsetDateTime },
    Value { key: String, value: String },
}

/// What of it the transaction itself has to find again.
#[derive(Default)]
struct Own {
    events: HashSet<Uuid>,
    marks: HashSet<(Arc<str>, Uuid)>,
    values: HashMap<String, String>,
}

impl Own {
    fn note(&mut self, write: &Write) {
        match write {
            Write::Event { event, .. } => {
                self.events.insert(event.event_id);
            }
            Write::Mark { consumer, event_id, .. } => {
                self.marks.insert((Arc::clone(consumer), *event_id));
            }
            Write::Value { key, value } => {
                self.values.insert(key.clone(), value.clone());
            }
        }
    }
}

impl Connection {
    /// The value of a key, as this transaction sees it: its own, or what is committed.
    pub fn get(&self, key: &str) -> Option<String> {
        self.own.values.get(key).cloned().or_else(|| self.log.data().values.get(key).cloned())
    }

    /// Sets the value of a key. Another transaction that sets the same key waits until this one has ended.
    ///
    /// If the two would wait for each other, or for too long, it fails with
    /// [`Conflict`](postrider_core::ErrorKind::Conflict).
    pub async fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> Result<()> {
        let (key, value) = (key.into(), value.into());
        self.hold.take(Key::Value(key.clone()), "set").await?;
        self.write(Write::Value { key, value });
        Ok(())
    }

    /// Changes the value of a key to what `change` makes of it, and returns that. Nobody else changes it in between.
    pub async fn update(
        &mut self,
        key: impl Into<String>,
        change: impl FnOnce(Option<String>) -> String,
    ) -> Result<String> {
        let key = key.into();
        self.hold.take(Key::Value(key.clone()), "update").await?;
        let value = change(self.get(&key));
        self.write(Write::Value { key, value: value.clone() });
        Ok(value)
    }

    /// Sets a savepoint: a place in this transaction to go back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { writes: self.writes.len() }
    }

    /// Takes back what was written since a savepoint of this transaction. Its locks stay until the transaction ends.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) {
        self.writes.truncate(savepoint.writes);
        self.own = Own::default();
        for write in &self.writes {
            self.own.note(write);
        }
    }

    /// Whether an event id is in the log, or will be with this transaction. The id must be locked.
    pub(crate) fn has_event(&self, event_id: Uuid) -> bool {
        self.own.events.contains(&event_id) || self.log.data().ids.contains_key(&event_id)
    }

    /// Whether a consumer has handled an event, or will have with this transaction. The mark must be locked.
    pub(crate) fn has_mark(&self, mark: &(Arc<str>, Uuid)) -> bool {
        self.own.marks.contains(mark) || self.log.data().inbox.contains_key(mark)
    }

    /// Will put an event into the log.
    pub(crate) fn write_event(&mut self, event: Recorded, sequenced: bool) {
        self.write(Write::Event { event: Box::new(event), sequenced });
    }

    /// Will mark an event as handled.
    pub(crate) fn write_mark(&mut self, (consumer, event_id): (Arc<str>, Uuid)) {
        let at = self.log.now();
        self.write(Write::Mark { consumer, event_id, at });
    }

    fn write(&mut self, write: Write) {
        self.own.note(&write);
        self.writes.push(write);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({} writes)", self.writes.len())
    }
}

/// A place in a transaction to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    writes: usize,
}
