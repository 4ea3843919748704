//! What is said to people: one sentence, and the facts behind it. No payload is ever in it.

use std::collections::HashMap;
use std::time::Duration;

use postrider::{OffsetDateTime, Uuid};
use serde_json::{Map, Value, json};
use time::format_description::well_known::Rfc3339;

use super::dead_event::{DeadEvent, MOST};
use super::next;
use super::note::time_of;
use super::reading::Reading;
use crate::config::alert::When;
use crate::output;

/// How much of an error's sentence is shown, in characters.
const ERROR: usize = 500;
/// How many ids of a flood are shown.
const FIRST: usize = 5;

/// What is said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    /// Whether something begins, goes on, or is over.
    pub(crate) state: State,
    /// The alert.
    pub(crate) alert: String,
    /// The subscription; nothing for all of them together.
    pub(crate) subscription: Option<String>,
    /// The same for what belongs together, from the first word to the last.
    pub(crate) incident: String,
    /// One sentence: what, since when, and the command to type next.
    pub(crate) text: String,
    /// The facts, for programs.
    pub(crate) facts: Map<String, Value>,
}

/// Whether something is the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is.
    Firing,
    /// It was.
    Resolved,
    /// It is only tried whether messages arrive.
    Test,
}

impl State {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
            Self::Test => "test",
        }
    }
}

impl Message {
    /// A figure is too high, or still is.
    pub(crate) fn fires(
        reading: &Reading<'_>,
        incident: &str,
        since: OffsetDateTime,
        now: OffsetDateTime,
        again: bool,
    ) -> Self {
        let alert = reading.alert;
        let still = if again { format!(" (for {})", lasted(since, now)) } else { String::new() };
        let next = next::of_figure(reading);
        let text = format!(
            "{}: it is {}, since {}{still}; next: {next}",
            title(&alert.name, Some(reading), &reading.subject),
            shown(reading.value),
            output::when(since),
        );
        let mut facts =
            facts(json!({ "kind": "figure", "since": rfc3339(since), "again": again, "next": next }));
        facts.extend(of_figure(reading));
        Self {
            state: State::Firing,
            alert: alert.name.clone(),
            subscription: reading.subject.clone(),
            incident: incident.to_owned(),
            text,
            facts,
        }
    }

    /// A figure is fine again; or nobody asks for it any more.
    pub(crate) fn over(
        alert: &str,
        subject: &Option<String>,
        incident: &str,
        reading: Option<&Reading<'_>>,
        since: OffsetDateTime,
        now: OffsetDateTime,
    ) -> Self {
        let figure = reading.filter(|reading| reading.value.is_some());
        let it_is = figure.map(|reading| format!(": it is {}", shown(reading.value))).unwrap_or_default();
        let text = format!(
            "resolved after {} (since {}): {}{it_is}",
            lasted(since, now),
            output::when(since),
            title(alert, reading, subject)
        );
        let mut facts = facts(json!({ "kind": "figure", "since": rfc3339(since), "until": rfc3339(now) }));
        facts.extend(figure.map(of_figure).unwrap_or_default());
        Self {
            state: State::Resolved,
            alert: alert.to_owned(),
            subscription: subject.clone(),
            incident: incident.to_owned(),
            text,
            facts,
        }
    }

    /// An event died.
    pub(crate) fn death(alert: &str, death: &DeadEvent, source: &str) -> Self {
        let (at, next) = (time_of(death.at), next::of_event(&death.event_id));
        let text = format!(
            "an event died: {} ({} of {} {}), for {} after {}, at {}{}; next: {next}",
            death.event_id,
            death.event_type,
            death.aggregate_type,
            death.aggregate_id,
            death.subscription,
            tries(death.attempts),
            output::when(at),
            error(death)
        );
        let facts = facts(json!({
            "kind": "event",
            "event_id": death.event_id.to_string(),
            "event_type": death.event_type,
            "aggregate_type": death.aggregate_type,
            "aggregate_id": death.aggregate_id,
            "attempts": death.attempts,
            "error_code": death.error_code,
            "error_message": death.error_message.as_deref().map(|text| cropped(text, ERROR)),
            "since": rfc3339(at),
            "next": next,
        }));
        let id = death.event_id.to_string();
        Self {
            state: State::Firing,
            alert: alert.to_owned(),
            subscription: Some(death.subscription.clone()),
            incident: Self::incident(&[source, alert, &death.subscription, &id]),
            text,
            facts,
        }
    }

    /// Many events died; `more` than were looked at, even.
    pub(crate) fn flood(
        alert: &str,
        deaths: &[&DeadEvent],
        many: &HashMap<&str, u64>,
        more: bool,
        source: &str,
    ) -> Self {
        let mut each: Vec<String> =
            many.iter().map(|(name, many)| format!("{} for {name}", output::number(*many))).collect();
        each.sort();
        let first: Vec<String> = deaths.iter().take(FIRST).map(|death| death.event_id.to_string()).collect();
        let since = deaths.iter().map(|death| death.at).min().map_or(OffsetDateTime::UNIX_EPOCH, time_of);
        let only = many.keys().next().filter(|_| many.len() == 1);
        let next = next::of_dead(only.copied());
        let text = format!(
            "{}{} died ({}) since {}; the first are {}{}; next: {next}",
            if more { "more than " } else { "" },
            output::count(if more { MOST as u64 } else { deaths.len() as u64 }, "event"),
            each.join(", "),
            output::when(since),
            first.join(", "),
            deaths.first().map(|death| error(death)).unwrap_or_default()
        );
        let facts = facts(json!({
            "kind": "events",
            "count": deaths.len(),
            "more": more,
            "subscriptions": many.iter().map(|(name, many)| ((*name).to_owned(), Value::from(*many))).collect::<Map<_, _>>(),
            "first": first,
            "error_code": deaths.first().and_then(|death| death.error_code.clone()),
            "since": rfc3339(since),
            "next": next,
        }));
        let id = deaths.first().map(|death| death.event_id.to_string()).unwrap_or_default();
        Self {
            state: State::Firing,
            alert: alert.to_owned(),
            subscription: None,
            incident: Self::incident(&[source, alert, "flood", &id]),
            text,
            facts,
        }
    }

    /// An event that died is dead no longer; or nobody of a flood is.
    pub(crate) fn buried(
        alert: &str,
        incident: &str,
        subscription: &Option<String>,
        event: Option<&str>,
    ) -> Self {
        let of = subscription.as_ref().map(|name| format!(", for {name}")).unwrap_or_default();
        let (kind, text) = match event {
            Some(event) => ("event", format!("an event is no longer dead: {event}{of}")),
            None => ("events", format!("these events are no longer dead{of}")),
        };
        let mut facts = facts(json!({ "kind": kind }));
        facts.extend(event.map(|event| ("event_id".to_owned(), Value::from(event))));
        Self {
            state: State::Resolved,
            alert: alert.to_owned(),
            subscription: subscription.clone(),
            incident: incident.to_owned(),
            text,
            facts,
        }
    }

    /// It is tried whether messages arrive.
    pub(crate) fn test(source: &str) -> Self {
        Self {
            state: State::Test,
            alert: "test".to_owned(),
            subscription: None,
            incident: Self::incident(&[source, "test"]),
            text: format!("this is a test of Postrider's alerts from {source}; no action is needed"),
            facts: facts(json!({ "kind": "test" })),
        }
    }

    /// A name for what belongs together: short enough for everybody, and the same from every relay.
    pub(crate) fn incident(parts: &[&str]) -> String {
        let name = format!("postrider/{}", parts.join("/"));
        if name.len() <= 255 { name } else { Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).to_string() }
    }
}

fn facts(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

fn of_figure(reading: &Reading<'_>) -> Map<String, Value> {
    match &reading.alert.when {
        When::Figure(figure, _, limit) => facts(json!({
            "figure": figure.to_string(),
            "condition": reading.alert.when.to_string(),
            "value": reading.value,
            "limit": limit,
        })),
        When::EventDies => Map::new(),
    }
}

fn title(alert: &str, reading: Option<&Reading<'_>>, subject: &Option<String>) -> String {
    let when = reading.map(|reading| reading.alert.when.to_string()).filter(|when| when != alert);
    let of = subject.as_deref().unwrap_or("all subscriptions");
    match when {
        // The name of one of a preset's has its condition in it.
        Some(when) if !alert.contains(&when) => format!("{alert} ({when}) for {of}"),
        _ => format!("{alert} for {of}"),
    }
}

/// A figure for people.
pub(crate) fn shown(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 && value >= 0.0 => output::number(value as u64),
        Some(value) => {
            let text = format!("{value:.2}");
            let (whole, rest) = text.split_once('.').unwrap_or((&text, "0"));
            format!("{}.{rest}", output::number(whole.parse().unwrap_or(0)))
        }
    }
}

fn lasted(since: OffsetDateTime, now: OffsetDateTime) -> String {
    output::age(Duration::try_from(now - since).unwrap_or_default())
}

fn tries(attempts: u32) -> String {
    output::count(u64::from(attempts), "attempt")
}

fn error(death: &DeadEvent) -> String {
    match (&death.error_code, &death.error_message) {
        (Some(code), Some(text)) => format!(": {code}: {}", cropped(text, ERROR)),
        (Some(text), None) | (None, Some(text)) => format!(": {}", cropped(text, ERROR)),
        (None, None) => String::new(),
    }
}

/// At most so many characters of a text.
pub(crate) fn cropped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn rfc3339(time: OffsetDateTime) -> String {
    time.format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Alert;
    use crate::config::alert::Of;

    const SINCE: OffsetDateTime = time::macros::datetime!(2026-05-01 12:00:31 UTC);

    /// The text of a figure that fires.
    fn fires(when: &str, subject: Option<&str>, again: bool) -> (String, Map<String, Value>) {
        let when = When::parse(when).expect("a condition");
        let alert = Alert { name: when.to_string(), when, to: Vec::new(), of: Of::Each, repeat: None };
        let subject = subject.map(ToOwned::to_owned);
        let reading = Reading { alert: &alert, subject, value: Some(1234.0), fires: true };
        let message = Message::fires(&reading, "i", SINCE, SINCE + Duration::from_secs(600), again);
        (message.text, message.facts)
    }

    #[test]
    fn a_figure_is_said_with_since_when_and_the_next_command() {
        let (text, facts) = fires("dead > 10", Some("mail"), false);
        assert_eq!(
            text,
            "dead > 10 for mail: it is 1,234, since 2026-05-01 12:00:31Z; next: postrider dead list --subscription mail"
        );
        assert_eq!(facts["next"], "postrider dead list --subscription mail");
        assert_eq!(facts["since"], "2026-05-01T12:00:31Z");
        let (text, _) = fires("undelivered > 1000", None, true);
        assert_eq!(
            text,
            "undelivered > 1000 for all subscriptions: it is 1,234, since 2026-05-01 12:00:31Z (for 10m); next: postrider status"
        );
        let (text, _) = fires("oldest_seconds > 60", Some("mail"), false);
        assert!(text.ends_with("; next: postrider status mail"), "{text}");
        let (text, _) = fires("retrying > 100", Some("mail"), false);
        assert!(text.ends_with("; next: postrider events --subscription mail --state retrying"), "{text}");
    }

    #[test]
    fn deaths_are_said_with_when_and_the_next_command() {
        let micros = i64::try_from(SINCE.unix_timestamp_nanos() / 1000).expect("a time");
        let death = |place: u128, subscription: &str| DeadEvent {
            at: micros + 1_000_000 * i64::try_from(place).expect("small"),
            id: 1,
            subscription: subscription.to_owned(),
            event_id: Uuid::from_u128(place),
            event_type: "OrderPaid".to_owned(),
            aggregate_type: "Order".to_owned(),
            aggregate_id: "7".to_owned(),
            attempts: 3,
            error_code: Some("http_422".to_owned()),
            error_message: Some("the endpoint answered 422".to_owned()),
        };
        let (one, other) = (death(0, "mail"), death(1, "mail"));
        let message = Message::death("event dies", &one, "db");
        let id = one.event_id;
        assert_eq!(
            message.text,
            format!(
                "an event died: {id} (OrderPaid of Order 7), for mail after 3 attempts, at 2026-05-01 12:00:31Z: http_422: the \
                 endpoint answered 422; next: postrider dead show {id}"
            )
        );
        assert_eq!(message.facts["next"], format!("postrider dead show {id}"));
        let flood = |deaths: &[&DeadEvent], many: &[(&str, u64)]| {
            let many: HashMap<&str, u64> = many.iter().copied().collect();
            Message::flood("event dies", deaths, &many, false, "db").text
        };
        let text = flood(&[&other, &one], &[("mail", 2)]);
        assert!(
            text.starts_with("2 events died (2 for mail) since 2026-05-01 12:00:31Z; the first are "),
            "{text}"
        );
        assert!(text.ends_with("; next: postrider dead list --subscription mail"), "{text}");
        let text = flood(&[&one, &death(2, "hook")], &[("mail", 1), ("hook", 1)]);
        assert!(text.ends_with("; next: postrider dead list"), "{text}");
    }

    #[test]
    fn what_is_over_says_since_when_it_was() {
        let now = SINCE + Duration::from_secs(600);
        let text = Message::over("dead > 10", &Some("mail".to_owned()), "i", None, SINCE, now).text;
        assert_eq!(text, "resolved after 10m (since 2026-05-01 12:00:31Z): dead > 10 for mail");
    }
}
