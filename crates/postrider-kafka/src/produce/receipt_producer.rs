//! Records sent one by one, each with its receipt: dead letters, what is put back, and the bus.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Result};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext, PurgeConfig,
};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, ClientContext};
use tokio::sync::oneshot;

use crate::client::client_error::ClientErrors;
use crate::client::error_class::{ErrorClass, error_class};
use crate::client::invalid::{invalid, refused};

/// How often the producer looks whether it is to end.
const TICK: Duration = Duration::from_millis(100);
/// How long to wait for an answer about topics.
const PATIENCE: Duration = Duration::from_secs(5);

type Receipt = Result<(), Code>;

/// A record to send.
pub(crate) struct OutgoingRecord<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: Option<i32>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: OwnedHeaders,
}

/// Sends records and waits until all in-sync replicas have them. Any number may be on their way at once.
pub(crate) struct ReceiptProducer {
    config: ClientConfig,
    line: Mutex<Arc<Line>>,
    known: Mutex<HashSet<String>>,
}

/// One producer; after a fatal error another takes its place.
struct Line {
    producer: Arc<BaseProducer<Receipts>>,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct Receipts {
    client_errors: ClientErrors,
}

impl ClientContext for Receipts {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.client_errors.read(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.client_errors.hear(&error, reason);
    }
}

impl ProducerContext for Receipts {
    type DeliveryOpaque = Box<oneshot::Sender<Receipt>>;

    fn delivery(&self, result: &DeliveryResult<'_>, receipt: Self::DeliveryOpaque) {
        let outcome = match result {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(Code::Unknown)),
        };
        // Nobody may be waiting any more.
        let _ = receipt.send(outcome);
    }
}

impl Line {
    fn new(config: &ClientConfig) -> Result<Arc<Self>> {
        let created = config.create_with_context(Receipts::default());
        let producer: Arc<BaseProducer<Receipts>> = Arc::new(created.map_err(|error| refused(&error))?);
        let stop = Arc::new(AtomicBool::new(false));
        let (polled, stopped) = (Arc::clone(&producer), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("postrider-receipts".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                polled.poll(Timeout::After(TICK));
            }
        });
        thread.map_err(|error| invalid(&format!("can't start a thread: {error}")))?;
        Ok(Arc::new(Self { producer, stop }))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.producer.purge(PurgeConfig::default().queue().inflight());
        self.stop.store(true, Ordering::Release);
    }
}

impl ReceiptProducer {
    pub(crate) fn new(config: ClientConfig) -> Result<Self> {
        let line = Mutex::new(Line::new(&config)?);
        Ok(Self { config, line, known: Mutex::default() })
    }

    fn line(&self) -> Result<Arc<Line>> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.producer.client().fatal_error().is_some() {
            *line = Line::new(&self.config)?;
        }
        Ok(Arc::clone(&line))
    }

    fn known(&self, topic: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(topic)
    }

    /// Asks which topics there are, within a few seconds. All of them: to ask for one may create it.
    pub(crate) async fn ask(&self) -> Result<()> {
        let line = self.line()?;
        let asked = Arc::clone(&line);
        let answer =
            tokio::task::spawn_blocking(move || asked.producer.client().fetch_metadata(None, PATIENCE));
        let metadata = match answer.await {
            Ok(Ok(metadata)) => metadata,
            Ok(Err(error)) => {
                let reason = line.producer.context().client_errors.sentence();
                return Err(unreachable(&reason.unwrap_or_else(|| error.to_string())));
            }
            Err(error) => return Err(unreachable(&error.to_string())),
        };
        let there = metadata
            .topics()
            .iter()
            .filter(|topic| topic.error().is_none() && !topic.partitions().is_empty());
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
            there.map(|topic| topic.name().to_owned()).collect();
        Ok(())
    }

    /// Whether a topic is there.
    pub(crate) async fn has(&self, topic: &str) -> Result<bool> {
        if !self.known(topic) {
            self.ask().await?;
        }
        Ok(self.known(topic))
    }

    /// Sends a record. *Guarantees*: it is in its topic, on all in-sync replicas, when this returns well. *On failure*: one
    /// sentence that says what to do; it may be in its topic all the same.
    pub(crate) async fn send(&self, outgoing: OutgoingRecord<'_>) -> Result<()> {
        let topic = outgoing.topic.to_owned();
        if !self.has(&topic).await? {
            let message =
                format!("the topic {topic} does not exist; create it, because Postrider creates none");
            return Err(Error::new(ErrorKind::NotFound, "kafka", message));
        }
        let line = self.line()?;
        let (receipt, received) = oneshot::channel();
        let mut record =
            BaseRecord::with_opaque_to(outgoing.topic, Box::new(receipt)).headers(outgoing.headers);
        (record.key, record.payload) = (outgoing.key, outgoing.value);
        record.partition = outgoing.partition;
        let outcome = loop {
            match line.producer.send(record) {
                // A receipt that was thrown away: the producer had to be given up.
                Ok(()) => break received.await.unwrap_or(Err(Code::PurgeQueue)),
                Err((error, back)) => match error.rdkafka_error_code() {
                    Some(Code::QueueFull) => {
                        record = back;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    code => break Err(code.unwrap_or(Code::Unknown)),
                },
            }
        };
        outcome.map_err(|code| self.explain(code, &topic))
    }

    fn explain(&self, code: Code, topic: &str) -> Error {
        match error_class(code) {
            ErrorClass::Unavailable => unreachable(&code.to_string()),
            ErrorClass::HoldTopic => {
                self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
                let message = format!(
                    "the topic {topic} can't be written to: {code}; check that it exists and that the user may write to it"
                );
                Error::new(ErrorKind::Denied, "kafka", message)
            }
            ErrorClass::Reject if code == Code::MessageSizeTooLarge => invalid(&format!(
                "the record is too large for the topic {topic}; raise its max.message.bytes"
            )),
            ErrorClass::Reject | ErrorClass::Retry => {
                invalid(&format!("the topic {topic} refused the record: {code}"))
            }
        }
    }
}

fn unreachable(reason: &str) -> Error {
    Error::new(ErrorKind::Unreachable, "kafka", format!("the brokers can't be used: {reason}"))
}
