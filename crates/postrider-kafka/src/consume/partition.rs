//! A partition that is held: what has arrived in it, how far its worker is, and when that has to end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::base_consumer::PartitionQueue;
use tokio::sync::{Notify, watch};

use crate::consume::arrived::Arrived;
use crate::consume::group::Group;

/// A partition that is held, between the thread that polls and the worker that handles.
pub(crate) struct Partition {
    pub(crate) topic: Arc<str>,
    pub(crate) number: i32,
    /// What came through the thread that polls and not through the partition's own queue; as a rule nothing.
    strays: Mutex<VecDeque<Arrived>>,
    arrived: Notify,
    /// The offset that nothing before is open of; below 0 while nothing is done.
    reached: AtomicI64,
    /// When the worker has to have ended, once it is to end.
    end: watch::Sender<Option<Instant>>,
}

impl Partition {
    pub(crate) fn new(topic: Arc<str>, number: i32) -> Self {
        Self {
            topic,
            number,
            strays: Mutex::default(),
            arrived: Notify::new(),
            reached: AtomicI64::new(-1),
            end: watch::Sender::new(None),
        }
    }

    /// Takes a record that came through the thread that polls.
    pub(crate) fn stray(&self, record: Arrived) {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner).push_back(record);
        self.arrived.notify_one();
    }

    /// Everything before this offset is done.
    pub(crate) fn reach(&self, offset: i64) {
        self.reached.fetch_max(offset, Ordering::AcqRel);
    }

    /// The offset to commit, if anything is done.
    pub(crate) fn reached(&self) -> Option<i64> {
        Some(self.reached.load(Ordering::Acquire)).filter(|offset| *offset >= 0)
    }

    /// Tells the worker to begin nothing more and to have ended by then.
    pub(crate) fn end_by(&self, end: Instant) {
        self.end.send_if_modified(|current| {
            let sooner = current.is_none_or(|current| end < current);
            if sooner {
                *current = Some(end);
            }
            sooner
        });
    }

    /// When the worker has to have ended, if it is to end.
    pub(crate) fn end(&self) -> Option<Instant> {
        *self.end.borrow()
    }

    /// Ready once the worker is to end.
    pub(crate) async fn ending(&self) -> Instant {
        let mut end = self.end.subscribe();
        loop {
            if let Some(end) = *end.borrow_and_update() {
                return end;
            }
            // The sender is `self`: it does not go away.
            let _ = end.changed().await;
        }
    }

    /// Sleeps until then, or until the worker is to end; once that is so, not beyond its end.
    pub(crate) async fn sleep_until(&self, until: Instant) {
        match self.end() {
            Some(end) => tokio::time::sleep_until(until.min(end).into()).await,
            None => {
                tokio::select! {
                    () = tokio::time::sleep_until(until.into()) => {}
                    _ = self.ending() => {}
                }
            }
        }
    }
}

/// The records of a partition, as they arrive. What nobody takes stays with librdkafka, which fetches no more than a little
/// ahead: so a slow worker needs no brake, and slows nobody else.
pub(crate) struct Inlet {
    partition: Arc<Partition>,
    queue: PartitionQueue<Group>,
    /// The offset taken last. A rebalance may begin while a record is taken: then librdkafka fetches it once more.
    last: Option<i64>,
}

impl Inlet {
    pub(crate) fn new(partition: Arc<Partition>, mut queue: PartitionQueue<Group>) -> Self {
        let told = Arc::downgrade(&partition);
        queue.set_nonempty_callback(move || {
            if let Some(partition) = told.upgrade() {
                partition.arrived.notify_one();
            }
        });
        Self { partition, queue, last: None }
    }

    /// The next records, up to `most`, and no more once they have so many bytes; nothing once the worker is to end.
    pub(crate) async fn next(&mut self, most: usize, bytes: impl Fn() -> usize) -> Option<Vec<Arrived>> {
        let partition = Arc::clone(&self.partition);
        loop {
            let arrived = partition.arrived.notified();
            if partition.end().is_some() {
                return None;
            }
            let records = self.take(most, bytes());
            if !records.is_empty() {
                return Some(records);
            }
            tokio::select! {
                () = arrived => {}
                _ = partition.ending() => {}
            }
        }
    }

    /// What is there, up to `most` records or `most_bytes`.
    fn take(&mut self, most: usize, most_bytes: usize) -> Vec<Arrived> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while records.len() < most && bytes < most_bytes {
            let stray = self.partition.strays.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let record = match stray {
                Some(stray) => stray,
                None => match self.queue.poll(Duration::ZERO) {
                    Some(Ok(message)) => Arrived::new(Arc::clone(&self.partition.topic), &message),
                    Some(Err(error)) => {
                        tracing::warn!(topic = %self.partition.topic, partition = self.partition.number, error = %error,
                            "can't read from the partition");
                        continue;
                    }
                    None => break,
                },
            };
            if self.last.replace(record.offset) == Some(record.offset) {
                continue;
            }
            bytes += record.size();
            records.push(record);
        }
        records
    }
}
