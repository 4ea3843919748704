//! Recording events, in the caller's transaction.

use async_trait::async_trait;
use postrider_core::{Error, ErrorKind, EventBus, NewEvent, Recordable, Recorded, Result};
use uuid::Uuid;

use crate::clock::to_micros;
use crate::lock::Key;
use crate::outbox::Outbox;
use crate::transaction::Connection;

const OP: &str = "record";

impl Outbox {
    /// Records an event in the caller's transaction and returns its id.
    ///
    /// It is in the log if, and when, that transaction commits. *Record after you lock or change the aggregate*: then its
    /// events have the order of its changes. If it is refused, nothing was written and the transaction goes on.
    pub async fn record(&self, connection: &mut Connection, event: &impl Recordable) -> Result<Uuid> {
        let event = self.recording.prepare(event)?;
        recorded_now(connection, event).await
    }

    /// Records events in the order given: all of them, or none if one is refused.
    pub async fn record_all(
        &self,
        connection: &mut Connection,
        events: &[impl Recordable],
    ) -> Result<Vec<Uuid>> {
        let events = self.recording.prepare_all(events)?;
        let ids = events.iter().map(|event| event.event_id).collect();
        for event in &events {
            if !is_free(connection, event).await? {
                return Err(taken());
            }
        }
        for event in &events {
            lock_counter(connection, event).await?;
        }
        for event in events {
            write(connection, event);
        }
        Ok(ids)
    }

    /// Records an event unless its id already exists; returns whether it was recorded.
    pub async fn record_once(&self, connection: &mut Connection, event: &impl Recordable) -> Result<bool> {
        let event = self.recording.prepare(event)?;
        insert(connection, event).await
    }

    /// Records an event in a transaction of its own. Use it for an event without a change of your data.
    pub async fn record_outside_transaction(&self, event: &impl Recordable) -> Result<Uuid> {
        let event = self.recording.prepare(event)?;
        let mut transaction = self.begin().await?;
        let id = recorded_now(&mut transaction, event).await?;
        transaction.commit().await?;
        Ok(id)
    }
}

#[async_trait]
impl EventBus<Connection> for Outbox {
    async fn publish(&self, within: &mut Connection, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        let event = self.recording.prepare(event)?;
        recorded_now(within, event).await
    }
}

pub(crate) async fn recorded_now(connection: &mut Connection, event: NewEvent) -> Result<Uuid> {
    let id = event.event_id;
    if insert(connection, event).await? { Ok(id) } else { Err(taken()) }
}

async fn insert(connection: &mut Connection, event: NewEvent) -> Result<bool> {
    if !is_free(connection, &event).await? {
        return Ok(false);
    }
    lock_counter(connection, &event).await?;
    write(connection, event);
    Ok(true)
}

/// Whether the id of an event is free, once every other transaction that has recorded it has ended.
async fn is_free(connection: &mut Connection, event: &NewEvent) -> Result<bool> {
    connection.hold.take(Key::Event(event.event_id), OP).await?;
    Ok(!connection.has_event(event.event_id))
}

/// Keeps the numbers of an event's key to this transaction. Its number is given at the commit, so none is lost.
async fn lock_counter(connection: &mut Connection, event: &NewEvent) -> Result<()> {
    if !event.sequenced {
        return Ok(());
    }
    let key = event.ordering_key.clone();
    let key = key.unwrap_or_else(|| format!("{}:{}", event.aggregate_type, event.aggregate_id));
    connection.hold.take(Key::Counter(key), OP).await
}

/// The id is handed out here, after all locks: within a key that is locked, ids have the order of commits.
fn write(connection: &mut Connection, event: NewEvent) {
    let (id, now) = (connection.log.data().next_id(), connection.log.now());
    let recorded = Recorded {
        id,
        event_id: event.event_id,
        stream: event.stream.into(),
        event_type: event.event_type.into(),
        aggregate_type: event.aggregate_type.into(),
        aggregate_id: event.aggregate_id,
        ordering_key: event.ordering_key,
        sequence: None,
        payload: event.payload,
        headers: event.headers,
        occurred_at: event.occurred_at.map_or(now, to_micros),
        recorded_at: now,
        max_attempts: event.max_attempts,
    };
    connection.write_event(recorded, event.sequenced);
}

fn taken() -> Error {
    let message = "an event with this id already exists; nothing was written";
    Error::new(ErrorKind::AlreadyRecorded, OP, message)
}
