//! The builder of a consumer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{OutboxSource, Retry};
use postrider_relay::{DispatcherBuilder, SubscriberInfo, defaults};

use crate::client::security::{Security, security_methods};
use crate::consume::sequence::Gap;
use crate::consume::worker::OnGap;
use crate::dead_letter::address::Address;

/// [`Consumer::records_per_poll`] by default.
const RECORDS: usize = 100;
/// [`Consumer::retry`] by default: the pause, and how often an event is tried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const MAX_ATTEMPTS: u32 = 4;
/// [`Consumer::numbered_keys`] by default.
const NUMBERED_KEYS: usize = 100_000;

/// Where a group starts in a partition that it has no offset in.
///
/// ```
/// use postrider::testing::Outbox;
/// use postrider_kafka::{Consumer, Offsets};
///
/// // A new group that wants no history.
/// let consumer = Consumer::new(&Outbox::new(), "broker:9092", "dashboard").topics(["orders"]).from(Offsets::Latest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offsets {
    /// At the oldest record: no record is missed.
    #[default]
    Earliest,
    /// At the end of the partition when it is first assigned. That position is committed at once, so no later record is missed,
    /// even if another member of the group gets the partition.
    Latest,
}

/// Calls handlers with the events of Kafka topics: the same handlers as those of a subscription.
///
/// By default it starts at the oldest record, handles up to 100 records of a partition at a time and 16 keys of them at the same
/// time, and the records of a key one by one. A failed event is retried three times, 1 s apart, and then goes to the dead-letter
/// topic `{topic}.DLT`.
///
/// Delivery is at least once: if a process dies or loses its partitions, records that were handled but not committed are delivered
/// again.
///
/// If a record does not have them, the `stream` of an event is the topic, its `ordering_key` the record's key, its `recorded_at`
/// (and `occurred_at`) the record's timestamp, its schema version 1, and its `aggregate_type` that of the [`Event`](trait@postrider_core::Event) that its
/// handler receives, or empty. Handlers are chosen by event type alone. See
/// [`CloudEvents::read`](postrider_core::CloudEvents::read) for the whole list, and
/// [`KafkaBuilder::attributes`](crate::KafkaBuilder::attributes) for writing more.
///
/// Transactional handlers, and plain ones with an [`inbox`](Consumer::inbox), keep an inbox under the name of the group: a
/// transactional handler's effect happens once.
///
/// ```no_run
/// use postrider::postgres::Outbox;
/// use postrider::{Event, Failure, Received};
/// use postrider_kafka::Consumer;
///
/// #[derive(serde::Serialize, serde::Deserialize, Event)]
/// #[event(stream = "orders", aggregate = "Order", id = order)]
/// struct OrderPaid {
///     order: i64,
/// }
///
/// async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> {
///     println!("order {} is paid", event.order);
///     Ok(())
/// }
///
/// # async fn example(outbox: Outbox) -> postrider::Result<()> {
/// let consumer = Consumer::new(&outbox, "broker:9092", "billing").topics(["orders"]).on(receipt).start().await?;
/// postrider::asked_to_end().await;
/// consumer.stop().await
/// # }
/// ```
pub struct Consumer<S: OutboxSource> {
    pub(crate) source: S,
    pub(crate) brokers: String,
    pub(crate) group: String,
    pub(crate) topics: Vec<String>,
    pub(crate) handlers: DispatcherBuilder<S>,
    pub(crate) offsets: Offsets,
    pub(crate) records: usize,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    pub(crate) retry: Retry,
    pub(crate) longest_pause: Duration,
    pub(crate) grace: Duration,
    pub(crate) wait_for_brokers: Duration,
    pub(crate) address: Address,
    pub(crate) numbered_keys: usize,
    pub(crate) on_gap: Option<OnGap>,
    pub(crate) security: Security,
    pub(crate) properties: BTreeMap<String, String>,
}

impl<S: OutboxSource> Consumer<S> {
    /// A consumer of a group, still without topics and handlers. Transactional handlers get their transactions from the outbox;
    /// the brokers are `host:port`, separated by commas.
    pub fn new(outbox: &S, brokers: &str, group: &str) -> Self {
        Self {
            source: outbox.clone(),
            brokers: brokers.to_owned(),
            group: group.to_owned(),
            topics: Vec::new(),
            handlers: DispatcherBuilder::default(),
            offsets: Offsets::default(),
            records: RECORDS,
            concurrency: defaults::CONCURRENCY,
            timeout: defaults::TIMEOUT,
            retry: Retry::fixed(RETRY_PAUSE).max_attempts(MAX_ATTEMPTS),
            longest_pause: defaults::LONGEST_PAUSE,
            grace: defaults::SHUTDOWN_GRACE,
            wait_for_brokers: Duration::ZERO,
            address: Address::default(),
            numbered_keys: NUMBERED_KEYS,
            on_gap: None,
            security: Security::default(),
            properties: BTreeMap::new(),
        }
    }

    /// The topics to consume. They must exist.
    #[must_use]
    pub fn topics<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.topics.extend(topics.into_iter().map(Into::into));
        self
    }

    postrider_relay::handler_methods!();

    /// The group and its handlers as data, for a catalog.
    pub fn info(&self) -> SubscriberInfo {
        SubscriberInfo {
            name: self.group.clone(),
            streams: Vec::new(),
            types: Vec::new(),
            handlers: self.handlers.info(),
            destination: None,
            topics: self.topics.clone(),
            topics_by_type: BTreeMap::new(),
        }
    }

    /// How long one event may take; by default 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Maximum number of keys of a partition that are handled at the same time; by default 16.
    #[must_use]
    pub fn concurrency(mut self, keys: usize) -> Self {
        self.concurrency = keys;
        self
    }

    /// Maximum number of records of a partition that are handled together; by default 100. A consumer holds at most about 16 MB
    /// of records in memory, over all its partitions, and each partition prefetches up to 2 MB more.
    #[must_use]
    pub fn records_per_poll(mut self, records: usize) -> Self {
        self.records = records;
        self
    }

    /// Where a new group starts; by default at the oldest record.
    #[must_use]
    pub fn from(mut self, offsets: Offsets) -> Self {
        self.offsets = offsets;
        self
    }

    /// When a failed event is retried, and when it becomes a dead letter; by default it is retried three times, 1 s apart. Later
    /// events of its key wait for it, and so do the records of its partition after this batch: pauses should be short.
    ///
    /// The age that [`max_age`](Retry::max_age) limits begins at the event's first failure in this process.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// The longest pause between two attempts while something is unavailable: the database of a handler, or the dead-letter
    /// topic; by default 30 s.
    #[must_use]
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// How long running handlers may take to finish when their partition is revoked, or the consumer stops; by default 10 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// For how long [`start`](Consumer::start) tries again while the brokers can't be reached; by default it does not, and fails.
    /// `Duration::MAX` is for a service that must come up during an outage: it begins to work when the brokers are there. A wrong
    /// setting and a topic that does not exist fail at once all the same.
    #[must_use]
    pub fn wait_for_brokers(mut self, longest: Duration) -> Self {
        self.wait_for_brokers = longest;
        self
    }

    /// The dead-letter topic; `{topic}` stands for the topic of the record; by default `{topic}.DLT`. While it does not exist or
    /// can't be written to, a partition stops at the first record that fails for good.
    #[must_use]
    pub fn dead_letters(mut self, pattern: &str) -> Self {
        self.address = Address::new(pattern);
        self
    }

    /// Calls this for each gap in the `sequence` numbers of a key. It is called between records, so it must be fast. If the events
    /// of a key go to several topics, each topic has gaps.
    #[must_use]
    pub fn on_gap(mut self, hook: impl Fn(&Gap) + Send + Sync + 'static) -> Self {
        self.on_gap = Some(Arc::new(hook));
        self
    }

    /// For how many keys a partition remembers the last `sequence` number, to find gaps; by default 100,000; 0 turns it off. The
    /// keys that were seen least recently are forgotten first, and all of them when the partition is revoked.
    #[must_use]
    pub fn numbered_keys(mut self, keys: usize) -> Self {
        self.numbered_keys = keys;
        self
    }

    security_methods!();

    /// Sets a property of librdkafka, for the consumer and for the producer of dead letters; it overrides the other settings. One
    /// that would break a promise is refused at the start.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }
}
