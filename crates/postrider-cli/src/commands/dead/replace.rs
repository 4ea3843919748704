//! `postrider dead replace`: a corrected event is recorded in place of a dead one, which itself never changes.

use clap::Args;
use postrider::store::{EventQuery, ReplaceDead, State};
use postrider::{Error, ErrorKind, Payload, Recorded, Uuid};
use serde::Serialize;

use super::super::deliveries;
use super::super::payload;
use crate::Failure;
use crate::config::Problem;
use crate::confirm::Consent;
use crate::database::SharedStore;
use crate::output;

/// The flags of `dead replace`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Id of the dead event
    #[arg(value_name = "UUID")]
    id: Uuid,
    /// Payload of the corrected event: JSON, @FILE to read a file, or - to read standard input
    #[arg(long, value_name = "PAYLOAD", allow_hyphen_values = true)]
    payload: String,
    /// Header to add or to change, as in --header schema_version=2; can be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = payload::header)]
    headers: Vec<(String, String)>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Serialize)]
struct Answer {
    dry_run: bool,
    replaced: String,
    /// Nothing in a dry run.
    event_id: Option<String>,
    subscriptions: Vec<String>,
}

impl Arguments {
    /// Whether it is said well enough what is meant; asked before anything is looked up.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.consent.why.as_ref().is_none_or(|why| why.trim().is_empty()) {
            return Err(Problem::new("replace needs a reason; pass --why REASON"));
        }
        self.consent.check()
    }

    /// The payload in the format of the dead event's.
    fn payload(&self, dead: &Recorded) -> Result<Payload, Problem> {
        let bytes = payload::bytes(&self.payload)?;
        let payload = match &dead.payload {
            Payload::Json(_) => Payload::json_bytes(bytes),
            Payload::Bytes { content_type, .. } => Payload::bytes(content_type, bytes),
        };
        payload.map_err(|error| payload::wrong(&error))
    }

    fn replacement(&self, dead: &Recorded) -> Result<ReplaceDead, Problem> {
        let why = self.consent.why.as_deref().unwrap_or_default();
        let mut replacement = ReplaceDead::of(dead, self.payload(dead)?, self.consent.who(), why);
        for (name, value) in &self.headers {
            replacement.by.headers.set(name, value);
        }
        replacement.check().map_err(|error| payload::wrong(&error))?;
        Ok(replacement)
    }
}

/// Finds it, asks, and replaces it.
pub(crate) async fn run(log: &SharedStore, arguments: &Arguments) -> Result<bool, Failure> {
    let id = arguments.id;
    let query = EventQuery { event_id: Some(id), ..EventQuery::default() };
    let Some(logged) = log.events(&query).await?.events.pop() else {
        return Err(format!("there is no event {id} in the log or in the archive").into());
    };
    let dead = deliveries::of_event(log, (&logged.event).into(), |state| state.state == State::Dead).await?;
    let dead_for: Vec<String> = dead.into_iter().map(|delivery| delivery.subscription).collect();
    if dead_for.is_empty() {
        let what = format!(
            "event {id} is not dead for any subscription, and only a dead event can be replaced; \
             `postrider events show {id}` shows its state"
        );
        return Err(what.into());
    }
    let replacement = arguments.replacement(&logged.event)?;
    let names = dead_for.join(", ");
    if arguments.dry_run {
        if arguments.json {
            return answer(arguments, None, dead_for);
        }
        output::line(format!(
            "would record a corrected event and discard {id} for {names}; nothing was changed"
        ))?;
        return Ok(true);
    }
    let question = format!(
        "Replace event {id}, dead for {names}? The corrected event goes to every subscription, also to those that have delivered the old one."
    );
    if !arguments.consent.given(&question)? {
        return Ok(false);
    }
    let replaced = log.replace_dead(&replacement).await;
    let replaced = replaced.map_err(|error| failed(error, &replacement))?;
    let new = replacement.by.event_id;
    if arguments.json {
        return answer(arguments, Some(new), replaced);
    }
    output::line(format!(
        "recorded {new} in place of {id}, which was discarded for {}",
        replaced.join(", ")
    ))?;
    output::line(
        "it is a new event at the end of the log: every subscription gets it, also those that have delivered the old one",
    )?;
    Ok(true)
}

/// Where the answer was lost, the log knows what happened.
fn failed(error: Error, replacement: &ReplaceDead) -> Failure {
    if error.kind() == ErrorKind::Unreachable {
        let new = replacement.by.event_id;
        return format!(
            "{}; `postrider events show {new}` shows whether the corrected event was recorded all the same",
            error.message()
        )
        .into();
    }
    payload::explained(error.into())
}

fn answer(arguments: &Arguments, new: Option<Uuid>, subscriptions: Vec<String>) -> Result<bool, Failure> {
    output::json(&Answer {
        dry_run: arguments.dry_run,
        replaced: arguments.id.to_string(),
        event_id: new.map(|id| id.to_string()),
        subscriptions,
    })?;
    Ok(true)
}
