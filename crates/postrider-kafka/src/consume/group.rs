//! The partitions that a consumer holds. All of this runs in the polling thread, so nothing is committed for a partition that is not
//! held.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::statistics::Statistics;
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::client::client_error::ClientErrors;
use crate::client::offsets::{self, patiently};
use crate::consume::arrived::Arrived;
use crate::consume::metrics;
use crate::consume::partition::{Inlet, Partition};
use crate::consume::worker::{ConsumerShared, Worker};

/// How long to wait for an answer about offsets.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much longer than its time a worker is waited for, so that it can end by itself.
const MARGIN: Duration = Duration::from_secs(1);
/// A commit that was not confirmed by then is repeated: in the middle of a rebalance it is refused, and nobody says so.
const ANSWER: Duration = Duration::from_secs(1);
/// How long a last commit is tried while its error passes by itself.
const COMMIT: Duration = Duration::from_secs(2);

/// What a consumer holds of its group's partitions.
pub(crate) struct Group {
    pub(crate) shared: Arc<ConsumerShared>,
    pub(crate) runtime: Handle,
    /// How long what has begun may take when a partition goes, or the consumer stops.
    pub(crate) grace: Duration,
    /// Whether a partition without a position begins at its end.
    pub(crate) latest: bool,
    /// The consumer whose context this is.
    consumer: OnceLock<Weak<BaseConsumer<Self>>>,
    held: Mutex<HashMap<Arc<str>, HashMap<i32, Held>>>,
    stopping: AtomicBool,
    pub(crate) client_errors: ClientErrors,
}

/// A partition that is held.
struct Held {
    partition: Arc<Partition>,
    /// Disconnected once the worker has ended.
    ended: Receiver<()>,
    abort: AbortHandle,
    /// What is known to be committed.
    confirmed: Option<i64>,
    /// What is on its way to be, and since when.
    sent: Option<(i64, Instant)>,
}

impl Held {
    /// The offset to commit, if there is one that is neither known to be committed nor on its way.
    fn progress(&self, now: Instant) -> Option<i64> {
        let reached = self.partition.reached().filter(|reached| self.confirmed != Some(*reached))?;
        let on_its_way = |(offset, since): (i64, Instant)| offset == reached && now < since + ANSWER;
        (!self.sent.is_some_and(on_its_way)).then_some(reached)
    }

    /// Waits until the worker has ended; ends it if that takes longer.
    fn wait(&self, until: Instant) {
        let time = until.saturating_duration_since(Instant::now());
        if let Ok(()) | Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(time) {
            self.abort.abort();
        }
    }
}

impl Group {
    pub(crate) fn new(shared: Arc<ConsumerShared>, runtime: Handle, grace: Duration, latest: bool) -> Self {
        Self {
            shared,
            runtime,
            grace,
            latest,
            consumer: OnceLock::new(),
            held: Mutex::default(),
            stopping: AtomicBool::new(false),
            client_errors: ClientErrors::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Arc<str>, HashMap<i32, Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partitions that are held.
    pub(crate) fn partitions(&self) -> Vec<(String, i32)> {
        let held = self.held();
        let of_topic = |(topic, partitions): (&Arc<str>, &HashMap<i32, Held>)| {
            partitions.keys().map(|partition| (topic.to_string(), *partition)).collect::<Vec<_>>()
        };
        let mut partitions: Vec<(String, i32)> = held.iter().flat_map(of_topic).collect();
        partitions.sort();
        partitions
    }

    /// Says whose context this is, before anything is subscribed to.
    pub(crate) fn serves(&self, consumer: &Arc<BaseConsumer<Self>>) {
        let _ = self.consumer.set(Arc::downgrade(consumer));
    }

    /// Gives a record that came through the thread that polls to its worker.
    pub(crate) fn take(&self, message: &BorrowedMessage<'_>) {
        let held = self.held();
        // The partition is not held any more: its new owner reads the record.
        if let Some(held) = held.get(message.topic()).and_then(|topic| topic.get(&message.partition())) {
            held.partition.stray(Arrived::new(Arc::clone(&held.partition.topic), message));
        }
    }

    /// Commits what was done since the last time, and again what was not confirmed.
    pub(crate) fn serve(&self, consumer: &BaseConsumer<Self>) {
        let (mut done, now) = (TopicPartitionList::new(), Instant::now());
        for held in self.held().values_mut().flat_map(HashMap::values_mut) {
            if let Some(offset) = held.progress(now) {
                add(&mut done, &held.partition, offset);
                held.sent = Some((offset, now));
            }
        }
        if done.count() > 0
            && let Err(error) = consumer.commit(&done, CommitMode::Async)
        {
            tracing::debug!(group = %self.shared.group, error = %error, "can't commit offsets; trying again");
        }
    }

    /// Commits what these have done, and waits for the answer.
    fn commit(&self, consumer: &BaseConsumer<Self>, these: &[Held]) -> KafkaResult<()> {
        let mut done = TopicPartitionList::new();
        for held in these {
            // Also what is said to be committed: the answer may not have come.
            if let Some(offset) = held.partition.reached() {
                add(&mut done, &held.partition, offset);
            }
        }
        if done.count() == 0 {
            return Ok(());
        }
        let answer = patiently(COMMIT, || consumer.commit(&done, CommitMode::Sync));
        if let Err(error) = &answer {
            tracing::warn!(group = %self.shared.group, error = %error,
                "offsets could not be committed; records that were handled last will be delivered again");
        }
        answer
    }

    /// Begins to work on partitions, before the first record of them can arrive.
    fn assigned(&self, partitions: &TopicPartitionList) {
        let consumer = self.consumer.get().and_then(Weak::upgrade);
        let Some(consumer) = consumer.filter(|_| !self.stopping.load(Ordering::Acquire)) else { return };
        let mut held = self.held();
        for each in partitions.elements() {
            let topic: Arc<str> = each.topic().into();
            let partition = Arc::new(Partition::new(Arc::clone(&topic), each.partition()));
            let Some(queue) = consumer.split_partition_queue(&topic, each.partition()) else {
                tracing::error!(group = %self.shared.group, topic = %topic, partition = each.partition(),
                    "can't get the queue of the partition; it is not consumed until it is assigned again");
                continue;
            };
            let inlet = Inlet::new(Arc::clone(&partition), queue);
            let (working, ended) = mpsc::channel::<()>();
            let worker = Worker::new(Arc::clone(&self.shared), Arc::clone(&partition));
            let task = self.runtime.spawn(async move {
                worker.run(inlet).await;
                drop(working);
            });
            let new = Held { partition, ended, abort: task.abort_handle(), confirmed: None, sent: None };
            held.entry(topic).or_default().insert(each.partition(), new);
        }
        tracing::info!(group = %self.shared.group, partitions = partitions.count(), "partitions were assigned");
    }

    /// Ends the work on partitions and commits what is done, before they go. Of partitions that are lost nothing is committed:
    /// they are somebody else's.
    fn revoked(&self, consumer: &BaseConsumer<Self>, partitions: &TopicPartitionList) {
        let lost = consumer.assignment_lost();
        let end = Instant::now() + if lost { Duration::ZERO } else { self.grace };
        let mut going: Vec<Held> = Vec::with_capacity(partitions.count());
        {
            let mut held = self.held();
            for each in partitions.elements() {
                going.extend(held.get_mut(each.topic()).and_then(|topic| topic.remove(&each.partition())));
            }
        }
        end_all(&going, end);
        for held in &going {
            metrics::lag(&self.shared.group, &held.partition.topic, held.partition.number).set(0.0);
        }
        if lost {
            tracing::warn!(group = %self.shared.group, partitions = going.len(),
                "partitions were lost; records that were handled and not committed will be delivered again, to the new owners");
        } else if !going.is_empty() {
            // What could not be committed was said, and comes again.
            let _ = self.commit(consumer, &going);
            tracing::info!(group = %self.shared.group, partitions = going.len(), "partitions were revoked");
        }
    }

    /// Fixes where partitions without a position begin: at their end as it is now. Otherwise what arrives between now and
    /// the first commit would be passed over by the next owner, who would begin at the end as it is then.
    fn pin(&self, consumer: &BaseConsumer<Self>, partitions: &TopicPartitionList) -> KafkaResult<()> {
        let mut first = TopicPartitionList::new();
        for each in offsets::committed(consumer, partitions, PATIENCE)?.elements() {
            if each.offset() == Offset::Invalid {
                let ends = || consumer.fetch_watermarks(each.topic(), each.partition(), PATIENCE);
                let (_, end) = patiently(PATIENCE, ends)?;
                first.add_partition_offset(each.topic(), each.partition(), Offset::Offset(end))?;
            }
        }
        if first.count() > 0 { consumer.commit(&first, CommitMode::Sync) } else { Ok(()) }
    }

    /// Asks all workers to end by then.
    pub(crate) fn stop(&self, end: Instant) {
        self.stopping.store(true, Ordering::Release);
        self.held().values().flat_map(HashMap::values).for_each(|held| held.partition.end_by(end));
    }

    /// Whether all workers have ended.
    pub(crate) fn is_idle(&self) -> bool {
        let held = self.held();
        held.values()
            .flat_map(HashMap::values)
            .all(|held| held.ended.try_recv() == Err(TryRecvError::Disconnected))
    }

    /// Ends what is left, and commits what is done.
    pub(crate) fn leave(&self, consumer: &BaseConsumer<Self>) -> KafkaResult<()> {
        let left: Vec<Held> = self.held().drain().flat_map(|(_, topic)| topic.into_values()).collect();
        end_all(&left, Instant::now());
        self.commit(consumer, &left)
    }
}

/// Ends workers, all at once, and waits for them.
fn end_all(going: &[Held], end: Instant) {
    for held in going {
        held.partition.end_by(end);
    }
    for held in going {
        held.wait(end + MARGIN);
    }
}

fn add(list: &mut TopicPartitionList, partition: &Partition, offset: i64) {
    // An offset of ours is never one that can't be written down.
    let _ = list.add_partition_offset(&partition.topic, partition.number, Offset::Offset(offset));
}

impl ClientContext for Group {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.client_errors.read(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.client_errors.hear(&error, reason);
    }

    fn stats(&self, statistics: Statistics) {
        let held = self.held();
        for (topic, partitions) in held.iter() {
            let Some(seen) = statistics.topics.get(&**topic) else { continue };
            for partition in partitions.keys() {
                if let Some(lag) =
                    seen.partitions.get(partition).map(|seen| seen.consumer_lag).filter(|lag| *lag >= 0)
                {
                    metrics::lag(&self.shared.group, topic, *partition).set(lag as f64);
                }
            }
        }
    }
}

impl ConsumerContext for Group {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Revoke(partitions) => self.revoked(consumer, partitions),
            Rebalance::Assign(partitions) => {
                if self.latest
                    && let Err(error) = self.pin(consumer, partitions)
                {
                    tracing::warn!(group = %self.shared.group, error = %error,
                        "could not commit the start offset of new partitions; they start at the newest record");
                }
                self.assigned(partitions);
            }
            Rebalance::Error(error) => {
                tracing::warn!(group = %self.shared.group, error = %error, "the group could not rebalance");
            }
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        if let Err(error) = &result {
            tracing::debug!(group = %self.shared.group, error = %error, "can't commit offsets; trying again");
        }
        let mut held = self.held();
        for each in offsets.elements() {
            let partition = held.get_mut(each.topic()).and_then(|topic| topic.get_mut(&each.partition()));
            if let (Some(held), Offset::Offset(offset)) = (partition, each.offset()) {
                match (&result, each.error()) {
                    (Ok(()), Ok(())) => held.confirmed = held.confirmed.max(Some(offset)),
                    _ => held.sent = None,
                }
            }
        }
    }
}
