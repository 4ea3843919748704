//! A message for any endpoint that takes JSON: one flat object.

use serde_json::{Value, json};

use super::super::message::Message;

/// What everything has, and the facts.
pub(super) fn body(message: &Message, source: &str) -> Value {
    let mut body = message.facts.clone();
    for (name, value) in [
        ("state", json!(message.state.word())),
        ("alert", json!(message.alert)),
        ("subscription", json!(message.subscription)),
        ("incident", json!(message.incident)),
        ("source", json!(source)),
        ("text", json!(message.text)),
    ] {
        body.insert(name.to_owned(), value);
    }
    Value::Object(body)
}
