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
                "summary": summary(message),
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

/// The sentence, short enough: what is left out is not the command to type next, at its end.
fn summary(message: &Message) -> String {
    let text = &message.text;
    let next = message.facts.get("next").and_then(Value::as_str).map(|next| format!("; next: {next}"));
    let parts = next.as_deref().and_then(|next| Some((text.strip_suffix(next)?, next)));
    match parts.map(|(what, next)| (what, next, next.chars().count())) {
        Some((what, next, length)) if length < LONGEST / 2 => cropped(what, LONGEST - length) + next,
        _ => cropped(text, LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn summary_of(what: &str, next: Option<&str>) -> String {
        let mut facts = Map::new();
        facts.extend(next.map(|next| ("next".to_owned(), next.into())));
        let next = next.map(|next| format!("; next: {next}")).unwrap_or_default();
        let message = Message {
            state: State::Firing,
            alert: "deaths".to_owned(),
            subscription: None,
            incident: "i".to_owned(),
            text: format!("{what}{next}"),
            facts,
        };
        bodies(&message, "key", "shop").remove(0)["payload"]["summary"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn a_summary_that_is_too_long_keeps_the_command_to_type_next() {
        let next = "postrider dead show 0197f3a2-5a3e-7cc1-a3b4-2f6f6a2d7e11";
        assert_eq!(summary_of("it died", Some(next)), format!("it died; next: {next}"));
        let long = summary_of(&"ü".repeat(2000), Some(next));
        assert_eq!(long.chars().count(), LONGEST);
        assert!(long.starts_with('ü') && long.ends_with(&format!("…; next: {next}")), "{long}");
        assert_eq!(summary_of(&"x".repeat(2000), None).chars().count(), LONGEST);
        assert_eq!(summary_of("x", Some(&"y".repeat(2000))).chars().count(), LONGEST);
    }
}
