//! A consumer at work: the thread that polls, and how it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postrider_core::{Error, ErrorKind, Result};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use tokio::sync::oneshot;

use crate::consume::group::Group;

/// How long the thread waits for a record before it looks what else is to be done.
const TICK: Duration = Duration::from_millis(50);
/// How often what was done is committed.
const SERVE: Duration = Duration::from_millis(100);
/// The shortest time between two log lines about brokers that can't be read from.
const QUIET: Duration = Duration::from_secs(60);
/// How much longer than its grace period a consumer is waited for: it has to say good-bye to the brokers.
const FAREWELL: Duration = Duration::from_secs(20);

/// A running consumer. Dropping it stops it without waiting; [`stop`](RunningConsumer::stop) waits.
///
/// It can end by itself: see [`failed`](RunningConsumer::failed).
pub struct RunningConsumer {
    group: Arc<Group>,
    stop: Arc<AtomicBool>,
    /// The answer of the thread at its end; nothing once it was taken.
    ended: Option<oneshot::Receiver<Result<()>>>,
}

impl RunningConsumer {
    pub(crate) fn new(consumer: Arc<BaseConsumer<Group>>) -> Result<Self> {
        let group = Arc::clone(consumer.context());
        let stop = Arc::new(AtomicBool::new(false));
        let (end, ended) = oneshot::channel();
        let (told, polled) = (Arc::clone(&stop), Arc::clone(&group));
        let thread = std::thread::Builder::new().name("postrider-consumer".to_owned()).spawn(move || {
            let answer = poll(&consumer, &polled, &told);
            // Why it ended says more than that it could not say good-bye.
            let left = close(&consumer);
            let _ = end.send(answer.and(left));
        });
        thread.map_err(|error| {
            Error::new(ErrorKind::Invalid, "consume", format!("can't start a thread: {error}"))
        })?;
        Ok(Self { group, stop, ended: Some(ended) })
    }

    /// The partitions that this consumer has now, as topic and number.
    pub fn partitions(&self) -> Vec<(String, i32)> {
        self.group.partitions()
    }

    /// Completes when the consumer has ended although nobody stopped it: after a fatal error, such as another consumer with the same
    /// `group.instance.id`, or because its thread ended unexpectedly. No record is handled from then on: start another consumer, or end the
    /// process with a failure so that whoever watches it does. It is cancel-safe; while the consumer runs, it never completes.
    ///
    /// ```no_run
    /// # async fn run(mut consumer: postrider_kafka::RunningConsumer, asked_to_end: impl Future<Output = ()>) -> postrider_core::Result<()> {
    /// tokio::select! {
    ///     () = asked_to_end => consumer.stop().await,
    ///     error = consumer.failed() => Err(error),
    /// }
    /// # }
    /// ```
    pub async fn failed(&mut self) -> Error {
        let answered = match &mut self.ended {
            Some(ended) => answer(ended.await),
            None => Ok(()),
        };
        self.ended = None;
        answered.err().unwrap_or_else(|| Error::new(ErrorKind::Internal, "consume", "the consumer has ended"))
    }

    /// Stops: finishes the handlers that are running, or drops them when the grace period is over; commits the offsets; leaves the
    /// group. No handled record is delivered again, unless an earlier record of its partition was not finished in time. After
    /// [`failed`](RunningConsumer::failed) there is nothing left to stop.
    ///
    /// *On failure*: the error says what could not be done, and what may be delivered again.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Release);
        let Some(ended) = self.ended.take() else { return Ok(()) };
        match tokio::time::timeout(self.group.grace + FAREWELL, ended).await {
            Ok(ended) => answer(ended),
            Err(_) => {
                let message = "the brokers did not answer in time; records that were handled last may be delivered again";
                Err(Error::new(ErrorKind::Unreachable, "stop", message))
            }
        }
    }
}

impl Drop for RunningConsumer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for RunningConsumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunningConsumer({} partitions)", self.partitions().len())
    }
}

/// Polls until it is told to stop. It never waits for a handler, except for those whose partition goes.
fn poll(consumer: &BaseConsumer<Group>, group: &Group, stop: &AtomicBool) -> Result<()> {
    let mut served = Instant::now();
    let mut said: Option<Instant> = None;
    let mut fatal = None;
    while !stop.load(Ordering::Acquire) && fatal.is_none() {
        match consumer.poll(TICK) {
            Some(Ok(message)) => group.take(&message),
            Some(Err(KafkaError::PartitionEOF(_))) | None => {}
            Some(Err(error)) => {
                let text = error.to_string();
                if matches!(error, KafkaError::MessageConsumptionFatal(_)) {
                    tracing::error!(group = %group.shared.group, error = text, "the consumer has stopped because of a fatal error; start a new one");
                    fatal = Some(Error::new(
                        ErrorKind::Denied,
                        "consume",
                        format!("the consumer has stopped because of a fatal error: {text}"),
                    ));
                } else if said.is_none_or(|said| said.elapsed() >= QUIET) {
                    let reason = group.client_errors.sentence().unwrap_or_default();
                    tracing::warn!(group = %group.shared.group, error = text, reason, "can't read from the brokers");
                    said = Some(Instant::now());
                }
            }
        }
        if served.elapsed() >= SERVE {
            served = Instant::now();
            group.serve(consumer);
        }
    }
    let end = Instant::now() + group.grace;
    group.stop(end);
    // Whatever still arrives is of no interest; but the group must see that we are alive.
    while !group.is_idle() && Instant::now() < end {
        drop(consumer.poll(TICK));
        group.serve(consumer);
    }
    let committed = group.leave(consumer).map_err(|error| {
        let message = format!(
            "offsets could not be committed; records that were handled last will be delivered again: {error}"
        );
        Error::new(ErrorKind::Unreachable, "stop", message)
    });
    fatal.map_or(committed, Err)
}

/// Leaves the group.
fn close(consumer: &BaseConsumer<Group>) -> Result<()> {
    let end = Instant::now() + FAREWELL / 2;
    let closing = consumer.close_queue();
    while closing.is_ok() && !consumer.closed() && Instant::now() < end {
        drop(consumer.poll(TICK));
    }
    if consumer.closed() {
        return Ok(());
    }
    let message =
        "the consumer could not leave its group; its partitions are free when its session times out";
    Err(Error::new(ErrorKind::Unreachable, "stop", message))
}

/// What the thread answered at its end. That it ended without an answer is a bug of ours.
fn answer(ended: std::result::Result<Result<()>, oneshot::error::RecvError>) -> Result<()> {
    ended.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Internal, "stop", "the thread of the consumer ended unexpectedly"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_panics_is_an_internal_error() {
        let (end, ended) = oneshot::channel::<Result<()>>();
        let thread = std::thread::spawn(move || {
            let _end = end;
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        assert_eq!(answer(ended.await).expect_err("no answer").kind(), ErrorKind::Internal);
        let (end, ended) = oneshot::channel();
        end.send(Ok(())).expect("sent");
        answer(ended.await).expect("it ended");
    }
}
