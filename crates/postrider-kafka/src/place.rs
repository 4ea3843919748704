//! A partition that is held: what has arrived for its worker, and how far the worker is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, watch};

use crate::arrived::Arrived;

/// A queue with more bytes than this is full, however few its records.
const MOST_BYTES: usize = 16 << 20;

/// A partition that is held, between the thread that polls and the worker that handles.
pub(crate) struct Place {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    queue: Mutex<Queue>,
    arrived: Notify,
    /// The offset that nothing before is open of; below 0 while nothing is done.
    reached: AtomicI64,
    /// When the worker has to have ended, once it is to end.
    end: watch::Sender<Option<Instant>>,
}

#[derive(Default)]
struct Queue {
    records: VecDeque<Arrived>,
    bytes: usize,
}

impl Place {
    pub(crate) fn new(topic: Arc<str>, partition: i32) -> Self {
        Self {
            topic,
            partition,
            queue: Mutex::default(),
            arrived: Notify::new(),
            reached: AtomicI64::new(-1),
            end: watch::Sender::new(None),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a record at the end; whether the queue is full now.
    pub(crate) fn push(&self, record: Arrived, most: usize) -> bool {
        let mut queue = self.queue();
        queue.bytes += record.size();
        queue.records.push_back(record);
        let full = queue.records.len() >= most || queue.bytes >= MOST_BYTES;
        drop(queue);
        self.arrived.notify_one();
        full
    }

    /// Whether so little is left that more should be fetched.
    pub(crate) fn is_drained(&self, least: usize) -> bool {
        let queue = self.queue();
        queue.records.len() <= least && queue.bytes < MOST_BYTES / 2
    }

    /// The next records, up to `most`; nothing once the worker is to end.
    pub(crate) async fn next(&self, most: usize) -> Option<Vec<Arrived>> {
        let mut end = self.end.subscribe();
        loop {
            let arrived = self.arrived.notified();
            if end.borrow_and_update().is_some() {
                return None;
            }
            {
                let mut queue = self.queue();
                let count = queue.records.len().min(most);
                if count > 0 {
                    let records: Vec<Arrived> = queue.records.drain(..count).collect();
                    queue.bytes -= records.iter().map(Arrived::size).sum::<usize>();
                    return Some(records);
                }
            }
            tokio::select! {
                () = arrived => {}
                _ = end.changed() => {}
            }
        }
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
