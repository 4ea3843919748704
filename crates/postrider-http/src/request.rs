//! Events as the body and the headers of a request.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::{CloudEvents, Recorded, Uuid};
use sha2::{Digest, Sha256};
use uuid::Builder;

/// How events are written into requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One request per event: the payload is the body, the rest is in `ce-…` headers.
    #[default]
    Binary,
    /// One request per event: one JSON object.
    Structured,
    /// Up to this many events per request, and up to about 1 MiB: a JSON array. The answer counts for all of them; after a failure
    /// each is sent again alone: at once, or after the pause that the answer asks for.
    Batched(usize),
}

/// A request to be made.
pub(crate) struct Message {
    /// Its id, the same whenever the same events are sent again, and another for any others: receivers drop what has an id
    /// that they know.
    pub(crate) id: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Message {
    /// The request for an event that is written into an envelope.
    pub(crate) fn of_envelope(json: String, event: &Recorded) -> Self {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let plain = |trace: &&str| trace.bytes().all(|byte| byte.is_ascii_graphic());
        if let Some(trace) = event.headers.traceparent().filter(plain) {
            headers.push(("traceparent".to_owned(), trace.to_owned()));
        }
        Self { id: event.event_id.to_string(), headers, body: json.into() }
    }
}

/// The payload of an event as the body of a request, without a copy of it.
struct PayloadOf(Arc<Recorded>);

impl AsRef<[u8]> for PayloadOf {
    fn as_ref(&self) -> &[u8] {
        self.0.payload.as_bytes()
    }
}

impl Format {
    pub(crate) fn message(self, format: &CloudEvents, events: &[&Arc<Recorded>]) -> Message {
        let id = id(events).to_string();
        let content = |kind: &str| ("content-type".to_owned(), kind.to_owned());
        match (self, events) {
            (Self::Binary, [event]) => {
                let mut headers = Vec::new();
                for (name, value) in format.attributes(event) {
                    match name.as_str() {
                        "datacontenttype" => headers.push(content(&value)),
                        // The trace is where every HTTP server looks for it, too.
                        "traceparent" => {
                            headers.push((name.clone(), value.clone()));
                            headers.push((format!("ce-{name}"), encoded(&value)));
                        }
                        _ => headers.push((format!("ce-{name}"), encoded(&value))),
                    }
                }
                Message { id, headers, body: Bytes::from_owner(PayloadOf(Arc::clone(event))) }
            }
            (Self::Structured, [event]) => Message {
                id,
                headers: vec![content("application/cloudevents+json; charset=utf-8")],
                body: format.to_json(event).into(),
            },
            _ => {
                let mut body = String::from("[");
                for (place, event) in events.iter().enumerate() {
                    body.push_str(if place == 0 { "" } else { "," });
                    body.push_str(&format.to_json(event));
                }
                body.push(']');
                let headers = vec![content("application/cloudevents-batch+json; charset=utf-8")];
                Message { id, headers, body: body.into() }
            }
        }
    }
}

/// The id of a request: of its event, or made of the ids of all its events in their order.
fn id(events: &[&Arc<Recorded>]) -> Uuid {
    if let [event] = events {
        return event.event_id;
    }
    let mut hash = Sha256::new();
    for event in events {
        hash.update(event.event_id.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    // Version 8: made in a way of one's own.
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// A header's value as the HTTP binding of CloudEvents has it: percent-encoded where it is not plain.
fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '!' | '#'..='$' | '&'..='~') {
            text.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_cannot_hold_is_percent_encoded() {
        assert_eq!(encoded("Euro € 😀 \"%\""), "Euro%20%E2%82%AC%20%F0%9F%98%80%20%22%25%22");
        assert_eq!(encoded("order-7/ü"), "order-7/%C3%BC");
    }
}
