//! Rows of the log as events.
//!
//! Nothing that a table accepts may stop a reader: what is not as it must be is read as far as it can be, and named, so that the event
//! is dead by itself and not delivered as another one.

use std::borrow::Cow;
use std::sync::Arc;

use postrider_core::{Headers, OffsetDateTime, Payload, Recorded, Result};
use uuid::Uuid;

use crate::columns::{Columns, lossy};

/// The columns of an event, in the order of every statement that reads them.
pub mod column {
    #![allow(missing_docs)]
    pub const ID: usize = 0;
    pub const EVENT_ID: usize = 1;
    pub const STREAM: usize = 2;
    pub const EVENT_TYPE: usize = 3;
    pub const AGGREGATE_TYPE: usize = 4;
    pub const AGGREGATE_ID: usize = 5;
    pub const ORDERING_KEY: usize = 6;
    pub const SEQUENCE: usize = 7;
    pub const PAYLOAD: usize = 8;
    pub const CONTENT_TYPE: usize = 9;
    pub const CONTENT: usize = 10;
    pub const HEADERS: usize = 11;
    pub const OCCURRED_AT: usize = 12;
    pub const RECORDED_AT: usize = 13;
    pub const MAX_ATTEMPTS: usize = 14;
}

/// Names that many events of a batch share, kept once.
#[derive(Default)]
pub struct Names(Vec<Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        // A batch with hundreds of names shares little: don't search for long.
        if self.0.len() < 64 {
            self.0.push(Arc::clone(&new));
        }
        new
    }
}

/// An event as far as its row can be read.
pub struct Decoded {
    /// The event. What can't be read is as near to it as can be.
    pub event: Recorded,
    /// Why it must not be delivered, if its row can't be read as a whole.
    pub unreadable: Option<String>,
}

/// The event id. One that is none (checks can be turned off for a connection) is made of the event's number.
pub fn event_id(row: &impl Columns, op: &'static str) -> Uuid {
    given_id(row, op).unwrap_or_else(|| {
        let number = row.number(column::ID, op).unwrap_or(0);
        Uuid::from_u64_pair(0, number.cast_unsigned())
    })
}

fn given_id(row: &impl Columns, op: &'static str) -> Option<Uuid> {
    row.id(column::EVENT_ID, op).ok()
}

/// The event of a row. How a time is kept is for `time` to know.
pub fn decoded<R: Columns>(
    row: &R,
    time: fn(&R, usize, &'static str) -> Result<OffsetDateTime>,
    names: &mut Names,
    op: &'static str,
) -> Result<Decoded> {
    let mut texts = Texts { row, op, flaws: Vec::new() };
    let recorded_at = time(row, column::RECORDED_AT, op).unwrap_or_else(|_| {
        texts.flaws.push("recorded_at");
        OffsetDateTime::UNIX_EPOCH
    });
    if given_id(row, op).is_none() {
        texts.flaws.push("event_id");
    }
    let number = |column| row.maybe_number(column, op).ok().flatten();
    let event = Recorded {
        id: row.number(column::ID, op)?,
        event_id: event_id(row, op),
        stream: names.shared(&texts.text(column::STREAM, "stream")),
        event_type: names.shared(&texts.text(column::EVENT_TYPE, "event_type")),
        aggregate_type: names.shared(&texts.text(column::AGGREGATE_TYPE, "aggregate_type")),
        aggregate_id: texts.text(column::AGGREGATE_ID, "aggregate_id").into_owned(),
        ordering_key: texts.maybe_text(column::ORDERING_KEY, "ordering_key").map(Cow::into_owned),
        sequence: number(column::SEQUENCE),
        headers: Headers::from_json(texts.text(column::HEADERS, "headers").into_owned()),
        payload: texts.payload(),
        // A day that the calendar does not have is no reason to withhold an event.
        occurred_at: time(row, column::OCCURRED_AT, op).unwrap_or(recorded_at),
        recorded_at,
        max_attempts: number(column::MAX_ATTEMPTS).and_then(|most| u32::try_from(most).ok()),
    };
    Ok(Decoded { event, unreadable: texts.sentence() })
}

/// The texts of a row, and the columns that are not as they must be: nothing of that may be delivered as if it were.
struct Texts<'r, R> {
    row: &'r R,
    op: &'static str,
    flaws: Vec<&'static str>,
}

impl<'r, R: Columns> Texts<'r, R> {
    fn maybe_text(&mut self, column: usize, name: &'static str) -> Option<Cow<'r, str>> {
        let text = match self.row.maybe_bytes(column, self.op) {
            Ok(bytes) => lossy(bytes?),
            Err(_) => Cow::Owned(String::new()),
        };
        if matches!(text, Cow::Owned(_)) {
            self.flaws.push(name);
        }
        Some(text)
    }

    fn text(&mut self, column: usize, name: &'static str) -> Cow<'r, str> {
        self.maybe_text(column, name).unwrap_or_else(|| {
            self.flaws.push(name);
            Cow::Borrowed("")
        })
    }

    fn payload(&mut self) -> Payload {
        if let Some(json) = self.maybe_text(column::PAYLOAD, "payload") {
            return Payload::Json(json.into_owned());
        }
        let content_type = self.maybe_text(column::CONTENT_TYPE, "content_type").unwrap_or_default();
        let content = self.row.maybe_bytes(column::CONTENT, self.op).ok().flatten();
        Payload::Bytes {
            content_type: content_type.into_owned(),
            bytes: content.unwrap_or_default().to_vec(),
        }
    }

    fn sentence(&self) -> Option<String> {
        (!self.flaws.is_empty()).then(|| unreadable(&self.flaws.join(", ")))
    }
}

/// Why an event with these columns must not be delivered.
pub fn unreadable(columns: &str) -> String {
    format!(
        "can't read the event: {columns} must be UTF-8 text (event_id: 16 bytes, recorded_at: a time); record it again"
    )
}
