//! `postrider record`: an event from the shell, in a transaction of its own.

use clap::Args;
use postrider::store::Limits;
use postrider::{Error, ErrorKind, NewEvent, OffsetDateTime, Payload, Uuid};
use serde::Serialize;

use super::payload::{self, wrong};
use super::times;
use crate::Failure;
use crate::config::{Config, Problem};
use crate::confirm::Consent;
use crate::database::Database;
use crate::output;

/// The flags of `record`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Stream of the event, as in orders
    #[arg(long)]
    stream: String,
    /// Type of the event, as in OrderPaid
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// Type and id of the aggregate, as in --aggregate Order 7
    #[arg(long, required = true, num_args = 2, value_names = ["TYPE", "ID"])]
    aggregate: Vec<String>,
    /// Payload: JSON, @FILE to read a file, or - to read standard input
    payload: String,
    /// Ordering key (default: the aggregate)
    #[arg(long)]
    key: Option<String>,
    /// Header, as in --header tenant=acme; can be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = payload::header)]
    headers: Vec<(String, String)>,
    /// Id of the event (default: a new UUID)
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
    /// Skip the event if its id already exists in the log
    #[arg(long, requires = "id")]
    once: bool,
    /// Number the event within its key, without gaps
    #[arg(long)]
    sequenced: bool,
    /// Maximum number of delivery attempts
    #[arg(long, value_name = "COUNT")]
    max_attempts: Option<u32>,
    /// When it happened (default: now)
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    occurred_at: Option<OffsetDateTime>,
    /// Media type of a payload that is not JSON
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Don't ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    event_id: String,
    recorded: bool,
}

/// Records it.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let event = arguments.event()?;
    event.check(&Limits::default()).map_err(|error| wrong(&error))?;
    let database = Database::open(&config.store).await?;
    let NewEvent { stream, event_type, aggregate_type, aggregate_id, .. } = &event;
    let question = format!("Record {event_type} of {aggregate_type} {aggregate_id} into {stream}?");
    if !(Consent { yes: arguments.yes, ..Consent::default() }).not_refused(&question)? {
        return Ok(false);
    }
    let recorded =
        database.record(&event, arguments.once).await.map_err(|failure| explained(failure, &event))?;
    if arguments.json {
        output::json(&Answer { event_id: event.event_id.to_string(), recorded })?;
    } else if recorded {
        output::line(event.event_id)?;
    } else {
        output::line(format!("event {} already exists; nothing was recorded", event.event_id))?;
    }
    Ok(true)
}

impl Arguments {
    fn event(&self) -> Result<NewEvent, Problem> {
        let [aggregate_type, aggregate_id] = self.aggregate.as_slice() else {
            return Err(Problem::new("--aggregate must have a TYPE and an ID, as in --aggregate Order 7"));
        };
        let bytes = payload::bytes(&self.payload)?;
        let payload = match &self.content_type {
            Some(content_type) => Payload::bytes(content_type, bytes),
            None => Payload::json_bytes(bytes),
        };
        let payload = payload.map_err(|error| wrong(&error))?;
        let mut event = NewEvent::new(&self.stream, &self.event_type, aggregate_type, aggregate_id, payload);
        for (name, value) in &self.headers {
            event = event.with_header(name, value);
        }
        event.event_id = self.id.unwrap_or(event.event_id);
        event.ordering_key = self.key.clone();
        event.occurred_at = self.occurred_at;
        event.sequenced = self.sequenced;
        event.max_attempts = self.max_attempts;
        Ok(event)
    }
}

fn explained(failure: Failure, event: &NewEvent) -> Failure {
    match failure.downcast_ref::<Error>() {
        Some(error) if error.kind() == ErrorKind::AlreadyRecorded => {
            format!("event {} already exists; pass --once to skip an event that exists", event.event_id)
                .into()
        }
        _ => payload::explained(failure),
    }
}
