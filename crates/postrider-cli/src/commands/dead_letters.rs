//! `postrider dead-letters`: the records that consumers of Kafka gave up, and the way back to their group. It needs no database.

mod list;
mod requeue;
mod show;

use clap::{Args, Subcommand};
use postrider::Error;
use postrider::kafka::{DeadLetter, DeadLetters};
use postrider::store::nearest;
use serde::Serialize;

use crate::Failure;
use crate::config::{Config, Problem, Sink};
use crate::output::Time;
use crate::sinks::letters_of;

/// Who only looks has no group of its own.
const NOBODY: &str = "postrider";

/// What is done with dead letters.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// List the dead letters of a topic that were not requeued, the oldest of each partition first
    List(list::Arguments),
    /// Show a dead letter and why it failed
    Show(show::Arguments),
    /// Put the dead letters of a group back into their topic; only this group handles them again
    Requeue(requeue::Arguments),
}

/// Which letters, and on which brokers.
#[derive(Args)]
struct Place {
    /// Topic that the records were consumed from
    #[arg(long, value_name = "TOPIC")]
    topic: String,
    /// NAME of the [sink.NAME] whose brokers, login and TLS are used (default: the only Kafka sink)
    #[arg(long, value_name = "NAME", conflicts_with = "brokers")]
    sink: Option<String>,
    /// Brokers, as in HOST:PORT,HOST:PORT, for a Kafka cluster that no sink uses
    #[arg(long, value_name = "ADDRESSES")]
    brokers: Option<String>,
    /// Dead-letter topic, as set in the consumer
    #[arg(long, value_name = "PATTERN", default_value = DeadLetters::TOPIC)]
    pattern: String,
}

impl Place {
    /// The letters of a group there.
    fn letters(&self, config: &Config, group: &str) -> Result<DeadLetters, Problem> {
        for (flag, value) in [("--topic", self.topic.as_str()), ("--group", group)] {
            if value.is_empty() || value.contains('\0') {
                return Err(Problem::new(format!("{flag} must not be empty or contain a NUL character")));
            }
        }
        let letters = match &self.brokers {
            Some(brokers) => DeadLetters::new(brokers, group),
            None => letters_of(self.kafka(config)?, group),
        };
        Ok(letters.pattern(&self.pattern))
    }

    fn kafka<'c>(&self, config: &'c Config) -> Result<&'c crate::config::sink::KafkaSink, Problem> {
        let kafkas: Vec<_> = config
            .sinks
            .iter()
            .filter_map(|(name, sink)| match sink {
                Sink::Kafka(kafka) => Some((name.as_str(), &**kafka)),
                Sink::Http(_) | Sink::Stdout(_) => None,
            })
            .collect();
        let names = || kafkas.iter().map(|(name, _)| *name);
        let Some(wanted) = &self.sink else {
            return match kafkas.as_slice() {
                [(_, only)] => Ok(only),
                [] => Err(Problem::new(
                    "the settings have no Kafka sink; pass --brokers HOST:PORT, or --config FILE with a [sink.NAME]",
                )),
                _ => Err(Problem::new(format!(
                    "the settings have several Kafka sinks ({}); pass --sink NAME",
                    names().collect::<Vec<_>>().join(", ")
                ))),
            };
        };
        if let Some((_, found)) = kafkas.iter().find(|(name, _)| name == wanted) {
            return Ok(found);
        }
        Err(Problem::new(match nearest(wanted, names()) {
            Some(meant) => format!("there is no Kafka sink [sink.{wanted}]; did you mean {meant:?}?"),
            None => {
                format!("there is no Kafka sink [sink.{wanted}] in the settings; add it, or pass --brokers")
            }
        }))
    }

    /// The topic for its dead letters, for sentences.
    fn letters_topic(&self) -> String {
        self.pattern.replace("{topic}", &self.topic)
    }
}

/// What went wrong, in its sentence alone.
fn failed(error: Error) -> Failure {
    error.message().to_owned().into()
}

/// A letter as programs read it.
#[derive(Serialize)]
struct LetterView {
    letter: String,
    group: String,
    topic: String,
    partition: i32,
    offset: i64,
    event_id: Option<String>,
    event_type: Option<String>,
    key: Option<String>,
    error_code: String,
    error: String,
    attempts: u32,
    time: Option<Time>,
    requeued: bool,
}

impl LetterView {
    fn of(letter: DeadLetter) -> Self {
        Self {
            letter: place_of(&letter),
            group: letter.group,
            topic: letter.topic,
            partition: letter.partition,
            offset: letter.offset,
            event_id: letter.event_id.map(|id| id.to_string()),
            event_type: letter.event_type,
            key: letter.key,
            error_code: letter.error_code,
            error: letter.error,
            attempts: letter.attempts,
            time: letter.time.map(Time),
            requeued: letter.requeued,
        }
    }
}

/// Where a letter is in the topic for dead letters: what `show` is given.
fn place_of(letter: &DeadLetter) -> String {
    format!("{}:{}", letter.letter_partition, letter.letter_offset)
}

/// Does it.
pub(crate) async fn run(config: &Config, action: Action) -> Result<bool, Failure> {
    match action {
        Action::List(arguments) => list::run(config, arguments).await,
        Action::Show(arguments) => show::run(config, &arguments).await,
        Action::Requeue(arguments) => requeue::run(config, &arguments).await,
    }
}
