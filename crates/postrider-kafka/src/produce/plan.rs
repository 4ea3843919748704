//! Finds the topic of each event before anything is sent.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::{Delivery, DeliveryFailure, Outcome, Recorded, Result, Unavailable};
use rdkafka::metadata::Metadata;
use rdkafka::producer::Producer as _;

use crate::produce::producer::Producer;
use crate::produce::sink::Kafka;

/// How long to wait for an answer about topics.
const PATIENCE: Duration = Duration::from_secs(5);
/// When an event of a missing topic is asked for again, whatever the subscription's pauses are: nothing was tried, so it costs no attempt
/// and is no retry, and a topic that somebody creates is noticed soon. The topics are looked up once for all events that wait.
pub(crate) const HELD: Duration = Duration::from_secs(5);
/// How long a missing topic is not looked up again.
const FRESH: Duration = Duration::from_secs(1);
/// How much is shown of a name that can't be a topic's: it may be as long as an event's fields are.
const SHOWN: usize = 80;

/// The topics that are there.
#[derive(Default)]
pub(crate) struct Known {
    topics: HashSet<String>,
    asked: Option<Instant>,
}

/// What is to become of an event before anything is sent.
pub(crate) enum Plan {
    Send(String),
    Say(Outcome),
}

impl Kafka {
    /// Asks which topics there are. All of them: to ask for one may create it.
    pub(crate) async fn ask(&self, producer: &Arc<Producer>) -> Result<Metadata, Unavailable> {
        let asked = Arc::clone(producer);
        let answer = tokio::task::spawn_blocking(move || asked.metadata(PATIENCE)).await;
        let metadata = match answer {
            Ok(Ok(metadata)) => metadata,
            Ok(Err(error)) => {
                let reason =
                    producer.inner.context().client_errors.sentence().unwrap_or_else(|| error.to_string());
                return Err(Unavailable::new(reason));
            }
            Err(error) => return Err(Unavailable::new(error.to_string())),
        };
        let there = metadata
            .topics()
            .iter()
            .filter(|topic| topic.error().is_none() && !topic.partitions().is_empty());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.topics = there.map(|topic| topic.name().to_owned()).collect();
        known.asked = Some(Instant::now());
        drop(known);
        Ok(metadata)
    }

    /// Which of these topics are missing.
    async fn missing(
        &self,
        producer: &Arc<Producer>,
        wanted: &HashSet<String>,
    ) -> Result<HashSet<String>, Unavailable> {
        let look = || {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let missing: HashSet<String> = wanted.difference(&known.topics).cloned().collect();
            (missing, known.asked.is_some_and(|asked| asked.elapsed() < FRESH))
        };
        let (missing, fresh) = look();
        if missing.is_empty() || fresh {
            return Ok(missing);
        }
        self.ask(producer).await?;
        Ok(look().0)
    }

    /// A topic may be gone.
    pub(crate) fn forget(&self, topic: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).topics.remove(topic);
    }

    /// Where each event goes.
    pub(crate) async fn plan(
        &self,
        producer: &Arc<Producer>,
        delivery: &Delivery,
    ) -> Result<Vec<Plan>, Unavailable> {
        let topics: Vec<Result<String, String>> =
            delivery.events.iter().map(|attempt| self.topics.of(&attempt.event)).collect();
        let wanted: HashSet<String> = topics.iter().flatten().cloned().collect();
        let absent = self.missing(producer, &wanted).await?;
        let plan = |(topic, event): (Result<String, String>, &Recorded)| match topic {
            Ok(topic) if absent.contains(&topic) => Plan::Say(missing(&topic, event)),
            Ok(topic) => Plan::Send(topic),
            Err(name) => {
                let shown: String = name.chars().take(SHOWN).collect();
                let cut = if shown.len() < name.len() { "…" } else { "" };
                let text = format!(
                    "{:?} is not a valid topic name: it must have 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-'; \
                     change the template of the topic, or set a topic for the type {}",
                    shown + cut,
                    event.event_type
                );
                Plan::Say(Outcome::reject(DeliveryFailure::new("topic_name", text)))
            }
        };
        Ok(topics.into_iter().zip(delivery.events.iter().map(|attempt| &*attempt.event)).map(plan).collect())
    }
}

/// What becomes of an event whose topic is not there.
pub(crate) fn missing(topic: &str, event: &Recorded) -> Outcome {
    let text = format!(
        "the topic {topic} of {} does not exist; create it, because Postrider creates none",
        event.event_type
    );
    Outcome::Hold { after: HELD, failure: DeliveryFailure::new("topic_missing", text) }
}
