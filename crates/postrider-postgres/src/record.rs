//! Recording: the event goes into the caller's own transaction.

use std::borrow::Cow;
use std::collections::HashSet;

use postrider_core::{Error, ErrorKind, NewEvent, Payload, Recordable, Result, Trace, Uuid};
use sqlx_postgres::PgConnection;

use crate::error::during;
use crate::outbox::Outbox;
use crate::sql::Sql;

impl Outbox {
    /// Records an event in the caller's transaction and returns its id.
    ///
    /// It is delivered if, and only if, that transaction commits. *Record after you lock or change the
    /// aggregate*: then its events have the order of its changes. An event that can't be recorded (a name,
    /// a size, a NUL, an id that is taken) is an error that leaves the transaction usable.
    pub async fn record(
        &self,
        connection: &mut PgConnection,
        event: &(impl Recordable + ?Sized),
    ) -> Result<Uuid> {
        let (event, headers) = self.prepare(event)?;
        if insert(&self.sql, connection, &event, is_new(&event), headers).await? {
            Ok(event.event_id)
        } else {
            Err(taken())
        }
    }

    /// Records an event unless its id already exists; returns whether it was recorded.
    pub async fn record_once(&self, connection: &mut PgConnection, event: &impl Recordable) -> Result<bool> {
        let (event, headers) = self.prepare(event)?;
        insert(&self.sql, connection, &event, is_new(&event), headers).await
    }

    /// Records any number of events in one round trip, in their order, all or none.
    pub async fn record_all<E: Recordable>(
        &self,
        connection: &mut PgConnection,
        events: &[E],
    ) -> Result<Vec<Uuid>> {
        let prepared = events.iter().map(|event| self.prepare(event)).collect::<Result<Vec<_>>>()?;
        let (events, headers): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
        let ids: Vec<Uuid> = events.iter().map(|event| event.event_id).collect();
        if ids.is_empty() {
            return Ok(ids);
        }
        if ids.iter().collect::<HashSet<_>>().len() < ids.len() {
            return Err(Error::new(ErrorKind::Invalid, "record", "two of the events have the same id"));
        }
        let texts =
            |of: fn(&NewEvent) -> &String| events.iter().map(|event| of(event).clone()).collect::<Vec<_>>();
        let written = self
            .sql
            .record_all
            .query()
            .bind(ids.clone())
            .bind(texts(|event| &event.stream))
            .bind(texts(|event| &event.event_type))
            .bind(texts(|event| &event.aggregate_type))
            .bind(texts(|event| &event.aggregate_id))
            .bind(events.iter().map(|event| event.ordering_key.clone()).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.sequenced.then_some(0_i64)).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.max_attempts.map(u32::cast_signed)).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.occurred_at).collect::<Vec<_>>())
            .bind(headers)
            .bind(
                events.iter().map(|event| event.payload.as_json().map(ToOwned::to_owned)).collect::<Vec<_>>(),
            )
            .bind(
                events
                    .iter()
                    .map(|event| content(&event.payload).map(|(kind, _)| kind.to_owned()))
                    .collect::<Vec<_>>(),
            )
            .bind(
                events
                    .iter()
                    .map(|event| content(&event.payload).map(|(_, bytes)| bytes.to_vec()))
                    .collect::<Vec<_>>(),
            )
            .execute(connection)
            .await
            .map_err(during("record"))?
            .rows_affected();
        if written == 0 { Err(taken()) } else { Ok(ids) }
    }

    /// Records an event by itself, on a connection of the outbox's pool, outside of any transaction of the
    /// caller's: nothing ties it to a change of the application's data.
    pub async fn record_outside_transaction(&self, event: &impl Recordable) -> Result<Uuid> {
        let mut connection = self.sessions().hold("record").await?;
        let id = self.record(&mut connection, event).await?;
        connection.finish("record").await?;
        Ok(id)
    }

    /// The event, checked, and its headers as JSON, with the outbox's source and the current trace where it has none.
    fn prepare<'e>(&self, event: &'e (impl Recordable + ?Sized)) -> Result<(Cow<'e, NewEvent>, String)> {
        let event = event.to_new_event()?;
        self.recording.allowed.check(&event)?;
        let mut headers = event.check(&self.recording.limits)?;
        let source = self.recording.source.as_deref().filter(|_| event.headers.source().is_none());
        let trace = self.recording.trace.as_ref().filter(|_| event.headers.traceparent().is_none());
        let trace = trace.and_then(Trace::current);
        if source.is_some() || trace.is_some() {
            let mut all = event.headers.clone();
            source.into_iter().for_each(|source| all.set_source(source));
            trace.into_iter().for_each(|trace| all.set_traceparent(trace));
            headers = all.to_json();
        }
        Ok((event, headers))
    }
}

/// Inserts an event that was checked; whether its id was free.
pub(crate) async fn insert(
    sql: &Sql,
    connection: &mut PgConnection,
    event: &NewEvent,
    is_new: bool,
    headers: String,
) -> Result<bool> {
    let is_plain = is_new
        && event.ordering_key.is_none()
        && !event.sequenced
        && event.max_attempts.is_none()
        && event.occurred_at.is_none()
        && event.payload.as_json().is_some();
    let query = if is_plain { sql.record_plain.query() } else { sql.record.query() };
    let query = query
        .bind(event.event_id)
        .bind(&event.stream)
        .bind(&event.event_type)
        .bind(&event.aggregate_type)
        .bind(&event.aggregate_id)
        .bind(headers)
        .bind(event.payload.as_json());
    let query = if is_plain {
        query
    } else {
        let content = content(&event.payload);
        query
            .bind(event.ordering_key.as_deref())
            .bind(event.sequenced.then_some(0_i64))
            .bind(event.max_attempts.map(u32::cast_signed))
            .bind(event.occurred_at)
            .bind(content.map(|(kind, _)| kind))
            .bind(content.map(|(_, bytes)| bytes))
    };
    let written = query.execute(connection).await.map_err(during("record"))?;
    Ok(written.rows_affected() > 0)
}

/// The type and the bytes of a payload that is not JSON.
pub(crate) fn content(payload: &Payload) -> Option<(&str, &[u8])> {
    match payload {
        Payload::Json(_) => None,
        Payload::Bytes { content_type, bytes } => Some((content_type, bytes)),
    }
}

/// A typed event becomes a new one, with an id of its own, at each call; only one made by hand can be known already.
#[allow(clippy::ptr_arg)]
fn is_new(event: &Cow<'_, NewEvent>) -> bool {
    matches!(event, Cow::Owned(_))
}

pub(crate) fn taken() -> Error {
    let message = "an event with this id already exists; record_once skips an event that exists";
    Error::new(ErrorKind::AlreadyRecorded, "record", message)
}
