//! `postrider events`: looking for events, and at one of them.

mod search;

use clap::{Args, Subcommand};
use postrider::store::{EventQuery, LoggedEvent, Pattern, State};
use postrider::{OffsetDateTime, Uuid};
use serde::Serialize;

use super::page::{self, EventView};
use super::times::Span;
use super::unknown;
use crate::Failure;
use crate::config::{Config, Problem};
use crate::database::{self};
use crate::output::{self, Column, Table, Time};
use search::Search;

/// The flags of `events`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Subcommand)]
enum Action {
    /// Show one event: its deliveries, its causes and its effects
    Show(page::Arguments),
}

/// Which events are wanted.
#[derive(Args, Debug, Clone, Default)]
struct Wanted {
    /// Only the event with this id
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
    /// Only events of this aggregate, or of every aggregate of this type
    #[arg(long, value_name = "TYPE[:ID]")]
    aggregate: Option<String>,
    /// Only events with this ordering key
    #[arg(long)]
    key: Option<String>,
    /// Only events of this type; * matches any characters
    #[arg(long = "type", value_name = "PATTERN")]
    event_type: Option<String>,
    /// Only events of this stream; * matches any characters
    #[arg(long, value_name = "PATTERN")]
    stream: Option<String>,
    #[command(flatten)]
    span: Span,
    /// Only events with this correlation id
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
    /// Show the state of each event for this subscription
    #[arg(long, value_name = "NAME")]
    subscription: Option<String>,
    /// Only events in this state for that subscription: pending, processing, retrying, dead, done or discarded
    #[arg(long, requires = "subscription", value_parser = state)]
    state: Option<State>,
    /// Only events with a log number below this, to continue an earlier search
    #[arg(long, value_name = "NUMBER")]
    before: Option<i64>,
    /// Only events with a log number above this
    #[arg(long, value_name = "NUMBER")]
    after: Option<i64>,
    /// Oldest first (default: newest first)
    #[arg(long)]
    oldest_first: bool,
    /// Maximum number of events
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Maximum number of log rows to scan; types, aggregates and times have no index
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

fn state(text: &str) -> Result<State, String> {
    text.parse().map_err(|error: postrider::Error| error.message().to_owned())
}

impl Wanted {
    fn query(&self) -> EventQuery {
        let (aggregate_type, aggregate_id) = match self.aggregate.as_deref().map(|text| text.split_once(':'))
        {
            Some(Some((kind, id))) => (Some(kind.to_owned()), Some(id.to_owned())),
            Some(None) => (self.aggregate.clone(), None),
            None => (None, None),
        };
        EventQuery {
            event_id: self.id,
            aggregate_type,
            aggregate_id,
            key: self.key.clone(),
            event_type: self.event_type.clone().map(Pattern::new),
            stream: self.stream.clone().map(Pattern::new),
            from: self.span.from(),
            until: self.span.until(),
            correlation_id: self.correlation.clone(),
            caused: false,
            after: self.after,
            before: self.before,
            oldest_first: self.oldest_first,
            limit: self.limit,
            rows: self.rows,
        }
    }
}

/// What was found, and how far it was looked.
#[derive(Serialize)]
struct Answer {
    events: Vec<EventView>,
    looked: u64,
    complete: bool,
    reached: Option<i64>,
    reached_at: Option<Time>,
}

/// Looks for events, or at one.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let wanted = arguments.wanted;
    let query = wanted.query();
    // No text of a database has one, and asking for it is an error of its own there.
    let texts = [&wanted.aggregate, &wanted.key, &wanted.event_type, &wanted.stream, &wanted.correlation];
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(Problem::new("a filter must not contain a NUL character").into());
    }
    let log = database::open(&config.store).await?;
    if let Some(Action::Show(arguments)) = arguments.action {
        return page::run(&log, &arguments).await;
    }
    unknown::check(log.as_ref(), wanted.subscription.as_deref()).await?;
    let found = Search { log: &log, query: &query, subscription: wanted.subscription.as_deref() }
        .find(wanted.state)
        .await?;
    if wanted.json {
        let events = found.events.into_iter().map(|(logged, state)| EventView::of(&logged, state));
        output::json(&Answer {
            events: events.collect(),
            looked: found.looked,
            complete: found.complete,
            reached: found.reached.map(|(id, _)| id),
            reached_at: found.reached.map(|(_, at)| Time(at)),
        })?;
        return Ok(true);
    }
    if !found.events.is_empty() {
        table(&found.events, wanted.subscription.is_some()).show()?;
    }
    if let Some(note) = note(&found, &wanted) {
        // What programs read is the table.
        output::note(note);
    }
    Ok(true)
}

fn table(events: &[(LoggedEvent, Option<State>)], with_state: bool) -> Table {
    let now = OffsetDateTime::now_utc();
    let mut columns = vec![
        Column::whole("event"),
        Column::number("age"),
        Column::text("type"),
        Column::text("aggregate"),
        Column::text("stream").spare(),
        Column::number("number").spare(),
    ];
    if with_state {
        columns.insert(2, Column::whole("state"));
    }
    let mut table = Table::new(columns);
    for (logged, state) in events {
        let event = &logged.event;
        let mut cells = vec![
            event.event_id.to_string(),
            output::since(event.recorded_at.min(now), now),
            event.event_type.to_string(),
            format!("{}:{}", event.aggregate_type, event.aggregate_id),
            event.stream.to_string(),
            event.id.to_string(),
        ];
        if with_state {
            let archived = if logged.archived { "archived" } else { "-" };
            cells.insert(2, state.map_or(archived, State::as_str).to_owned());
        }
        table.row(cells);
    }
    table
}

/// What is to be said of how far it was looked.
fn note(found: &search::EventPage, wanted: &Wanted) -> Option<String> {
    let none = found.events.is_empty();
    let looked = output::count(found.looked, "event");
    match (found.complete, found.reached) {
        (true, _) if none => Some(match wanted.id {
            Some(id) => format!("no event {id} matches, in the log or in the archive"),
            None => "no event matches; the whole log and archive were searched".to_owned(),
        }),
        (true, _) | (false, None) => None,
        (false, Some((id, at))) => {
            let (flag, way) = if found.oldest_first { ("after", "up to") } else { ("before", "back to") };
            if found.events.len() >= wanted.limit as usize {
                return Some(format!("there may be more; continue with --{flag} {id}"));
            }
            let what = if none { "no event matches so far" } else { "there may be more" };
            Some(format!(
                "{what}: searched {looked}, {way} {}; continue with --{flag} {id}",
                output::when(at)
            ))
        }
    }
}
