//! A message as PagerDuty's Events API v2 takes it.

use serde_json::{Value, json};

use super::super::message::{Message, State, cropped};

/// The longest summary.
const LONGEST: usize = 1024;

/// An incident is triggered, triggered again, or resolved; a test leaves none behind.
pub(super) fn bodies(message: &Message, key: &str, source: &str) -> Vec<Value> {
    let severity = if message.state == State::Test { "info" } else { "error" };
    let event = |action: &str| {
        json!({
            "routing_key": key,
            "event_action": action,
            "dedup_key": message.incident,
            "client": "Postrider",
            "payload": {
                "summary": cropped(&message.text, LONGEST),
                "source": source,
                "severity": severity,
                "component": "postrider",
                "group": message.subscription,
                "class": message.alert,
                "custom_details": message.facts,
            },
        })
    };
    match message.state {
        State::Firing => vec![event("trigger")],
        State::Resolved => vec![event("resolve")],
        State::Test => vec![event("trigger"), event("resolve")],
    }
}
