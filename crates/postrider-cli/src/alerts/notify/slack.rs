//! A message as Slack's incoming webhooks take it.

use serde_json::{Value, json};

use super::super::message::{Message, State, cropped};

/// A section of a message holds 3,000 characters.
const LONGEST: usize = 2900;

/// A sentence, with a sign in front of it that is seen at a glance.
pub(super) fn body(message: &Message, source: &str) -> Value {
    let sign = match message.state {
        State::Firing => ":red_circle:",
        State::Resolved => ":large_green_circle:",
        State::Test => ":white_circle:",
    };
    let text = format!("{sign} {}", escaped(&cropped(&message.text, LONGEST)));
    json!({
        "text": text,
        "blocks": [
            { "type": "section", "text": { "type": "mrkdwn", "text": text } },
            { "type": "context", "elements": [{ "type": "plain_text", "text": cropped(&format!("Postrider on {source}"), 200) }] },
        ],
    })
}

/// What Slack would take for a link or a mention is text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
