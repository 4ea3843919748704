//! The work on one partition: *take, read, deliver, give up or try again, move on*.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use postrider_core::{Attempt, Backoff, Delivery, DeliveryFailure, Recorded, Retry, Sink, Unavailable};

use crate::consume::arrived::Arrived;
use crate::consume::line::line;
use crate::consume::metrics::ConsumerMetrics;
use crate::consume::partition::{Inlet, Partition};
use crate::consume::partition_batch::{Batch, Consequence, Next};
use crate::consume::sequence::{Gap, Sequences};
use crate::dead_letter::address::Address;
use crate::produce::receipt_producer::ReceiptProducer;

/// How long to wait at first when nothing can be handled, or no letter be written.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked how far a delivery is: what is done is committed while a slow handler still works.
const LOOK: Duration = Duration::from_millis(100);

/// What all partitions of a consumer have in their hands at once, and each at least: an event is there twice, as its record and as
/// itself.
const ALL_BYTES: usize = 16 << 20;
const LEAST_BYTES: usize = 1 << 20;

/// What is called for each gap.
pub(crate) type OnGap = Arc<dyn Fn(&Gap) + Send + Sync>;

/// What all workers of a consumer share.
pub(crate) struct ConsumerShared {
    pub(crate) group: Arc<str>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) receipt_producer: ReceiptProducer,
    pub(crate) address: Address,
    pub(crate) retry: Retry,
    pub(crate) longest_pause: Duration,
    pub(crate) records: usize,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    /// The type of the aggregate, by event type.
    pub(crate) aggregates: HashMap<&'static str, Arc<str>>,
    pub(crate) numbered_keys: usize,
    pub(crate) on_gap: Option<OnGap>,
    /// How many of them there are.
    pub(crate) workers: AtomicUsize,
}

impl ConsumerShared {
    /// How long to leave alone what can't be done at the moment.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(FIRST_PAUSE, self.longest_pause)
    }

    /// A worker's share of the memory for records: with more than this a batch is full, however few they are.
    fn share(&self) -> usize {
        (ALL_BYTES / self.workers.load(Ordering::Acquire).max(1)).max(LEAST_BYTES)
    }
}

/// The work on one partition, for as long as it is held.
pub(crate) struct Worker {
    pub(crate) shared: Arc<ConsumerShared>,
    pub(crate) partition: Arc<Partition>,
    pub(crate) metrics: ConsumerMetrics,
    sequences: Sequences,
    /// Since when nothing can be handled, and how long it is left alone.
    outage: Option<(Instant, Backoff)>,
}

/// How the work on a batch ended.
enum End {
    Done,
    /// The worker must end. Another consumer gets what is not done of the batch.
    Stopped,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.workers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Worker {
    pub(crate) fn new(shared: Arc<ConsumerShared>, partition: Arc<Partition>) -> Self {
        let metrics = ConsumerMetrics::new(&shared.group, &partition.topic);
        let sequences = Sequences::new(shared.numbered_keys);
        shared.workers.fetch_add(1, Ordering::AcqRel);
        Self { shared, partition, metrics, sequences, outage: None }
    }

    /// Works until the partition is to end.
    pub(crate) async fn run(mut self, mut inlet: Inlet) {
        while let Some(records) = inlet.next(self.shared.records, || self.shared.share()).await {
            let mut batch = self.read(records);
            loop {
                match AssertUnwindSafe(self.work(&mut batch)).catch_unwind().await {
                    Ok(End::Done) => break,
                    Ok(End::Stopped) => return,
                    // What its message says may quote a payload.
                    Err(_) => {
                        tracing::error!(group = %self.shared.group, topic = %self.partition.topic,
                            partition = self.partition.number, "a worker panicked; its batch is tried again");
                        self.partition.sleep_until(Instant::now() + Duration::from_secs(1)).await;
                        if self.partition.end().is_some() {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Reads the events of records, and looks at their numbers.
    fn read(&mut self, records: Vec<Arrived>) -> Batch {
        self.metrics.consumed.increment(records.len() as u64);
        let mut read = |record: Arrived| {
            if record.is_for_another(&self.shared.group) {
                self.say_passed_over(&record);
                return (record, None);
            }
            let mut event = record.event();
            if let Ok(event) = &mut event {
                self.look_for_gap(&record, event);
                if let Some(aggregate) = self.shared.aggregates.get(&*event.event_type)
                    && event.aggregate_type.is_empty()
                {
                    event.aggregate_type = Arc::clone(aggregate);
                }
            }
            let event = event.map_err(|error| DeliveryFailure::new("not_an_event", error.to_string()));
            (record, Some(event))
        };
        Batch::new(records.into_iter().map(&mut read).collect())
    }

    fn look_for_gap(&mut self, record: &Arrived, event: &Recorded) {
        let key = counted_key(event);
        let Some(expected) = self.sequences.note(event, &key) else { return };
        let gap = Gap {
            group: Arc::clone(&self.shared.group),
            topic: Arc::clone(&record.topic),
            partition: record.partition,
            offset: record.offset,
            key: key.into_owned(),
            expected,
            got: event.sequence.unwrap_or_default(),
            event_id: event.event_id,
        };
        self.metrics.gaps.increment(1);
        line!(warn, gap.group, record, Some(event), { key = gap.key, expected, got = gap.got, },
            "sequence numbers of this key are missing; check the producer for the missing events");
        if let Some(hook) = &self.shared.on_gap
            && std::panic::catch_unwind(AssertUnwindSafe(|| hook(&gap))).is_err()
        {
            line!(error, gap.group, record, Some(event), {}, "the on_gap hook panicked");
        }
    }

    /// Works on a batch until all of it is done, or the worker is to end.
    async fn work(&mut self, batch: &mut Batch) -> End {
        loop {
            while let Some(index) = batch.next_letter() {
                // It may take for ever: what is done before it must not wait for that.
                self.move_on(batch);
                if !self.give_up(batch, index).await {
                    return End::Stopped;
                }
            }
            self.move_on(batch);
            if batch.is_done() {
                return End::Done;
            }
            let end = self.partition.end();
            if let Some(end) = end
                && (!batch.has_holes() || self.outage.is_some() || Instant::now() >= end)
            {
                return End::Stopped;
            }
            match batch.next(Instant::now(), end.is_some()) {
                Next::Now(mut ready) => {
                    if self.outage.is_some() {
                        // One is enough to ask with.
                        ready.truncate(1);
                    }
                    self.deliver(batch, &ready, end.is_some()).await;
                }
                Next::At(time) => self.partition.sleep_until(time).await,
            }
        }
    }

    /// Delivers some of a batch once, and draws the consequences.
    async fn deliver(&mut self, batch: &mut Batch, ready: &[usize], filling: bool) {
        let attempt = |index: &usize| {
            let item = &batch.items[*index];
            let event = item.event.as_ref().map(|(event, _)| Arc::clone(event))?;
            Some(Attempt { event, attempt: item.tries + 1 })
        };
        let mut delivery =
            Delivery::new(Arc::clone(&self.shared.group), ready.iter().filter_map(attempt).collect());
        (delivery.concurrency, delivery.timeout) = (self.shared.concurrency, self.shared.timeout);
        let delivery = Arc::new(delivery);
        let shared = Arc::clone(&self.shared);
        let mut any = false;
        let answer = {
            let mut delivering = shared.sink.deliver(Arc::clone(&delivery));
            loop {
                let end = self.partition.end();
                if end.is_some() && !filling {
                    // What has begun is finished, and nothing more is begun.
                    delivery.stop();
                }
                tokio::select! {
                    answer = &mut delivering => break answer,
                    _ = self.partition.ending(), if end.is_none() => {}
                    // Out of time: what is under way is dropped, and what was not reported was not done.
                    () = sleep_until(end), if end.is_some() => break Ok(()),
                    () = tokio::time::sleep(LOOK) => {
                        any |= self.apply_outcomes(batch, ready, &delivery);
                        self.move_on(batch);
                    }
                }
            }
        };
        any |= self.apply_outcomes(batch, ready, &delivery);
        match answer {
            Err(reason) => self.away(&reason).await,
            Ok(()) if any => self.back(),
            // Nothing was tried, without a reason.
            Ok(()) => self.partition.sleep_until(Instant::now() + FIRST_PAUSE).await,
        }
    }

    /// Applies the outcomes that were reported so far. Returns whether there were any.
    fn apply_outcomes(&self, batch: &mut Batch, ready: &[usize], delivery: &Delivery) -> bool {
        let (now, mut any) = (Instant::now(), false);
        for (index, outcome) in ready.iter().zip(delivery.take_outcomes()) {
            let Some(outcome) = outcome else { continue };
            any = true;
            let consequence = batch.apply(*index, outcome, &self.shared.retry, now);
            self.say(batch, *index, &consequence);
            match consequence {
                Consequence::Handled => {
                    self.metrics.handled.increment(1);
                    self.metrics.duplicates.increment(batch.finish(*index) as u64);
                }
                Consequence::Duplicate => {
                    self.metrics.duplicates.increment(1 + batch.finish(*index) as u64);
                }
                Consequence::Again(..) => self.metrics.retried.increment(1),
                Consequence::Held(..) | Consequence::GivenUp => {}
            }
        }
        any
    }

    /// Says how far the partition is done.
    fn move_on(&self, batch: &Batch) {
        if let Some(offset) = batch.reached() {
            self.partition.reach(offset);
        }
    }

    /// Nothing can be handled now.
    async fn away(&mut self, reason: &Unavailable) {
        let (_, backoff) = self.outage.get_or_insert_with(|| {
            tracing::warn!(group = %self.shared.group, topic = %self.partition.topic, partition = self.partition.number,
                reason = %reason, "handlers are unavailable; the partition waits, and this does not count as an attempt");
            (Instant::now(), self.shared.backoff())
        });
        let pause = backoff.next_delay();
        self.partition.sleep_until(Instant::now() + pause).await;
    }

    fn back(&mut self) {
        if let Some((since, _)) = self.outage.take() {
            tracing::info!(group = %self.shared.group, topic = %self.partition.topic, partition = self.partition.number,
                seconds = since.elapsed().as_secs_f64(), "events are handled again");
        }
    }
}

/// The key that an event's number counts within: the aggregate's type and id, where the record names the type and no other key.
fn counted_key(event: &Recorded) -> Cow<'_, str> {
    if event.aggregate_type.is_empty() || event.ordering_key.as_ref() != Some(&event.aggregate_id) {
        return event.key();
    }
    Cow::Owned(format!("{}:{}", event.aggregate_type, event.aggregate_id))
}

/// Sleeps until then; for ever without a time.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
