//! The event fields that envelope placeholders refer to.

use std::borrow::Cow;

use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

use crate::{CloudEvents, Recorded, nearest};

/// A field of an event in an [`Envelope`](crate::Envelope).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placeholder {
    Id,
    Type,
    EventType,
    Source,
    Stream,
    AggregateType,
    AggregateId,
    Time,
    RecordedTime,
    Key,
    Sequence,
    SchemaVersion,
    TraceId,
    CorrelationId,
    CausationId,
    ContentType,
    Payload,
    Header(String),
}

/// A piece of a text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Place(Placeholder),
}

const HEADER: &str = "header.";

impl Placeholder {
    /// As they are written.
    pub(crate) const NAMES: [&str; 18] = [
        "id",
        "type",
        "event_type",
        "source",
        "stream",
        "aggregate_type",
        "aggregate_id",
        "time",
        "recorded_time",
        "key",
        "sequence",
        "schema_version",
        "trace_id",
        "correlation_id",
        "causation_id",
        "content_type",
        "payload",
        "header.NAME",
    ];

    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "id" => Self::Id,
            "type" => Self::Type,
            "event_type" => Self::EventType,
            "source" => Self::Source,
            "stream" => Self::Stream,
            "aggregate_type" => Self::AggregateType,
            "aggregate_id" => Self::AggregateId,
            "time" => Self::Time,
            "recorded_time" => Self::RecordedTime,
            "key" => Self::Key,
            "sequence" => Self::Sequence,
            "schema_version" => Self::SchemaVersion,
            "trace_id" => Self::TraceId,
            "correlation_id" => Self::CorrelationId,
            "causation_id" => Self::CausationId,
            "content_type" => Self::ContentType,
            "payload" => Self::Payload,
            _ => match name.strip_prefix(HEADER).filter(|header| !header.is_empty()) {
                Some(header) => Self::Header(header.to_owned()),
                None => return Err(unknown(name)),
            },
        })
    }

    /// Whether its value is a JSON number.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Sequence | Self::SchemaVersion)
    }

    /// Its value, as text; `None` where the event has none.
    pub(crate) fn value<'e>(&'e self, events: &'e CloudEvents, event: &'e Recorded) -> Option<Cow<'e, str>> {
        Some(match self {
            Self::Id => event.event_id.to_string().into(),
            Self::Type => events.kind(event),
            Self::EventType => (&*event.event_type).into(),
            Self::Source => events.source_of(event.headers.source()).into(),
            Self::Stream => (&*event.stream).into(),
            Self::AggregateType => (&*event.aggregate_type).into(),
            Self::AggregateId => event.aggregate_id.as_str().into(),
            Self::Time => millis(event.occurred_at).into(),
            Self::RecordedTime => millis(event.recorded_at).into(),
            Self::Key => event.ordering_key.as_deref().unwrap_or(&event.aggregate_id).into(),
            Self::Sequence => event.sequence?.to_string().into(),
            Self::SchemaVersion => event.headers.schema_version().to_string().into(),
            Self::TraceId => trace_id(event.headers.traceparent()?).into(),
            Self::CorrelationId => event.headers.correlation_id()?.into(),
            Self::CausationId => event.headers.causation_id()?.to_string().into(),
            Self::ContentType => event.payload.content_type().into(),
            Self::Header(name) => event.headers.get(name)?.into(),
            Self::Payload => return None,
        })
    }
}

/// The sentence about a placeholder that there is not.
fn unknown(name: &str) -> String {
    // A header's own name is free: only what is before it can be wrong.
    let (before, rest) = name.split_once('.').map_or((name, None), |(before, rest)| (before, Some(rest)));
    let names = Placeholder::NAMES.iter().map(|known| known.strip_suffix(".NAME").unwrap_or(known));
    let meant = nearest(before, names).map(|known| match (known, rest) {
        ("header", None | Some("")) => "header.NAME".to_owned(),
        ("header", Some(rest)) => format!("{HEADER}{rest}"),
        _ => known.to_owned(),
    });
    match meant {
        Some(meant) => format!("has an unknown placeholder {{{name}}}; did you mean {{{meant}}}?"),
        None => {
            let known = Placeholder::NAMES.map(|known| format!("{{{known}}}")).join(", ");
            format!("has an unknown placeholder {{{name}}}; the known ones are {known}")
        }
    }
}

/// Takes a text apart at its placeholders; `{{` and `}}` are braces.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let from = &rest[at..];
        if from.starts_with("{{") || from.starts_with("}}") {
            plain.push_str(&from[..1]);
            rest = &from[2..];
            continue;
        }
        let unmatched = || "has an unmatched brace; write {{ or }} for a brace itself".to_owned();
        let inner = from.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = inner.ok_or_else(unmatched)?;
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Place(Placeholder::parse(name)?));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// A time in UTC with milliseconds.
fn millis(time: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    time.to_offset(UtcOffset::UTC).format(&format).unwrap_or_default()
}

/// The trace id of a W3C `traceparent`; whatever else stands there is one itself.
fn trace_id(traceparent: &str) -> &str {
    let parts: Vec<&str> = traceparent.split('-').collect();
    match parts.as_slice() {
        [version, id, parent, _, ..] if version.len() == 2 && id.len() == 32 && parent.len() == 16 => id,
        _ => traceparent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_that_of_w3c_or_the_header_itself() {
        let w3c = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(trace_id(w3c), "0af7651916cd43dd8448eb211c80319c");
        let uuid = "018f3c5e-7b1a-7c3d-8e2f-0123456789ab";
        assert_eq!(trace_id(uuid), uuid);
    }

    #[test]
    fn times_are_utc_with_three_digits() {
        let late = OffsetDateTime::UNIX_EPOCH.to_offset(UtcOffset::from_hms(9, 0, 0).expect("an offset"));
        assert_eq!(millis(late), "1970-01-01T00:00:00.000Z");
    }
}
