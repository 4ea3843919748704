//! The producer of one lane, and the delivery reports of its batch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use postrider_core::{Backoff, Result, Unavailable};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::metadata::Metadata;
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext, PurgeConfig,
};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::util::Timeout;
use tokio::sync::Notify;

use crate::client::client_error::{ClientErrors, ErrorCause};
use crate::client::config::KafkaBuilder;
use crate::client::invalid::{invalid, refused};

/// How often a producer looks whether it is to end.
const TICK: Duration = Duration::from_millis(100);

/// The first time that a request for metadata may take; each further one may take twice as long.
const FIRST_SLICE: Duration = Duration::from_millis(100);
/// The shortest time after which an error of one broker is final: others may still answer.
const ENOUGH: Duration = Duration::from_secs(1);
/// The pause between two requests, in which an error of the client can arrive.
const MOMENT: Duration = Duration::from_millis(20);

/// One lane's producer. Dropped, it sends nothing more.
pub(crate) struct Producer {
    pub(crate) inner: Arc<BaseProducer<Reports>>,
    /// Whether it knows one broker to begin with.
    is_single: bool,
    /// How long a batch may be under way.
    timeout: Duration,
    /// Something was taken back from it: what it sends next might not follow what it sent.
    spent: AtomicBool,
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
    pub(crate) client_errors: ClientErrors,
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
}

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.client_errors.read(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.client_errors.hear(&error, reason);
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
        let thread = thread.map_err(|error| invalid(&format!("can't start a thread: {error}")))?;
        let is_single = !settings.brokers.contains(',');
        let timeout = settings.timeout;
        Ok(Self { inner, is_single, timeout, spent: AtomicBool::new(false), stop, thread: Some(thread) })
    }

    /// Asks which topics there are, and gives up early where waiting does not help. It blocks.
    pub(crate) fn metadata(&self, patience: Duration) -> Result<Metadata, KafkaError> {
        let begun = Instant::now();
        let mut slices = Backoff::new(FIRST_SLICE, patience);
        loop {
            let asked = Instant::now();
            let slice = slices.next_delay_up_to(patience.saturating_sub(begun.elapsed()));
            let error = match self.inner.client().fetch_metadata(None, slice) {
                Ok(metadata) => {
                    self.inner.context().client_errors.clear();
                    return Ok(metadata);
                }
                Err(error) => error,
            };
            let last_error = self.inner.context().client_errors.last();
            let is_new = last_error.as_ref().is_some_and(|it| it.at >= begun);
            // Other brokers may be better; and what was said before this began may be over.
            let is_final = begun.elapsed() >= ENOUGH || (self.is_single && is_new);
            let lasts = is_final && last_error.is_some_and(|it| it.is_lasting());
            // A broker was there, and turned us down.
            let turned_down = is_new && asked.elapsed() < slice / 2;
            if begun.elapsed() >= patience || lasts || turned_down {
                return Err(error);
            }
            std::thread::sleep(MOMENT);
        }
    }

    /// What keeps the brokers from answering, as closely as can be found out, which may take a while.
    pub(crate) fn diagnosis(&self, settings: &KafkaBuilder) -> Option<String> {
        let last_error = self.inner.context().client_errors.last()?;
        if last_error.cause() != ErrorCause::Certificate {
            return Some(last_error.sentence_for(last_error.cause_at_start()));
        }
        // OpenSSL says the same of a wrong name and of an unknown authority: try it without regard to the name.
        let Ok(other) = Self::new(&settings.nameless()) else { return Some(last_error.sentence()) };
        let is_name = match other.metadata(2 * ENOUGH) {
            Ok(_) => true,
            Err(_) => other.inner.context().client_errors.last().is_some_and(|it| !it.is_lasting()),
        };
        Some(last_error.sentence_for(if is_name { ErrorCause::Name } else { ErrorCause::Certificate }))
    }

    /// Begins a batch of so many records. Its time counts from `since`: from when it was last known that this process does
    /// not stand still. Otherwise one that wakes up would send what the next holder has sent long ago.
    pub(crate) fn begin(&self, records: usize, since: Instant) -> Flight<'_> {
        let mut board = self.inner.context().board();
        board.batch = board.batch.wrapping_add(1);
        board.reports = vec![None; records];
        board.open = 0;
        let deadline = since + self.timeout;
        Flight { producer: self, batch: board.batch, deadline, landed: false }
    }

    /// Why this producer is good for nothing more, if it is not.
    pub(crate) fn fatal(&self) -> Option<String> {
        if self.spent.load(Ordering::Acquire) {
            return Some("unsent records were cancelled at the deadline".to_owned());
        }
        self.inner.client().fatal_error().map(|(_, reason)| reason)
    }

    /// Takes back all that is not confirmed.
    fn purge(&self) {
        self.spent.store(true, Ordering::Release);
        self.inner.purge(PurgeConfig::default().queue().inflight());
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.purge();
        self.stop.store(true, Ordering::Release);
        // The thread ends by itself; whoever drops this may be on the runtime, and must not wait.
        drop(self.thread.take());
    }
}

/// A batch on its way. Dropped before it has landed, what is left of it is purged, and never sent.
pub(crate) struct Flight<'p> {
    producer: &'p Producer,
    batch: u32,
    /// When all that is left of it is taken back, at once. The client's own timeout takes record by record: it gives up the
    /// first of a key and sends the next, whatever it guarantees otherwise.
    deadline: Instant,
    landed: bool,
}

impl<'p> Flight<'p> {
    /// Where reports come in, as long as they are of this batch: whoever claimed the lane anew may have begun another.
    fn board(&self) -> Option<MutexGuard<'p, Board>> {
        let board = self.producer.inner.context().board();
        (board.batch == self.batch).then_some(board)
    }

    /// Hands a record to the producer, as long as the batch's time is not over.
    pub(crate) async fn send(
        &self,
        index: usize,
        mut record: BaseRecord<'_, str, [u8], usize>,
    ) -> Result<Report, Unavailable> {
        record.delivery_opaque = ((self.batch as usize) << 32) | index;
        let mut was_full = false;
        loop {
            if Instant::now() >= self.deadline {
                return Ok(Err(Code::TimedOutQueue));
            }
            match self.board() {
                Some(mut board) => board.open += 1,
                None => return Err(Unavailable::new("another batch of the lane has started")),
            }
            let is_empty = was_full && self.producer.inner.in_flight_count() == 0;
            let Err((error, back)) = self.producer.inner.send(record) else { return Ok(Ok(())) };
            if let Some(mut board) = self.board() {
                board.open = board.open.saturating_sub(1);
            }
            match error.rdkafka_error_code() {
                // With nothing else in the queue it is this record that does not fit, now or ever.
                Some(Code::QueueFull) if is_empty => return Ok(Err(Code::MessageSizeTooLarge)),
                Some(Code::QueueFull) => {
                    was_full = true;
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
        let mut end = Some(self.deadline);
        loop {
            let complete = reports.complete.notified();
            {
                let Some(mut board) = self.board() else { return Vec::new() };
                if board.open == 0 {
                    self.landed = true;
                    let landed = std::mem::take(&mut board.reports);
                    if landed.iter().any(|report| matches!(report, Some(Ok(())))) {
                        reports.client_errors.clear();
                    }
                    return landed;
                }
            }
            let Some(deadline) = end else {
                complete.await;
                continue;
            };
            if tokio::time::timeout_at(deadline.into(), complete).await.is_err() {
                self.producer.purge();
                end = None;
            }
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.landed {
            self.producer.purge();
        }
    }
}
