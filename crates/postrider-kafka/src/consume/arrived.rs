//! A consumed record, and the event in it.

use std::sync::Arc;

use postrider_core::{
    Attributes, CloudEvents, Error, ErrorKind, IncomingEvent, OffsetDateTime, Recorded, Result,
};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use time::format_description::well_known::Rfc3339;

/// The group that a dead letter was requeued for: handlers of other groups skip the record.
pub(crate) const REQUEUED_FOR: &str = "postrider_requeued_for";
/// The time that a record had before it became a dead letter, in milliseconds since 1970.
pub(crate) const RECORD_TIME: &str = "postrider_record_time";
/// The topic that a dead letter was in before: only letters have it.
pub(crate) const TOPIC: &str = "postrider_topic";
/// When the event of a bare payload occurred, as RFC 3339 writes it: the record's own time is that of its producing.
pub(crate) const OCCURRED_AT: &str = "occurred_at";

/// A record as it arrived, byte for byte.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    /// Whether all its headers could be read: of one whose name is not UTF-8 the client says nothing.
    pub(crate) is_legible: bool,
    /// When it was written there, in milliseconds since 1970, where the record has a time.
    pub(crate) time: Option<i64>,
}

impl Arrived {
    pub(crate) fn new(topic: Arc<str>, message: &impl Message) -> Self {
        let own = |header: Header<'_, &[u8]>| (header.key.to_owned(), header.value.map(<[u8]>::to_vec));
        let count = message.headers().map_or(0, Headers::count);
        // The client panics at a name that is not UTF-8; the other headers belong into the dead letter.
        let read = |index: usize| {
            let read = || message.headers().and_then(|headers| headers.try_get(index)).map(own);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).ok().flatten()
        };
        let headers: Vec<_> = (0..count).filter_map(read).collect();
        Self {
            topic,
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            is_legible: headers.len() == count,
            headers,
            time: message.timestamp().to_millis(),
        }
    }

    /// About how much memory it takes.
    pub(crate) fn size(&self) -> usize {
        let size = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + size(value)).sum();
        size(&self.key) + size(&self.value) + headers + size_of::<Self>()
    }

    /// The value of a header, if it is text; the last where there are several.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.1.as_deref()?).ok()
    }

    /// The headers that pass, for another record.
    pub(crate) fn headers_but(&self, passes: impl Fn(&str) -> bool) -> OwnedHeaders {
        let headers = OwnedHeaders::new_with_capacity(self.headers.len() + 8);
        self.headers.iter().filter(|(name, _)| passes(name)).fold(headers, |headers, (name, value)| {
            headers.insert(Header { key: name, value: value.as_deref() })
        })
    }

    /// Whether it was put back for another group.
    pub(crate) fn is_for_another(&self, group: &str) -> bool {
        self.text(REQUEUED_FOR).is_some_and(|wanted| wanted != group)
    }

    /// When it was first written, in milliseconds since 1970: a dead letter, and one that was put back, say so in a header.
    pub(crate) fn time(&self) -> Option<i64> {
        let was_given_up = self.text(REQUEUED_FOR).or(self.text(TOPIC));
        let before = was_given_up.and_then(|_| self.text(RECORD_TIME)?.parse().ok());
        before.or(self.time)
    }

    /// The topic that it was first written to: a dead letter says so in a header. Its event is the same as it was there.
    fn first_topic(&self) -> &str {
        self.text(TOPIC).unwrap_or(&self.topic)
    }

    fn arrival<'a>(&'a self, key: Option<&'a str>) -> IncomingEvent<'a> {
        let nanos = i128::from(self.time().unwrap_or_default()) * 1_000_000;
        let time = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        IncomingEvent { topic: self.first_topic(), key, number: self.offset, time }
    }

    /// The event in it: a CloudEvent in binary or structured mode, or a payload with the headers `event_id` and
    /// `event_type`. What it does not say is known from the record: see [`CloudEvents::read`]. *On failure*: why it is none, in a sentence without the payload.
    pub(crate) fn event(&self) -> Result<Recorded> {
        if !self.is_legible {
            return Err(refused("the names of headers must be UTF-8".to_owned()));
        }
        let key = self.key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
        let arrival = self.arrival(key);
        let content_type = self.text("content-type");
        if let Some(kind) = content_type.filter(|kind| kind.starts_with("application/cloudevents")) {
            let essence = kind.split(';').next().unwrap_or_default().trim();
            if essence != "application/cloudevents+json" {
                return Err(refused(format!(
                    "the content type {essence} is not supported; send application/cloudevents+json"
                )));
            }
            return CloudEvents::read_json(self.value.as_deref().unwrap_or_default(), &arrival);
        }
        if self.headers.iter().any(|(name, _)| name.starts_with("ce_")) {
            let payload = CloudEvents::payload(content_type, self.value.as_deref())?;
            return CloudEvents::read(&self.attributes(content_type)?, payload, &arrival);
        }
        if let (Some(id), Some(kind)) = (self.text("event_id"), self.text("event_type")) {
            return self.plain(id, kind, content_type, &arrival);
        }
        Err(refused(
            "it is not a CloudEvent: it has neither ce_ headers nor the content type application/cloudevents+json".to_owned(),
        ))
    }

    /// The attributes in the headers of the binary mode.
    fn attributes(&self, content_type: Option<&str>) -> Result<Attributes> {
        let mut attributes = Attributes::new();
        for (name, value) in &self.headers {
            let Some(attribute) = name.strip_prefix("ce_") else { continue };
            let text = std::str::from_utf8(value.as_deref().unwrap_or_default())
                .map_err(|_| refused(format!("the header {name:?} is not UTF-8")))?;
            attributes.insert(attribute.to_ascii_lowercase(), text.to_owned());
        }
        // Tracers write theirs beside the attributes.
        for (name, value) in [("datacontenttype", content_type), ("traceparent", self.text("traceparent"))] {
            if let Some(value) = value {
                attributes.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        Ok(attributes)
    }

    /// When the event beside a bare payload occurred, with the header's place. The first such header is ours: an application may
    /// have one of that name, too. What is no time is somebody else's header.
    fn occurred_at(&self) -> Option<(usize, &str)> {
        let place = self.headers.iter().position(|(name, _)| name == OCCURRED_AT)?;
        let text = std::str::from_utf8(self.headers[place].1.as_deref()?).ok()?;
        OffsetDateTime::parse(text, &Rfc3339).is_ok().then_some((place, text))
    }

    /// The event of a record that has the payload alone, with the event's own headers beside it.
    fn plain(
        &self,
        id: &str,
        kind: &str,
        content_type: Option<&str>,
        arrival: &IncomingEvent<'_>,
    ) -> Result<Recorded> {
        let payload = CloudEvents::payload(content_type, self.value.as_deref())?;
        let mut attributes = Attributes::new();
        for (name, value) in [("specversion", "1.0"), ("id", id), ("type", kind), ("source", arrival.topic)] {
            attributes.insert(name.to_owned(), value.to_owned());
        }
        let occurred_at = self.occurred_at();
        if let Some((_, text)) = occurred_at {
            attributes.insert("time".to_owned(), text.to_owned());
        }
        let mut event = CloudEvents::read(&attributes, payload, arrival)?;
        event.headers = postrider_core::Headers::new();
        for (index, (name, value)) in self.headers.iter().enumerate() {
            let known = matches!(name.as_str(), "event_id" | "event_type" | "content-type")
                || occurred_at.is_some_and(|(place, _)| place == index);
            if let (false, Some(Ok(text))) = (known, value.as_deref().map(std::str::from_utf8)) {
                event.headers.set(name, text);
            }
        }
        Ok(event)
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Invalid, "read", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(headers: &[(&str, &str)], value: &str) -> Arrived {
        Arrived {
            topic: "orders".into(),
            partition: 2,
            offset: 7,
            key: Some(b"order-1".to_vec()),
            value: Some(value.as_bytes().to_vec()),
            is_legible: true,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Some(value.as_bytes().to_vec())))
                .collect(),
            time: Some(1_000),
        }
    }

    const BINARY: [(&str, &str); 5] = [
        ("ce_specversion", "1.0"),
        ("ce_id", "1"),
        ("ce_source", "/s"),
        ("ce_type", "OrderPaid"),
        ("content-type", "application/json"),
    ];

    #[test]
    fn events_of_all_three_formats_are_read() {
        let binary = record(&BINARY, "{\"a\": 1}").event().expect("an event");
        assert_eq!((&*binary.event_type, binary.payload.as_json()), ("OrderPaid", Some("{\"a\": 1}")));
        assert_eq!((binary.key().as_ref(), binary.occurred_at.unix_timestamp()), ("order-1", 1));
        let json = r#"{"specversion":"1.0","id":"1","source":"/s","type":"OrderPaid","data":{"a": 1}}"#;
        let structured = record(&[("content-type", "application/cloudevents+json; charset=utf-8")], json);
        let structured = structured.event().expect("an event");
        assert_eq!((structured.event_id, &structured.payload), (binary.event_id, &binary.payload));
        let id = postrider_core::Uuid::now_v7();
        let plain = [("event_id", &*id.to_string()), ("event_type", "OrderPaid"), ("tenant", "acme")];
        let plain = record(&plain, "{\"a\": 1}").event().expect("an event");
        assert_eq!((plain.event_id, plain.headers.tenant()), (id, Some("acme")));
        assert_eq!((&*plain.stream, plain.key().as_ref()), ("orders", "order-1"));
    }

    #[test]
    fn an_event_occurred_when_it_says_so_and_otherwise_when_its_record_was_written() {
        let occurred = |record: &Arrived| record.event().expect("an event").occurred_at.unix_timestamp();
        let id = postrider_core::Uuid::now_v7().to_string();
        let bare = |more: &[(&str, &str)]| {
            record(&[&[("event_id", &*id), ("event_type", "OrderPaid")], more].concat(), "{}")
        };
        assert_eq!(occurred(&bare(&[])), 1, "a record of somebody else has its own time alone");
        let ours = bare(&[("occurred_at", "1970-01-01T00:01:17Z"), ("occurred_at", "of the application")]);
        assert_eq!(occurred(&ours), 77);
        let event = ours.event().expect("an event");
        assert_eq!(event.headers.get("occurred_at"), Some("of the application"));
        let theirs = bare(&[("occurred_at", "yesterday")]);
        assert_eq!(occurred(&theirs), 1);
        assert_eq!(theirs.event().expect("an event").headers.get("occurred_at"), Some("yesterday"));
        let binary = |more: &[(&str, &str)]| record(&[&BINARY[..], more].concat(), "{}");
        assert_eq!(occurred(&binary(&[("ce_time", "1970-01-01T00:01:17Z")])), 77);
        // One that was put back is written anew, and has the time that it had.
        assert_eq!(occurred(&binary(&[(REQUEUED_FOR, "mailer"), (RECORD_TIME, "5000")])), 5);
        assert_eq!(occurred(&binary(&[(RECORD_TIME, "5000")])), 1, "that is somebody else's header");
    }

    /// Its id, its stream and its times are those that handlers saw.
    #[test]
    fn a_dead_letter_has_the_event_that_its_record_had() {
        let id = [("event_id", "not a UUID"), ("event_type", "OrderPaid")];
        for headers in [&BINARY[..], &id] {
            let before = record(headers, "{}");
            let letter = [(TOPIC, "orders"), (RECORD_TIME, "1000"), ("postrider_group", "mailer")];
            let letter = record(&[headers, &letter].concat(), "{}");
            let letter = Arrived { topic: "orders.DLT".into(), time: Some(9_000), ..letter };
            let (before, after) = (before.event().expect("an event"), letter.event().expect("an event"));
            assert_eq!((before.event_id, before.recorded_at), (after.event_id, after.recorded_at));
            assert_eq!((&before.stream, before.occurred_at), (&after.stream, after.occurred_at));
        }
    }

    #[test]
    fn what_is_no_event_is_refused_with_a_reason_that_shows_nothing_of_it() {
        for (record, reason) in [
            (record(&[], "{\"secret\": 1}"), "it is not a CloudEvent"),
            (record(&BINARY, "secret"), "not JSON"),
            (record(&[("content-type", "application/cloudevents-batch+json")], "[]"), "is not supported"),
            (record(&[("content-type", "application/cloudevents+json")], "secret"), "not a JSON object"),
            (record(&BINARY[1..], "{}"), "\"specversion\""),
            (Arrived { is_legible: false, ..record(&BINARY, "{}") }, "must be UTF-8"),
        ] {
            let refusal = record.event().expect_err("refused").to_string();
            assert!(refusal.contains(reason) && !refusal.contains("secret"), "{refusal}");
        }
    }

    #[test]
    fn a_record_put_back_is_for_its_group_alone() {
        let record = record(&[(REQUEUED_FOR, "mailer")], "");
        assert!(record.is_for_another("billing") && !record.is_for_another("mailer"));
    }
}
