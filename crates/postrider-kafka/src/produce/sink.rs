//! The sink: a batch produced at once and confirmed in order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use postrider_core::{
    Delivery, DeliveryFailure, Error, ErrorKind, HeldKeys, Order, Outcome, Recorded, Result, Sink,
    Unavailable,
};
use rdkafka::metadata::Metadata;
use rdkafka::producer::{BaseRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode as Code;

use crate::client::config::KafkaBuilder;
use crate::client::error_class::{ErrorClass, error_class, is_consequence, is_of_several};
use crate::produce::plan::{HELD, Known, Plan, missing};
use crate::produce::producer::{Flight, Producer, Report};
use crate::produce::record;
use crate::produce::topic::Topics;

/// What is counted of a batch that was taken, and of one that was not confirmed.
const TAKEN: &str = "ok";
const UNCONFIRMED: &str = "unconfirmed";

/// Produces events to Kafka.
///
/// ```no_run
/// use postrider::{Relay, postgres::Outbox};
/// use postrider_kafka::Kafka;
///
/// # async fn example(outbox: Outbox) -> postrider::Result<()> {
/// let kafka = Kafka::builder("broker:9092").topic("{stream}-events").connect().await?;
/// Relay::new(&outbox).subscribe("to-kafka", |s| s.sink(kafka)).run().await
/// # }
/// ```
pub struct Kafka {
    pub(crate) settings: KafkaBuilder,
    pub(crate) topics: Topics,
    /// A producer a lane: what one of them still holds when its lease is lost is purged, and the others' is not.
    producers: Mutex<HashMap<u32, Arc<Producer>>>,
    pub(crate) known: Mutex<Known>,
}

/// What was handed to the client of some of a batch.
struct Sending {
    sent: Vec<usize>,
    /// Whether nothing was refused.
    all: bool,
    /// Why no more of it could be sent.
    away: Option<Unavailable>,
}

/// The result of producing a part of a batch.
struct Produced {
    /// Whether all of it was taken.
    all: bool,
    /// What the brokers refused for good, but not alone.
    refused: Vec<usize>,
}

impl Kafka {
    /// The default number of events per read. Between two batches the brokers wait for the database: the fewer, the better.
    pub const BATCH: u32 = 5000;

    /// A sink for these brokers: `host:port`, separated by commas.
    pub fn builder(brokers: &str) -> KafkaBuilder {
        KafkaBuilder::new(brokers)
    }

    pub(crate) fn new(settings: KafkaBuilder, topics: Topics) -> Result<Self> {
        let first = Arc::new(Producer::new(&settings)?);
        Ok(Self {
            settings,
            topics,
            producers: Mutex::new(HashMap::from([(0, first)])),
            known: Mutex::new(Known::default()),
        })
    }

    /// Whether the brokers answer.
    pub async fn check(&self) -> Result<()> {
        self.metadata().await.map(drop)
    }

    /// What the brokers say of themselves and of all topics, or why they say nothing.
    pub(crate) async fn metadata(&self) -> Result<Metadata> {
        let producer = self.producer(0).map_err(|unavailable| self.unreachable(&unavailable.reason))?;
        let unavailable = match self.ask(&producer).await {
            Ok(metadata) => return Ok(metadata),
            Err(unavailable) => unavailable,
        };
        let settings = self.settings.clone();
        let diagnosis = tokio::task::spawn_blocking(move || producer.diagnosis(&settings)).await;
        Err(self.unreachable(&diagnosis.ok().flatten().unwrap_or(unavailable.reason)))
    }

    fn unreachable(&self, reason: &str) -> Error {
        let message = format!("the brokers {} can't be used: {reason}", self.settings.brokers);
        Error::new(ErrorKind::Unreachable, "kafka", message)
    }

    /// The producer of a lane; a new one where the last had to be given up.
    fn producer(&self, lane: u32) -> Result<Arc<Producer>, Unavailable> {
        let mut producers = self.producers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(producer) = producers.get(&lane) {
            match producer.fatal() {
                None => return Ok(Arc::clone(producer)),
                Some(reason) => {
                    tracing::debug!(lane, reason, "the producer can't be used any more; creating a new one");
                }
            }
        }
        let producer = Producer::new(&self.settings).map_err(|error| Unavailable::new(error.to_string()))?;
        let producer = Arc::new(producer);
        producers.insert(lane, Arc::clone(&producer));
        Ok(producer)
    }

    /// What an error means for an event.
    fn outcome(&self, code: Code, topic: &str, event: &Recorded) -> Option<Outcome> {
        let failure = |code: &str, text: String| DeliveryFailure::new(code, text);
        let word = word(code);
        match error_class(code) {
            ErrorClass::Unavailable => None,
            ErrorClass::Retry => Some(Outcome::retry(failure(
                &word,
                format!("Kafka refused the record; it will be retried: {code}"),
            ))),
            ErrorClass::Reject => {
                Some(Outcome::reject(failure(&word, format!("Kafka rejected the record: {code}"))))
            }
            ErrorClass::HoldTopic => {
                self.forget(topic);
                // The client chooses the partition: one that is unknown is a topic that is gone.
                if matches!(
                    code,
                    Code::UnknownTopic
                        | Code::UnknownTopicId
                        | Code::UnknownTopicOrPartition
                        | Code::UnknownPartition
                ) {
                    return Some(missing(topic, event));
                }
                let text = format!("the topic {topic} of {} can't be written to: {code}", event.event_type);
                Some(Outcome::Hold { after: HELD, failure: failure(&word, text) })
            }
        }
    }

    /// Sends one after the other what was refused together; whether all of it was taken.
    async fn singly(
        &self,
        lane: u32,
        delivery: &Delivery,
        plan: &[Plan],
        indexes: &[usize],
        since: &mut Instant,
    ) -> Result<bool, Unavailable> {
        let (mut stopped, mut all) = (HeldKeys::new(delivery.order), true);
        for &index in indexes {
            let event = &*delivery.events[index].event;
            // The producer that was refused is good for nothing more.
            if stopped.holds(event)
                || !self.produce(&self.producer(lane)?, delivery, plan, &[index], since).await?.all
            {
                stopped.failed(event);
                all = false;
            }
        }
        Ok(all)
    }

    /// Produces some of a batch at once. Its time counts from `since`.
    async fn produce(
        &self,
        producer: &Arc<Producer>,
        delivery: &Delivery,
        plan: &[Plan],
        indexes: &[usize],
        since: &mut Instant,
    ) -> Result<Produced, Unavailable> {
        let began = Instant::now();
        let flight = producer.begin(delivery.events.len(), *since);
        let Sending { sent, all, away } = self.send(&flight, delivery, plan, indexes).await?;
        let reports = flight.landed().await;
        if !sent.is_empty() {
            delivery.requested(&came_to(&sent, &reports), began.elapsed());
        }
        *since = Instant::now();
        let refused = self.confirm(producer, delivery, plan, &sent, &reports)?;
        if let Some(away) = away {
            return Err(away);
        }
        let taken = |index: &usize| matches!(reports.get(*index), Some(Some(Ok(()))));
        Ok(Produced { all: all && sent.iter().all(taken), refused })
    }

    /// Hands records to the client, in order; reports what can't be sent.
    async fn send(
        &self,
        flight: &Flight<'_>,
        delivery: &Delivery,
        plan: &[Plan],
        indexes: &[usize],
    ) -> Result<Sending, Unavailable> {
        let mut stopped = HeldKeys::new(delivery.order);
        let mut sending = Sending { sent: Vec::with_capacity(indexes.len()), all: true, away: None };
        for &index in indexes {
            if delivery.is_stopping() {
                sending.all = false;
                break;
            }
            let event = &*delivery.events[index].event;
            if stopped.holds(event) {
                continue;
            }
            let refused = match &plan[index] {
                Plan::Say(outcome) => Some(outcome.clone()),
                Plan::Send(topic) => match self.write(flight, index, topic, event).await? {
                    Ok(()) => None,
                    Err(code) => match self.outcome(code, topic, event) {
                        Some(outcome) => Some(outcome),
                        // What was sent before is still to be confirmed.
                        None => {
                            sending.away = Some(Unavailable::new(code.to_string()));
                            break;
                        }
                    },
                },
            };
            match refused {
                None => sending.sent.push(index),
                Some(outcome) => {
                    delivery.report(index, outcome);
                    sending.all = false;
                    stopped.failed(event);
                }
            }
        }
        Ok(sending)
    }

    /// Writes an event into a record and hands that to the client.
    async fn write(
        &self,
        flight: &Flight<'_>,
        index: usize,
        topic: &str,
        event: &Recorded,
    ) -> Result<Report, Unavailable> {
        let (value, headers) = self.settings.record(event);
        let mut record = BaseRecord::with_opaque_to(topic, 0_usize).key(record::key(event)).headers(headers);
        record.payload = value.as_deref();
        flight.send(index, record).await
    }

    /// Reports what became of records, in order; gives those that were refused together for good.
    fn confirm(
        &self,
        producer: &Producer,
        delivery: &Delivery,
        plan: &[Plan],
        sent: &[usize],
        reports: &[Option<Report>],
    ) -> Result<Vec<usize>, Unavailable> {
        let (mut unavailable, mut consequence, mut explained) = (None, None, false);
        let mut refused = Vec::new();
        // What strict order holds back was not sent; of what was, each key speaks for itself.
        let order = if delivery.order == Order::Strict { Order::Key } else { delivery.order };
        let mut stopped = HeldKeys::new(order);
        for &index in sent {
            let event = &*delivery.events[index].event;
            match (reports.get(index).and_then(|report| *report), &plan[index]) {
                (Some(Ok(())), _) => delivery.report(index, Outcome::Delivered),
                // The brokers refuse a whole request: which record they mean shows when each is sent alone.
                (Some(Err(code)), _) if sent.len() > 1 && is_of_several(code) => {
                    if !stopped.holds(event) {
                        refused.push(index);
                    }
                }
                (Some(Err(code)), Plan::Send(topic)) => match self.outcome(code, topic, event) {
                    // It comes after a failure of its key, so it was not tried, whatever its outcome says.
                    Some(outcome) => {
                        if !stopped.holds(event) {
                            stopped.failed(event);
                            explained = true;
                            delivery.report(index, outcome);
                        }
                    }
                    None => {
                        stopped.failed(event);
                        if is_consequence(code) {
                            consequence.get_or_insert(code);
                        } else {
                            unavailable.get_or_insert(code);
                        }
                    }
                },
                _ => stopped.failed(event),
            }
        }
        // What befell the others because of one that was refused is over with it: they are sent again at once.
        explained |= !refused.is_empty();
        match unavailable.or(consequence.filter(|_| !explained)) {
            Some(code) => {
                // It may be a topic that was deleted: ask which there are before anything is sent again.
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Known::default();
                let reason = producer.inner.context().client_errors.sentence();
                Err(Unavailable::new(reason.map_or_else(|| code.to_string(), |why| format!("{code}: {why}"))))
            }
            None => Ok(refused),
        }
    }
}

/// What came of sending some of a batch, in a word: that of the first record that was not taken.
fn came_to(sent: &[usize], reports: &[Option<Report>]) -> String {
    let failed = sent.iter().find_map(|&index| match reports.get(index).and_then(|report| *report) {
        Some(Ok(())) => None,
        Some(Err(code)) => Some(word(code)),
        None => Some(UNCONFIRMED.to_owned()),
    });
    failed.unwrap_or_else(|| TAKEN.to_owned())
}

fn word(code: Code) -> String {
    format!("kafka_{code:?}").to_lowercase()
}

#[async_trait]
impl Sink for Kafka {
    fn batch(&self) -> u32 {
        Self::BATCH
    }

    /// What is in the client is too old to be sent half as long again after its time, and a third of a lease may be gone
    /// when it is handed over.
    fn least_lease(&self) -> Duration {
        self.settings.timeout * 5 / 2
    }

    fn codes(&self) -> &'static [&'static str] {
        &[TAKEN, UNCONFIRMED]
    }

    fn topics(&self) -> BTreeMap<String, String> {
        let by_type = self.settings.topics.iter().map(|(name, topic)| (name.clone(), topic.clone()));
        by_type.chain([("*".to_owned(), self.settings.topic.clone())]).collect()
    }

    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let lane = delivery.lease.as_ref().map_or(0, |lease| lease.lane);
        let mut since = Instant::now();
        let producer = self.producer(lane)?;
        let plan = self.plan(&producer, &delivery).await?;
        if since.elapsed() >= self.settings.timeout {
            // Brokers that are slow to say which topics there are, or a process that stood still: the next holder may be at work.
            return Err(Unavailable::new("the brokers took too long to list the topics"));
        }
        since = Instant::now();
        let all: Vec<usize> = (0..delivery.events.len()).collect();
        if delivery.order != Order::Strict {
            let produced = self.produce(&producer, &delivery, &plan, &all, &mut since).await?;
            self.singly(lane, &delivery, &plan, &produced.refused, &mut since).await?;
            return Ok(());
        }
        // Nothing may overtake a failure, also not in another partition: what has one key goes at once, the next when
        // that is confirmed.
        let partition = |index: usize| {
            let event = &*delivery.events[index].event;
            let topic = match &plan[index] {
                Plan::Send(topic) => Some(topic.as_str()),
                Plan::Say(_) => None,
            };
            (topic, record::key(event))
        };
        for run in all.chunk_by(|one, next| partition(*one) == partition(*next)) {
            let produced = self.produce(&self.producer(lane)?, &delivery, &plan, run, &mut since).await?;
            let rest = produced.refused.as_slice();
            // What was refused together may go alone, as long as that is all of the run.
            let all_alone =
                rest.len() == run.len() && self.singly(lane, &delivery, &plan, rest, &mut since).await?;
            if !produced.all && !all_alone {
                return Ok(());
            }
        }
        Ok(())
    }
}
