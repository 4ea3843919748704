//! Events that are masked, or go to a table of the application: taken out of the log by the owner's function, put where
//! they belong by the relay's own rights, in one transaction.

use futures_util::TryStreamExt;
use postrider_core::{
    ArchiveOptions, ArchiveTable, Error, ErrorKind, Field, Mask, OffsetDateTime, Recorded, Result, Sweep,
    Swept,
};
use postrider_sql::archive::{Kind, TargetColumn, check_columns, not_unique};
use sqlx_core::error::DatabaseError;
use sqlx_core::query::{Query, query};
use sqlx_core::row::Row;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::{PgArguments, PgConnection, Postgres};

use crate::error::during;
use crate::record::content;
use crate::row::{self, Names};
use crate::store::PgStore;

const OP: &str = "archive";
/// The archive's columns, each named after its field.
const ARCHIVE: &str = "id, event_id, stream, event_type, aggregate_type, aggregate_id, ordering_key, sequence, max_attempts, \
     occurred_at, recorded_at, headers, payload, content_type, content, archived_at";

impl PgStore {
    pub(crate) async fn file(&self, sweep: &Sweep, archiving: &ArchiveOptions) -> Result<Swept> {
        let mut tx = self.pool.begin().await.map_err(during(OP))?;
        let (fitting, all) = match self.fitting(&mut tx, sweep).await {
            Ok(counts) => counts,
            Err(error) => {
                let _ = tx.rollback().await;
                return Err(error);
            }
        };
        let query = self.aged_up_to("take_events", include_str!("../sql/take_events.sql"), sweep, fitting);
        let query = query.bind(self.reached.id(sweep)).bind(archiving.target.is_none());
        let (events, at) = match self.take_masked(query, &mut tx, &archiving.mask).await {
            Ok(taken) => taken,
            Err(error) => {
                // At once: it holds the lock of sweeps, and may be tried again.
                let _ = tx.rollback().await;
                return Err(error);
            }
        };
        let Some(at) = at else {
            tx.rollback().await.map_err(during(OP))?;
            return self.taken(sweep, 0, None, false).await;
        };
        self.put_away(&mut tx, archiving.target.as_ref(), &events, at).await?;
        tx.commit().await.map_err(during(OP))?;
        let last = events.last().map(|event| event.id);
        self.taken(sweep, events.len() as u64, last, fitting < all).await
    }

    /// How many of the events that a sweep may take go through memory at once, and how many it may take.
    async fn fitting(&self, connection: &mut PgConnection, sweep: &Sweep) -> Result<(u32, u32)> {
        let query = self.aged("take_fitting", include_str!("../sql/take_fitting.sql"), sweep);
        let query = query.bind(self.reached.id(sweep)).bind(ArchiveOptions::BYTES.cast_signed());
        let row = query.fetch_one(connection).await.map_err(during(OP))?;
        let count = |column| row::int64(&row, column).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        // One is taken, whatever its size.
        Ok((count(0)?.max(1), count(1)?))
    }

    /// The events, masked as they come, and the time at which they were taken, if there are any.
    async fn take_masked(
        &self,
        query: Query<'_, Postgres, PgArguments>,
        connection: &mut PgConnection,
        mask: &Mask,
    ) -> Result<(Vec<Recorded>, Option<OffsetDateTime>)> {
        let (mut events, mut at, mut names) = (Vec::new(), None, Names::of(&self.sql));
        let mut rows = query.fetch(connection);
        while let Some(row) = rows.try_next().await.map_err(during(OP))? {
            at = Some(row::timestamp(&row, 15)?);
            let mut event = row::recorded(&row, &mut names)?;
            mask.apply(&mut event);
            events.push(event);
        }
        Ok((events, at))
    }

    async fn put_away(
        &self,
        connection: &mut PgConnection,
        target: Option<&ArchiveTable>,
        events: &[Recorded],
        at: OffsetDateTime,
    ) -> Result<()> {
        let schema = self.sql.schema.quoted();
        let (into, fields) = match target {
            None => (format!("{schema}.archive ({ARCHIVE})"), ARCHIVE.to_owned()),
            Some(target) => {
                let fields: Vec<String> = target.columns().iter().map(|(_, field)| given(*field)).collect();
                (format!("{} ({})", target.quoted_table(), target.quoted_columns()), fields.join(", "))
            }
        };
        let text = include_str!("../sql/file_events.sql").replace("{fields}", &fields);
        let skip = match target.and_then(ArchiveTable::quoted_existing) {
            Some(column) => format!("\non conflict ({column}) do nothing"),
            None => String::new(),
        };
        let text = format!("insert into {into}\n{}{skip}", self.sql.text("file_events", &text).as_str());
        let all = |of: fn(&Recorded) -> String| events.iter().map(of).collect::<Vec<_>>();
        let some = |of: fn(&Recorded) -> Option<String>| events.iter().map(of).collect::<Vec<_>>();
        let query = query(AssertSqlSafe(text))
            .persistent(!self.sql.session_mode.is_shared())
            .bind(events.iter().map(|event| event.id).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.event_id).collect::<Vec<_>>())
            .bind(all(|event| event.stream.to_string()))
            .bind(all(|event| event.event_type.to_string()))
            .bind(all(|event| event.aggregate_type.to_string()))
            .bind(all(|event| event.aggregate_id.clone()))
            .bind(some(|event| event.ordering_key.clone()))
            .bind(events.iter().map(|event| event.sequence).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.max_attempts.map(u32::cast_signed)).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.occurred_at).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.recorded_at).collect::<Vec<_>>())
            .bind(all(|event| event.headers.to_json()))
            .bind(all(|event| event.payload.as_json().unwrap_or("null").to_owned()))
            .bind(some(|event| content(&event.payload).map(|(kind, _)| kind.to_owned())))
            .bind(
                events
                    .iter()
                    .map(|event| content(&event.payload).map(|(_, bytes)| bytes.to_vec()))
                    .collect::<Vec<_>>(),
            )
            .bind(at)
            .bind(target.is_some());
        match query.execute(connection).await {
            Ok(_) => Ok(()),
            Err(error) if is_not_unique(&error) => Err(target.map_or_else(|| during(OP)(error), not_unique)),
            Err(error) => Err(blame(target, during(OP)(error))),
        }
    }

    /// Whether a table of the application can take events.
    pub(crate) async fn check_target(&self, target: &ArchiveTable) -> Result<()> {
        let name = target.name();
        let refuse = |what: String| Err(Error::new(ErrorKind::Invalid, OP, what));
        let text = self.sql.text("target", include_str!("../sql/target.sql"));
        let query = text.query().bind(target.quoted_table());
        let row =
            query.fetch_one(&self.pool).await.map_err(|error| blame(Some(target), during(OP)(error)))?;
        if !row::flag(&row, 0)? {
            return refuse(format!(
                "there is no table {name} to archive into, or this role has no access to its schema"
            ));
        }
        if row::flag(&row, 3)? {
            return refuse(format!("the table {name} belongs to Postrider; use a table of your own"));
        }
        let columns: Vec<String> = row.try_get(1).map_err(during(OP))?;
        let needed: Vec<String> = row.try_get(2).map_err(during(OP))?;
        let column = |name: String| TargetColumn { needed: needed.contains(&name), name, kind: Kind::Other };
        check_columns(target, &columns.into_iter().map(column).collect::<Vec<_>>())?;
        // Of no event at all: the server says what it thinks of the statement, and nothing is written.
        let mut tx = self.pool.begin().await.map_err(during(OP))?;
        let tried = self.put_away(&mut tx, Some(target), &[], OffsetDateTime::UNIX_EPOCH).await;
        tx.rollback().await.map_err(during(OP))?;
        tried
    }
}

/// Whether no unique index has the column by which rows are left alone.
fn is_not_unique(error: &sqlx_core::Error) -> bool {
    error.as_database_error().and_then(DatabaseError::code).is_some_and(|code| code == "42P10")
}

/// What is wrong with a table of the application is said of it.
fn blame(target: Option<&ArchiveTable>, error: Error) -> Error {
    let Some(target) = target else { return error };
    let name = target.name();
    let what = match error.kind() {
        ErrorKind::Denied => format!(
            "this role may not archive into {name}; grant it usage of the schema and insert on the table"
        ),
        ErrorKind::NotMigrated => {
            format!("can't archive into {name}: the table has changed since the relay started")
        }
        _ => format!("can't archive into {name}: {}", error.message()),
    };
    Error::new(error.kind(), OP, what).caused_by(error)
}

/// A field as a target takes it: of an event that is not JSON the payload is nothing, where the archive has JSON null.
fn given(field: Field) -> String {
    match field {
        Field::Payload => "case when f.content_type is null then f.payload end".to_owned(),
        other => format!("f.{}", other.as_str()),
    }
}
