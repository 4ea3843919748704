//! One lane's producer: what it was given, and what became of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use postrider_core::{Result, Unavailable};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext, PurgeConfig,
};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::util::Timeout;
use tokio::sync::Notify;

use crate::config::{KafkaBuilder, invalid};

/// How often a producer looks whether it is to end.
const TICK: Duration = Duration::from_millis(100);

/// One lane's producer. Dropped, it sends nothing more.
pub(crate) struct Producer {
    pub(crate) inner: Arc<BaseProducer<Reports>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What became of a record: taken, or why not.
pub(crate) type Report = Result<(), Code>;

/// What became of the records of the batch that is under way.
#[derive(Default)]
pub(crate) struct Reports {
    board: Mutex<Board>,
    complete: Notify,
    complaint: Mutex<Option<String>>,
}

#[derive(Default)]
struct Board {
    /// Which batch: what an earlier one still had in flight is nobody's business any more.
    batch: u32,
    reports: Vec<Option<Report>>,
    open: usize,
}

impl Reports {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the client last complained of.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(level = ?level, facility, "{message}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(error = %error, "{reason}");
        let mut complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        // That all of them are down says less than why the first of them is.
        if complaint.is_none() || error.rdkafka_error_code() != Some(Code::AllBrokersDown) {
            *complaint = Some(reason.to_owned());
        }
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: usize) {
        let report = match result {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(Code::Unknown)),
        };
        let mut board = self.board();
        if (ticket >> 32) as u32 != board.batch {
            return;
        }
        if let Some(place) = board.reports.get_mut(ticket & 0xffff_ffff) {
            *place = Some(report);
        }
        board.open = board.open.saturating_sub(1);
        if board.open == 0 {
            self.complete.notify_one();
        }
    }
}

impl Producer {
    pub(crate) fn new(settings: &KafkaBuilder) -> Result<Self> {
        let created = settings.client().create_with_context(Reports::default());
        let inner: Arc<BaseProducer<Reports>> = Arc::new(created.map_err(|error| refused(&error))?);
        let stop = Arc::new(AtomicBool::new(false));
        let (polled, stopped) = (Arc::clone(&inner), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("postrider-kafka".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                polled.poll(Timeout::After(TICK));
            }
        });
        let thread = thread.map_err(|error| invalid(&format!("no thread can be started: {error}")))?;
        Ok(Self { inner, stop, thread: Some(thread) })
    }

    /// Begins a batch of so many records.
    pub(crate) fn begin(&self, records: usize) -> Flight<'_> {
        let mut board = self.inner.context().board();
        board.batch = board.batch.wrapping_add(1);
        board.reports = vec![None; records];
        board.open = 0;
        Flight { producer: self, batch: board.batch, landed: false }
    }

    /// The error after which this producer is good for nothing more.
    pub(crate) fn fatal(&self) -> Option<String> {
        self.inner.client().fatal_error().map(|(_, reason)| reason)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.inner.purge(PurgeConfig::default().queue().inflight());
        self.stop.store(true, Ordering::Release);
        // The thread ends by itself; whoever drops this may be on the runtime, and must not wait.
        drop(self.thread.take());
    }
}

/// A batch on its way. Dropped before it has landed, what is left of it is purged, and never sent.
pub(crate) struct Flight<'p> {
    producer: &'p Producer,
    batch: u32,
    landed: bool,
}

impl Flight<'_> {
    /// Hands a record to the producer.
    pub(crate) async fn send(
        &self,
        index: usize,
        mut record: BaseRecord<'_, str, [u8], usize>,
    ) -> Result<Report, Unavailable> {
        record.delivery_opaque = ((self.batch as usize) << 32) | index;
        loop {
            self.producer.inner.context().board().open += 1;
            let Err((error, back)) = self.producer.inner.send(record) else { return Ok(Ok(())) };
            {
                let mut board = self.producer.inner.context().board();
                board.open = board.open.saturating_sub(1);
            }
            match error.rdkafka_error_code() {
                Some(Code::QueueFull) => {
                    record = back;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Some(code) => return Ok(Err(code)),
                None => return Err(Unavailable::new(error.to_string())),
            }
        }
    }

    /// Waits until something is known of every record that was sent.
    pub(crate) async fn landed(mut self) -> Vec<Option<Report>> {
        let reports = self.producer.inner.context();
        loop {
            let complete = reports.complete.notified();
            {
                let mut board = reports.board();
                if board.open == 0 {
                    self.landed = true;
                    return std::mem::take(&mut board.reports);
                }
            }
            complete.await;
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.landed {
            self.producer.inner.purge(PurgeConfig::default().queue().inflight());
        }
    }
}

/// Why a client could not be made, without the value of any setting: it may be a secret.
pub(crate) fn refused(error: &KafkaError) -> postrider_core::Error {
    match error {
        KafkaError::ClientConfig(_, description, name, _) => {
            let description = description.trim_end_matches('.');
            if description.contains("No such configuration property") {
                return invalid(&format!(
                    "{name:?} is not a property of librdkafka; look it up in its CONFIGURATION.md"
                ));
            }
            invalid(&format!("the property {name:?} can't be set as it is: {}", first_sentence(description)))
        }
        other => invalid(&format!("the client can't be made: {other}")),
    }
}

/// Up to the value that a description quotes.
fn first_sentence(description: &str) -> &str {
    description.split('"').next().unwrap_or(description).trim()
}
