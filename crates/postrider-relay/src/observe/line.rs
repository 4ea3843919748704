//! The fields of a log line about an event. Its payload is never logged.

/// A line on an event, with the fields that every line on an event has. `$event` is a `Recorded`.
macro_rules! line {
    ($level:ident, $subscription:expr, $event:expr, $attempt:expr, $outcome:literal, { $($field:tt)* }, $text:literal) => {
        tracing::$level!(subscription = %$subscription, trace_id = $event.headers.traceparent().unwrap_or_default(),
            event_id = %$event.event_id, stream = %$event.stream, event_type = %$event.event_type,
            aggregate_type = %$event.aggregate_type, aggregate_id = %$event.aggregate_id, attempt = $attempt,
            outcome = $outcome, $($field)* $text)
    };
}

pub(crate) use line;
