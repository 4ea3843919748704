//! One event as it is shown: what it is, what became of it for each subscription, and what it has to do with others.

use clap::Args;
use postrider::store::{Chain, LoggedEvent, State};
use postrider::{ErrorKind, OffsetDateTime, Payload, Uuid};
use serde::Serialize;
use serde_json::value::RawValue;

use super::deliveries::{self, DeliveryView};
use crate::Failure;
use crate::database::SharedStore;
use crate::output::{self, Time};

/// The flags of `events show`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Id of the event
    #[arg(value_name = "UUID")]
    id: Uuid,
    /// Print the payload, too
    #[arg(long)]
    payload: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// An event without what it says.
#[derive(Serialize)]
pub(crate) struct EventView {
    event_id: String,
    id: i64,
    stream: String,
    event_type: String,
    aggregate_type: String,
    aggregate_id: String,
    key: String,
    sequence: Option<i64>,
    occurred_at: Time,
    recorded_at: Time,
    archived: bool,
    headers: serde_json::Map<String, serde_json::Value>,
    content_type: String,
    payload_bytes: usize,
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

impl EventView {
    /// The view of an event.
    pub(crate) fn of(logged: &LoggedEvent, state: Option<State>) -> Self {
        let event = &logged.event;
        let headers = event.headers.iter();
        Self {
            event_id: event.event_id.to_string(),
            id: event.id,
            stream: event.stream.to_string(),
            event_type: event.event_type.to_string(),
            aggregate_type: event.aggregate_type.to_string(),
            aggregate_id: event.aggregate_id.clone(),
            key: event.key().into_owned(),
            sequence: event.sequence,
            occurred_at: Time(event.occurred_at),
            recorded_at: Time(event.recorded_at),
            archived: logged.archived,
            headers: headers.map(|(name, value)| (name.to_owned(), value.into())).collect(),
            content_type: event.payload.content_type().to_owned(),
            payload_bytes: event.payload.as_bytes().len(),
            max_attempts: event.max_attempts,
            state: state.map(State::as_str),
        }
    }
}

#[derive(Serialize)]
struct Page {
    event: EventView,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    deliveries: Vec<DeliveryView>,
    causes: Vec<EventView>,
    followed: Vec<EventView>,
    lost_cause: Option<String>,
    chain_complete: bool,
}

/// Shows an event.
pub(crate) async fn run(log: &SharedStore, arguments: &Arguments) -> Result<bool, Failure> {
    let chain = log.chain(arguments.id).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::from(error.message().to_owned()),
        _ => error.into(),
    })?;
    let deliveries = deliveries::of_event(log, (&chain.event.event).into(), |_| true).await?;
    if arguments.json {
        let view = |logged: &LoggedEvent| EventView::of(logged, None);
        output::json(&Page {
            event: view(&chain.event),
            payload: payload_raw(&chain.event.event.payload).filter(|_| arguments.payload),
            deliveries,
            causes: chain.causes.iter().map(view).collect(),
            followed: chain.followed.iter().map(view).collect(),
            lost_cause: chain.lost_cause.map(|id| id.to_string()),
            chain_complete: chain.complete,
        })?;
        return Ok(true);
    }
    let now = OffsetDateTime::now_utc();
    let mut text = head(&chain.event);
    text.push_str(&deliveries::text(&deliveries, chain.event.archived, now));
    text.push_str(&tree(&chain, now));
    if arguments.payload {
        text.push_str(&format!("\npayload:\n{}\n", payload_text(&chain.event.event.payload)));
    }
    output::print(&text)?;
    Ok(true)
}

/// What an event is, line by line.
pub(crate) fn head(logged: &LoggedEvent) -> String {
    let event = &logged.event;
    let mut lines = vec![
        ("event", event.event_id.to_string()),
        ("type", event.event_type.to_string()),
        ("stream", event.stream.to_string()),
        ("aggregate", format!("{} {}", event.aggregate_type, event.aggregate_id)),
    ];
    lines.extend(event.ordering_key.clone().map(|key| ("key", key)));
    lines.extend(event.sequence.map(|sequence| ("sequence", sequence.to_string())));
    lines.push(("occurred", output::when(event.occurred_at)));
    lines.push(("recorded", output::when(event.recorded_at)));
    let place = if logged.archived { "in the archive" } else { "in the log" };
    lines.push(("number", format!("{} {place}", event.id)));
    lines.extend(event.max_attempts.map(|tries| ("attempts", format!("{tries} at most"))));
    for (name, value) in event.headers.iter() {
        lines.push(("header", format!("{name}: {value}")));
    }
    let size = output::count(event.payload.as_bytes().len() as u64, "byte");
    lines.push(("payload", format!("{}, {size}", event.payload.content_type())));
    lines.iter().map(|(name, value)| format!("{name:<10} {}\n", output::plain(value))).collect()
}

/// What an event says, byte for byte where it is JSON; other bytes in hexadecimal.
pub(crate) fn payload_raw(payload: &Payload) -> Option<Box<RawValue>> {
    let text = match payload {
        Payload::Json(text) => text.clone(),
        Payload::Bytes { .. } => serde_json::to_string(&payload_text(payload)).ok()?,
    };
    RawValue::from_string(text).ok()
}

pub(crate) fn payload_text(payload: &Payload) -> String {
    match payload {
        Payload::Json(text) => {
            text.chars().filter(|letter| !letter.is_control() || "\n\t".contains(*letter)).collect()
        }
        Payload::Bytes { bytes, .. } => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// What caused it and what followed, as a tree.
fn tree(chain: &Chain, now: OffsetDateTime) -> String {
    if chain.causes.is_empty() && chain.followed.is_empty() && chain.lost_cause.is_none() && chain.complete {
        return String::new();
    }
    let mut text = "\ncauses and effects:\n".to_owned();
    let line = |logged: &LoggedEvent, mark: &str| {
        let event = &logged.event;
        let name = output::plain(&event.event_type);
        format!("{name}  {}  {} ago{mark}\n", event.event_id, output::since(event.recorded_at.min(now), now))
    };
    let mut depth = 0;
    if let Some(lost) = chain.lost_cause {
        text.push_str(&format!("  {lost}  not in the log or the archive\n"));
        depth += 1;
    }
    let indent = |depth: usize| {
        if depth == 0 { "  ".to_owned() } else { format!("  {}└─ ", "   ".repeat(depth - 1)) }
    };
    for cause in &chain.causes {
        text.push_str(&format!("{}{}", indent(depth), line(cause, "")));
        depth += 1;
    }
    text.push_str(&format!("{}{}", indent(depth), line(&chain.event, "  <- this one")));
    let base = "   ".repeat(depth);
    branches(chain, chain.event.event.event_id, &format!("  {base}"), &line, &mut text, 0);
    if !chain.complete {
        let looked = output::count(chain.looked, "event");
        text.push_str(&format!("  there may be more: only the next {looked} were searched for effects\n"));
    }
    text
}

/// Deeper than this a tree is not drawn.
const DEEPEST: usize = 50;

fn branches(
    chain: &Chain,
    of: Uuid,
    indent: &str,
    line: &dyn Fn(&LoggedEvent, &str) -> String,
    text: &mut String,
    depth: usize,
) {
    let caused = |logged: &&LoggedEvent| logged.event.headers.causation_id() == Some(of);
    let children: Vec<&LoggedEvent> = chain.followed.iter().filter(caused).collect();
    for (place, child) in children.iter().enumerate() {
        let last = place + 1 == children.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        text.push_str(&format!("{indent}{branch}{}", line(child, "")));
        if depth < DEEPEST {
            branches(chain, child.event.event_id, &format!("{indent}{below}"), line, text, depth + 1);
        }
    }
}
