//! `postrider sinks`: a probe to a destination, past the log.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use postrider::store::{Attempt, Delivery, Outcome, Sink as Destination, nearest};
use postrider::{Headers, OffsetDateTime, Payload, Recorded, Uuid};
use serde::Serialize;

use crate::Failure;
use crate::config::{Config, Problem, Sink};
use crate::output;
use crate::sinks::Ready;

/// What marks a probe, as a type and as a header (a CloudEvents extension).
const TYPE: &str = "PostriderProbe";
const MARK: &str = "postriderprobe";
/// How long the destination may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long all of it may take: a destination may say that it waits for something.
const LIMIT: Duration = Duration::from_secs(60);

/// What is done to sinks.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// Send a probe to a sink: an event that is marked as a test and not recorded; exits with 1 if the sink rejects it
    Test(Test),
}

/// The flags of `sinks test`.
#[derive(Args)]
pub(crate) struct Test {
    /// NAME of a [sink.NAME]
    name: String,
    /// Stream of the probe, which may decide its Kafka topic (default: a stream of a subscription with this sink)
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Type of the probe
    #[arg(long = "type", value_name = "NAME", default_value = TYPE)]
    event_type: String,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    sink: &'a str,
    taken: bool,
    event_id: String,
    stream: &'a str,
    event_type: &'a str,
    error: Option<&'a str>,
}

/// Does it; whether the probe was taken.
pub(crate) async fn run(config: &Config, action: Action) -> Result<bool, Failure> {
    let Action::Test(test) = action;
    let Some(sink) = config.sinks.get(&test.name) else {
        let name = &test.name;
        let what = match nearest(name, config.sinks.keys().map(String::as_str)) {
            Some(meant) => format!("there is no [sink.{name}]; did you mean {meant:?}?"),
            None => format!("there is no [sink.{name}] in the settings; add it"),
        };
        return Err(Problem::new(what).into());
    };
    let stream = test.stream.clone().unwrap_or_else(|| stream_to(config, &test.name));
    let probe = probe(&stream, &test.event_type);
    let event_id = probe.event_id.to_string();
    let sent = send(config, &test.name, sink, probe).await?;
    let error = sent.as_ref().err().map(String::as_str);
    let (sink_name, event_type) = (test.name.as_str(), test.event_type.as_str());
    if test.json {
        output::json(&Answer {
            sink: sink_name,
            taken: sent.is_ok(),
            event_id,
            stream: &stream,
            event_type,
            error,
        })?;
        return Ok(sent.is_ok());
    }
    match error {
        None => {
            // Beside the probe itself, where that is on standard output.
            output::note(format!(
                "sink {sink_name} accepted the probe: event {event_id}, stream {stream}, type {event_type}"
            ));
            Ok(true)
        }
        Some(what) => {
            Err(format!("sink {sink_name} did not accept the probe (stream {stream}): {what}").into())
        }
    }
}

/// A stream that goes to that sink.
fn stream_to(config: &Config, sink: &str) -> String {
    let readers = config.readers.iter().filter(|reader| reader.sink == sink);
    let named = readers.flat_map(|reader| &reader.streams).find(|stream| !stream.contains('*'));
    named.cloned().unwrap_or_else(|| "events".to_owned())
}

/// An event that says what it is, and that no log has.
fn probe(stream: &str, event_type: &str) -> Recorded {
    let now = OffsetDateTime::now_utc();
    let what = "{\"probe\": true, \"by\": \"postrider sinks test\"}";
    Recorded {
        id: 0,
        event_id: Uuid::new_v4(),
        stream: stream.into(),
        event_type: event_type.into(),
        aggregate_type: "Probe".into(),
        aggregate_id: "probe".to_owned(),
        ordering_key: None,
        sequence: None,
        payload: Payload::Json(what.to_owned()),
        headers: Headers::new().with(MARK, "true"),
        occurred_at: now,
        recorded_at: now,
        max_attempts: None,
    }
}

/// Sends it; why it was not taken.
async fn send(
    config: &Config,
    name: &str,
    sink: &Sink,
    probe: Recorded,
) -> Result<Result<(), String>, Problem> {
    let mut delivery =
        Delivery::new("postrider sinks test", vec![Attempt { event: Arc::new(probe), attempt: 1 }]);
    delivery.timeout = PATIENCE;
    let delivery = Arc::new(delivery);
    let given = Arc::clone(&delivery);
    let sending = async {
        match Ready::make(config, name, sink)? {
            Ready::Kafka(sink) => Ok(sink.deliver(given).await),
            Ready::Http(sink) => Ok(sink.deliver(given).await),
            Ready::Lines(sink) => Ok(sink.deliver(given).await),
        }
    };
    let sent = match tokio::time::timeout(LIMIT, sending).await {
        Ok(sent) => sent?,
        Err(_) => return Ok(Err(format!("there was no answer within {LIMIT:?}"))),
    };
    if let Err(unavailable) = sent {
        return Ok(Err(unavailable.reason));
    }
    Ok(match delivery.take_report(0).map(|report| report.outcome) {
        Some(Outcome::Delivered | Outcome::Duplicate) => Ok(()),
        Some(
            Outcome::Retry { failure, .. }
            | Outcome::Hold { failure, .. }
            | Outcome::Unclear { failure, .. }
            | Outcome::Reject { failure },
        ) => Err(format!("{}: {}", failure.code, failure.message)),
        None => Err("it reported no outcome".to_owned()),
    })
}
