//! A consumer as an application writes it down.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Event, Retry, Source};
use postrider_relay::{
    Decode, DispatcherBuilder, Handler, NewerVersion, SubscriberInfo, Unknown, Upcasters, defaults,
};

use crate::client::security::{Security, told_who_we_are};
use crate::consume::sequence::Gap;
use crate::consume::worker::OnGap;
use crate::dead_letter::address::Address;

/// Where a group begins in a partition that it has no position in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offsets {
    /// At the oldest record: nothing is missed.
    #[default]
    Earliest,
    /// At the end, as it is when the partition is first assigned: that position is committed at once, so that nothing that
    /// arrives from then on is missed, whoever holds the partition.
    Latest,
}

/// Handlers behind topics of Kafka: the same ones as behind a subscription.
///
/// Unless set otherwise: from the oldest record; up to 100 records of a partition at a time, 16 keys of them at once, the
/// records of a key one after another; a failed event is tried again three times, 1 s apart, and goes to the topic
/// `{topic}.DLT` then.
///
/// Delivery is at least once: a record that was handled but not committed when a process dies, or loses its partitions, is
/// delivered again.
/// Records need not say everything of their event. Where a record has no such attribute, an event's `stream` is the topic, its
/// `ordering_key` the record's key, its `recorded_at` (and `occurred_at`) the record's timestamp, its schema version 1, and its
/// `aggregate_type` the one of the [`Event`] that its handler receives, or empty. Handlers are chosen by event type alone. See
/// [`CloudEvents::read`](postrider_core::CloudEvents::read) for the whole list, and
/// [`KafkaBuilder::attributes`](crate::KafkaBuilder::attributes) for writing more.
///
/// Transactional handlers, and plain ones with an [`inbox`](Consumer::inbox), keep an inbox under the name of the group: a
/// transactional handler's effect happens once.
pub struct Consumer<S: Source> {
    pub(crate) source: S,
    pub(crate) brokers: String,
    pub(crate) group: String,
    pub(crate) topics: Vec<String>,
    pub(crate) handlers: DispatcherBuilder<S>,
    /// The type of the aggregate, by event type: what the events of `on` say of themselves.
    pub(crate) aggregates: HashMap<&'static str, Arc<str>>,
    pub(crate) offsets: Offsets,
    pub(crate) records: usize,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    pub(crate) retry: Retry,
    pub(crate) longest_pause: Duration,
    pub(crate) grace: Duration,
    pub(crate) address: Address,
    pub(crate) numbered_keys: usize,
    pub(crate) on_gap: Option<OnGap>,
    pub(crate) security: Security,
    pub(crate) properties: BTreeMap<String, String>,
}

impl<S: Source> Consumer<S> {
    /// A consumer of a group, without topics and handlers yet. Transactional handlers get their transactions from the outbox;
    /// the brokers are `host:port`, separated by commas.
    pub fn new(outbox: &S, brokers: &str, group: &str) -> Self {
        Self {
            source: outbox.clone(),
            brokers: brokers.to_owned(),
            group: group.to_owned(),
            topics: Vec::new(),
            handlers: DispatcherBuilder::default(),
            aggregates: HashMap::new(),
            offsets: Offsets::default(),
            records: 100,
            concurrency: defaults::CONCURRENCY,
            timeout: defaults::TIMEOUT,
            retry: Retry::fixed(Duration::from_secs(1)).max_attempts(4),
            longest_pause: defaults::LONGEST_PAUSE,
            grace: Duration::from_secs(10),
            address: Address::default(),
            numbered_keys: 100_000,
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

    /// Handles events of the type that the handler receives: see [`Subscriber::on`](postrider_relay::Subscriber::on).
    #[must_use]
    pub fn on<H, Shape>(mut self, handler: H) -> Self
    where
        H: Handler<S, Shape>,
        H::Payload: Event + Decode,
        Shape: 'static,
    {
        self.aggregates.insert(H::Payload::NAME, H::Payload::AGGREGATE.into());
        self.handlers.on(handler);
        self
    }

    /// Declares that the handler that was added last records events of type `E`: see
    /// [`Subscriber::follow_up`](postrider_relay::Subscriber::follow_up).
    #[must_use]
    pub fn follow_up<E: Event>(mut self) -> Self {
        self.handlers.follow_up(E::NAME);
        self
    }

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

    /// Handles events of this type, whose payload need not know that it is one.
    #[must_use]
    pub fn on_type<H, Shape>(mut self, event_type: &str, handler: H) -> Self
    where
        H: Handler<S, Shape>,
        H::Payload: Decode,
        Shape: 'static,
    {
        self.handlers.on_type(event_type, handler);
        self
    }

    /// Handles events that no other handler is for.
    #[must_use]
    pub fn on_other<H, Shape>(mut self, handler: H) -> Self
    where
        H: Handler<S, Shape>,
        H::Payload: Decode,
        Shape: 'static,
    {
        self.handlers.on_other(handler);
        self
    }

    /// What to do with an event that has no handler; it is skipped unless set. [`Unknown::Reject`] makes it a dead letter.
    #[must_use]
    pub fn unknown(mut self, unknown: Unknown) -> Self {
        self.handlers.unknown(unknown);
        self
    }

    /// The steps from old versions of payloads to the newest.
    #[must_use]
    pub fn upcasters(mut self, upcasters: Upcasters) -> Self {
        self.handlers.upcasters(upcasters);
        self
    }

    /// What happens to an event of a newer version than its handler takes. Default: it waits, and
    /// what follows in its partition waits behind it.
    #[must_use]
    pub fn newer_version(mut self, newer_version: NewerVersion) -> Self {
        self.handlers.newer_version(newer_version);
        self
    }

    /// Lets plain handlers keep an inbox: see [`Subscriber::inbox`](postrider_relay::Subscriber::inbox) for what that promises.
    #[must_use]
    pub fn inbox(mut self) -> Self {
        self.handlers.inbox(true);
        self
    }

    /// Lets transactional handlers share a transaction, up to this many events each. When one of them fails, all of it is
    /// rolled back and each is handled alone.
    #[must_use]
    pub fn max_tx_batch(mut self, events: usize) -> Self {
        self.handlers.max_tx_batch(events);
        self
    }

    /// How long one event may take; 30 s unless set.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long the handler of one type may take, where that is not the consumer's timeout.
    #[must_use]
    pub fn timeout_of(mut self, event_type: &str, timeout: Duration) -> Self {
        self.handlers.timeout_of(event_type, timeout);
        self
    }

    /// How many keys of a partition are handled at once, at most; 16 unless set.
    #[must_use]
    pub fn concurrency(mut self, keys: usize) -> Self {
        self.concurrency = keys;
        self
    }

    /// How many records of a partition are handled together, at most; 100 unless set. A consumer holds about 16 MB of records in
    /// memory at most, over all its partitions, and each partition prefetches up to 2 MB more.
    #[must_use]
    pub fn records_per_poll(mut self, records: usize) -> Self {
        self.records = records;
        self
    }

    /// Where a new group begins; at the oldest record unless set.
    #[must_use]
    pub fn from(mut self, offsets: Offsets) -> Self {
        self.offsets = offsets;
        self
    }

    /// When a failed event is tried again, and when it is a dead letter; unless set, it is tried again three times, 1 s apart. Later
    /// events of its key wait for it, and so do the records of its partition that come after this batch: pauses should be short.
    ///
    /// The age that [`max_age`](Retry::max_age) limits begins at the event's first failure in this process.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// The longest pause between two tries of what can't be done at the moment: a handler whose database is away, a dead letter
    /// that can't be written; 30 s unless set.
    #[must_use]
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// How long running handlers may take to finish when their partition is revoked, or the consumer stops; 10 s unless set.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The topic for dead letters, where `{topic}` stands for the topic that they come from; `{topic}.DLT` unless set. While it does
    /// not exist, or can't be written to, a partition with a record to give up stands still.
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

    /// For how many keys a partition remembers the last `sequence` number, to find gaps; 100,000 unless set, 0 turns it off. The
    /// keys that were seen least recently are forgotten first, and all of them when the partition is revoked.
    #[must_use]
    pub fn numbered_keys(mut self, keys: usize) -> Self {
        self.numbered_keys = keys;
        self
    }

    told_who_we_are!();

    /// Sets a property of librdkafka, for the consumer and for the producer of dead letters; it overrides the other settings. One
    /// that would break a promise is refused at the start.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }
}
