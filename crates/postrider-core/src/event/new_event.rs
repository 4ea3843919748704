//! An event before it is recorded.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, ErrorKind, Headers, Limits, Payload, Result};

/// An event that is built by hand, ready to record.
///
/// An application with types derives [`Event`](crate::Event) instead.
///
/// ```
/// # extern crate postrider_core as postrider;
/// # fn main() -> postrider::Result<()> {
/// use std::collections::BTreeMap;
///
/// use postrider::NewEvent;
///
/// let payload = BTreeMap::from([("order", 7)]);
/// let event = NewEvent::of("orders", "OrderPaid", "Order", "7", &payload)?
///     .ordered_by("customer 3")
///     .with_header("tenant", "acme");
/// assert_eq!(event.ordering_key.as_deref(), Some("customer 3"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Its id. Default: a UUIDv7.
    pub event_id: Uuid,
    /// Its stream.
    pub stream: String,
    /// Its type, such as `OrderPaid`.
    pub event_type: String,
    /// The type of its aggregate, such as `Order`.
    pub aggregate_type: String,
    /// The id of its aggregate.
    pub aggregate_id: String,
    /// Its ordering key. Default: the aggregate.
    pub ordering_key: Option<String>,
    /// Its payload.
    pub payload: Payload,
    /// Its headers.
    pub headers: Headers,
    /// When it happened. Default: when the database records it.
    pub occurred_at: Option<OffsetDateTime>,
    /// Whether to number it within its ordering key, without gaps.
    pub sequenced: bool,
    /// Maximum number of delivery attempts. Default: the subscription's.
    pub max_attempts: Option<u32>,
}

impl NewEvent {
    /// An event with a payload.
    pub fn new(
        stream: impl Into<String>,
        event_type: impl Into<String>,
        aggregate_type: impl Into<String>,
        aggregate_id: impl Into<String>,
        payload: Payload,
    ) -> Self {
        Self {
            event_id: Uuid::now_v7(),
            stream: stream.into(),
            event_type: event_type.into(),
            aggregate_type: aggregate_type.into(),
            aggregate_id: aggregate_id.into(),
            ordering_key: None,
            payload,
            headers: Headers::new(),
            occurred_at: None,
            sequenced: false,
            max_attempts: None,
        }
    }

    /// An event whose payload is a value, serialized as JSON.
    pub fn of<T: Serialize + ?Sized>(
        stream: impl Into<String>,
        event_type: impl Into<String>,
        aggregate_type: impl Into<String>,
        aggregate_id: impl Into<String>,
        value: &T,
    ) -> Result<Self> {
        Ok(Self::new(stream, event_type, aggregate_type, aggregate_id, Payload::json(value)?))
    }

    /// Sets its id.
    #[must_use]
    pub fn with_id(mut self, event_id: Uuid) -> Self {
        self.event_id = event_id;
        self
    }

    /// Orders it by `key` instead of its aggregate.
    #[must_use]
    pub fn ordered_by(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.set(name, value);
        self
    }

    /// Numbers it within its ordering key, without gaps.
    #[must_use]
    pub fn sequenced(mut self) -> Self {
        self.sequenced = true;
        self
    }

    /// Limits its delivery to `attempts` attempts.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Approximate size in a statement in bytes: payload, headers as JSON, and names.
    pub fn size(&self) -> usize {
        let names = [&self.stream, &self.event_type, &self.aggregate_type, &self.aggregate_id];
        let names = names.into_iter().chain(&self.ordering_key).map(String::len).sum::<usize>();
        self.payload.as_bytes().len() + self.headers.to_json().len() + names
    }

    /// Checks that a store can keep it: names, keys, sizes, no NUL. The error says which part is wrong and why.
    ///
    /// Returns the headers as the text of a JSON object, which the check needs anyway.
    pub fn check(&self, limits: &Limits) -> Result<String> {
        Limits::check_text("stream", &self.stream, Limits::NAME)?;
        Limits::check_text("event type", &self.event_type, Limits::NAME)?;
        Limits::check_text("aggregate type", &self.aggregate_type, Limits::NAME)?;
        Limits::check_text("aggregate id", &self.aggregate_id, Limits::KEY)?;
        if let Some(key) = &self.ordering_key {
            Limits::check_text("ordering key", key, Limits::KEY)?;
        }
        for (name, value) in self.headers.iter() {
            Limits::check_text("name of a header", name, Limits::NAME)?;
            if value.contains('\0') {
                let message = format!("the header {name} must not contain a NUL character");
                return Err(Error::new(ErrorKind::Invalid, "record", message));
            }
        }
        if self.max_attempts.is_some_and(|attempts| attempts == 0 || i32::try_from(attempts).is_err()) {
            let message = "max_attempts must be at least 1 and below 2^31; it includes the first attempt";
            return Err(Error::new(ErrorKind::Invalid, "record", message));
        }
        if let Payload::Bytes { content_type, .. } = &self.payload {
            Limits::check_text("content type", content_type, Limits::NAME)?;
        }
        limits.check_payload(&self.payload)?;
        self.payload.check()?;
        let headers = self.headers.to_json();
        limits.check_headers(&headers)?;
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> NewEvent {
        NewEvent::new("orders", "OrderPaid", "Order", "1", Payload::Json("{}".into()))
    }

    fn refusal(event: &NewEvent) -> String {
        event.check(&Limits::default()).expect_err("must be refused").to_string()
    }

    #[test]
    fn what_is_wrong_with_an_event_is_named() {
        event().check(&Limits::default()).expect("a good event");
        assert_eq!(
            refusal(&NewEvent { stream: String::new(), ..event() }),
            "record: the stream must not be empty"
        );
        assert_eq!(
            refusal(&NewEvent { event_type: "x".repeat(201), ..event() }),
            "record: the event type has 201 bytes; at most 200 are allowed"
        );
        assert!(refusal(&NewEvent { aggregate_id: "a\0b".into(), ..event() }).contains("NUL"));
        assert!(refusal(&event().ordered_by("")).contains("ordering key must not be empty"));
        assert!(refusal(&event().with_header("note", "a\0b")).contains("header note"));
        assert!(refusal(&event().max_attempts(0)).contains("at least 1"));
        assert!(refusal(&NewEvent { payload: Payload::Json("{".into()), ..event() }).contains("not JSON"));
        let large = NewEvent { payload: Payload::Json("x".repeat((1 << 20) + 1)), ..event() };
        assert!(refusal(&large).contains("1048577 bytes"));
    }

    #[test]
    fn ids_are_version_7_and_distinct() {
        let (first, second) = (event().event_id, event().event_id);
        assert_eq!(first.get_version_num(), 7);
        assert!(first < second);
    }
}
