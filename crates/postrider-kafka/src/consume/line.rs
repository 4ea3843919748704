//! The fields of a log line about a record: its place in the topic and its event, under the names that a relay uses. Its payload is
//! never logged.

use std::fmt::Display;

use postrider_core::Recorded;
use tracing::field::{DisplayValue, display};

use crate::consume::arrived::Arrived;
use crate::consume::partition_batch::{Batch, Consequence};
use crate::consume::worker::Worker;

/// A line on a record, with the fields that every line on a record has. `$record` is an `Arrived`, `$event` an `Option<&Recorded>`: a record
/// that is no event has no fields of one.
macro_rules! line {
    ($level:ident, $group:expr, $record:expr, $event:expr, { $($field:tt)* }, $text:literal) => {{
        let event: Option<&postrider_core::Recorded> = $event;
        tracing::$level!(group = %$group, topic = %$record.topic, partition = $record.partition,
            offset = $record.offset, trace_id = $crate::consume::line::trace(event),
            event_id = $crate::consume::line::shown(event, |event| &event.event_id),
            stream = $crate::consume::line::shown(event, |event| &event.stream),
            event_type = $crate::consume::line::shown(event, |event| &event.event_type),
            aggregate_type = $crate::consume::line::shown(event, |event| &event.aggregate_type),
            aggregate_id = $crate::consume::line::shown(event, |event| &event.aggregate_id), $($field)* $text)
    }};
}

pub(crate) use line;

/// The trace of an event; empty where it has none.
pub(crate) fn trace(event: Option<&Recorded>) -> Option<&str> {
    event.map(|event| event.headers.traceparent().unwrap_or_default())
}

/// A part of an event, if there is one.
pub(crate) fn shown<'e, T: Display>(
    event: Option<&'e Recorded>,
    part: impl Fn(&'e Recorded) -> &'e T,
) -> Option<DisplayValue<&'e T>> {
    event.map(|event| display(part(event)))
}

impl Worker {
    /// One line on what followed for a record. What is given up is said once its dead letter is written.
    pub(crate) fn say(&self, batch: &Batch, index: usize, consequence: &Consequence) {
        let (group, item) = (&self.shared.group, &batch.items[index]);
        let (record, event, tries) = (&item.record, item.event(), item.tries);
        match consequence {
            Consequence::Handled => {
                line!(debug, group, record, event, { attempt = tries + 1, outcome = "delivered", }, "handled");
            }
            Consequence::Duplicate => {
                line!(debug, group, record, event, { attempt = tries + 1, outcome = "duplicate", },
                    "already handled; skipped");
            }
            Consequence::Again(pause, failure) => {
                line!(warn, group, record, event,
                    { attempt = tries, outcome = "retry", next_in_seconds = pause.as_secs_f64(),
                      error_code = %failure.code, error = %failure.message, },
                    "failed; it will be retried");
            }
            Consequence::Held(pause, failure) => {
                line!(warn, group, record, event,
                    { attempt = tries + 1, outcome = "hold", next_in_seconds = pause.as_secs_f64(),
                      error_code = %failure.code, error = %failure.message, },
                    "can't be handled yet; the event waits, and this does not count as an attempt");
            }
            Consequence::GivenUp => {}
        }
        if matches!(consequence, Consequence::Handled | Consequence::Duplicate) {
            self.say_duplicates(batch, index);
        }
    }

    /// One line on each record that has the same event as this one.
    pub(crate) fn say_duplicates(&self, batch: &Batch, index: usize) {
        for same in batch.duplicates(index) {
            line!(debug, self.shared.group, same.record, same.event(), { outcome = "duplicate", },
                "skipped: the event is already in this batch");
        }
    }

    /// One line on a record that is for another group.
    pub(crate) fn say_passed_over(&self, record: &Arrived) {
        // Its event is read for the line alone.
        if tracing::enabled!(tracing::Level::DEBUG) {
            let event = record.event().ok();
            line!(debug, self.shared.group, record, event.as_ref(), { outcome = "skipped", },
                "skipped: the event was requeued for another group");
        }
    }
}
