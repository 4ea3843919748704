//! A consumer as an application writes it down.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Event, Result, Source};
use postrider_relay::{Decode, DispatcherBuilder, Handler, Unknown, Upcasters};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use crate::config::invalid;
use crate::group::Group;
use crate::letter::Address;
use crate::post::Post;
use crate::producer::refused;
use crate::round::Patience;
use crate::running::RunningConsumer;
use crate::sequence::Gap;
use crate::sink::Kafka;
use crate::topic;
use crate::worker::{Crew, OnGap};

/// How long to wait for an answer about topics.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a promise rests on, and the only values that keep it.
const KEPT: &[(&str, &[&str], &str)] = &[
    ("enable.auto.commit", &["false"], "offsets are committed when their records are handled"),
    ("enable.auto.offset.store", &["false"], "offsets are committed when their records are handled"),
    (
        "partition.assignment.strategy",
        &["cooperative-sticky"],
        "partitions that stay are worked on while others move",
    ),
    (
        "group.protocol",
        &["classic"],
        "only in the classic one is a partition given back before it is given away",
    ),
    ("group.id", &[], "the group is the consumer's name"),
    ("bootstrap.servers", &[], "the brokers are given to the consumer itself"),
    ("metadata.broker.list", &[], "the brokers are given to the consumer itself"),
    ("auto.offset.reset", &[], "where a new group begins is said with from(…)"),
];

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
/// Delivery is at least once: what was handled and not committed when a process dies, or loses its partitions, comes again.
/// Transactional handlers, and plain ones with an [`inbox`](Consumer::inbox), keep an inbox under the name of the group: a
/// transactional handler's effect happens once.
pub struct Consumer<S: Source> {
    source: S,
    brokers: String,
    group: String,
    topics: Vec<String>,
    handlers: DispatcherBuilder<S>,
    offsets: Offsets,
    records: usize,
    concurrency: usize,
    timeout: Duration,
    patience: Patience,
    longest_pause: Duration,
    grace: Duration,
    address: Address,
    numbered_keys: usize,
    on_gap: Option<OnGap>,
    properties: BTreeMap<String, String>,
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
            offsets: Offsets::default(),
            records: 100,
            concurrency: 16,
            timeout: Duration::from_secs(30),
            patience: Patience { retries: 3, pause: Duration::from_secs(1) },
            longest_pause: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            address: Address::default(),
            numbered_keys: 100_000,
            on_gap: None,
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
        H::Payload: Event,
        Shape: 'static,
    {
        self.handlers.on(handler);
        self
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

    /// What becomes of an event that no handler is for; it is passed over unless set. Rejected, it is a dead letter.
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

    /// Lets plain handlers keep an inbox: see [`Subscriber::inbox`](postrider_relay::Subscriber::inbox) for what that promises.
    #[must_use]
    pub fn inbox(mut self) -> Self {
        self.handlers.inbox(true);
        self
    }

    /// Lets transactional handlers share a transaction, up to this many events each. When one of them fails, all of it is
    /// rolled back and each is handled alone.
    #[must_use]
    pub fn together(mut self, events: usize) -> Self {
        self.handlers.together(events);
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

    /// How many records of a partition are handled together, at most; 100 unless set. A few megabytes
    /// of each partition are in memory beside them.
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

    /// How often a failed event is tried again before it is a dead letter; three times unless set.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.patience.retries = retries;
        self
    }

    /// How long to wait before a failed event is tried again, where the handler does not say; 1 s unless set. Later events of
    /// its key wait with it, and the partition's next records until this one's are done.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.patience.pause = pause;
        self
    }

    /// How long to wait at most before it is tried again what can't be done now: a handler whose database is away, a dead
    /// letter that can't be written; 30 s unless set.
    #[must_use]
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// How long what has begun may take when a partition goes to somebody else, or the consumer stops; 10 s unless set.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The topic for dead letters, `{topic}` standing for the one that they were in; `{topic}.DLT` unless set. While it is
    /// missing, or can't be written to, a partition that needs it stands still.
    #[must_use]
    pub fn dead_letters(mut self, pattern: &str) -> Self {
        self.address = Address::new(pattern);
        self
    }

    /// Calls this for each gap in the numbers that events have within their keys. It is called between records, and should
    /// not take long. Where the events of a key go to several topics, each of them has gaps.
    #[must_use]
    pub fn on_gap(mut self, hook: impl Fn(&Gap) + Send + Sync + 'static) -> Self {
        self.on_gap = Some(Arc::new(hook));
        self
    }

    /// Of how many keys a partition remembers the last number, to notice gaps; 100,000 unless set, 0 for none. Those that
    /// were not seen for longest are forgotten, and all of them when the partition goes.
    #[must_use]
    pub fn numbered_keys(mut self, keys: usize) -> Self {
        self.numbered_keys = keys;
        self
    }

    /// Sets a property of librdkafka, for reading and for the dead letters: how to log in, for example.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    fn check(&self) -> Result<()> {
        if self.brokers.trim().is_empty() {
            return Err(invalid("the brokers are given as host:port, separated by commas"));
        }
        if self.group.is_empty()
            || self.group.len() > postrider_core::Limits::NAME
            || self.group.contains('\0')
        {
            return Err(self.invalid("the name of a group has 1 to 200 bytes and no NUL"));
        }
        if self.topics.is_empty() {
            return Err(self.invalid("it has no topic: add one with topics(…)"));
        }
        if let Some(name) = self.topics.iter().find(|name| !topic::valid(name)) {
            return Err(self.invalid(&format!("{name:?} can't be the name of a topic")));
        }
        self.address.check(self.topics.iter().map(String::as_str))?;
        if self.handlers.is_empty() {
            return Err(self.invalid("it has no handler: add one with on(…)"));
        }
        for (what, number) in [("concurrency", self.concurrency), ("records_per_poll", self.records)] {
            if number == 0 {
                return Err(self.invalid(&format!("{what} is at least 1")));
            }
        }
        for (what, time) in [("timeout", self.timeout), ("longest pause", self.longest_pause)] {
            if time.is_zero() {
                return Err(self.invalid(&format!("the {what} is longer than nothing")));
            }
        }
        for (name, kept, why) in KEPT {
            if let Some(value) = self.properties.get(*name)
                && !kept.contains(&value.as_str())
            {
                return Err(self.invalid(&format!("{name} is not for you to set to {value:?}: {why}")));
            }
        }
        let most = self.properties.get("max.poll.interval.ms").and_then(|time| time.parse().ok());
        if self.grace + PATIENCE >= Duration::from_millis(most.unwrap_or(300_000)) {
            return Err(
                self.invalid("the grace period is shorter than max.poll.interval.ms by more than 5 s")
            );
        }
        Ok(())
    }

    fn invalid(&self, what: &str) -> Error {
        invalid(&format!("consumer {:?}: {what}", self.group))
    }

    fn client(&self) -> ClientConfig {
        let offsets = if self.offsets == Offsets::Latest { "latest" } else { "earliest" };
        let mut config = ClientConfig::new();
        for (name, value) in [
            ("bootstrap.servers", self.brokers.as_str()),
            ("client.id", "postrider"),
            ("group.id", &self.group),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", offsets),
            ("partition.assignment.strategy", "cooperative-sticky"),
            ("allow.auto.create.topics", "false"),
            ("socket.timeout.ms", "10000"),
            ("reconnect.backoff.ms", "50"),
            ("reconnect.backoff.max.ms", "1000"),
            ("fetch.error.backoff.ms", "100"),
            // Of each partition, ahead of its worker.
            ("queued.max.messages.kbytes", "4096"),
            ("statistics.interval.ms", "15000"),
        ] {
            config.set(name, value);
        }
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config
    }

    /// What writes dead letters: the same brokers, the same login, and what the sink promises.
    fn post(&self) -> Result<Post> {
        let mut settings = Kafka::builder(&self.brokers);
        // What was read is to be written again, with a little more: the topic itself says how large a record may be.
        settings = settings.property("message.max.bytes", "100000000");
        for (name, value) in &self.properties {
            settings = settings.property(name, value);
        }
        Post::new(settings.client())
    }

    /// Joins the group and begins to work.
    ///
    /// *On failure*: one sentence that says what to do, when something in the consumer itself is wrong, when the brokers can't
    /// be reached, and when a topic does not exist. Nothing is started then.
    pub async fn start(mut self) -> Result<RunningConsumer> {
        self.check()?;
        let client = self.client();
        let post = self.post()?;
        let topics: BTreeSet<String> = std::mem::take(&mut self.topics).into_iter().collect();
        let sink = Arc::new(self.handlers.build(&self.source)?);
        let crew = Arc::new(Crew {
            group: self.group.as_str().into(),
            sink,
            post,
            address: self.address,
            patience: self.patience,
            longest_pause: self.longest_pause,
            records: self.records,
            concurrency: self.concurrency,
            timeout: self.timeout,
            numbered_keys: self.numbered_keys,
            on_gap: self.on_gap,
        });
        let latest = self.offsets == Offsets::Latest;
        let group = Group::new(Arc::clone(&crew), tokio::runtime::Handle::current(), self.grace, latest);
        let brokers = self.brokers;
        let joined = tokio::task::spawn_blocking(move || {
            let created = client.create_with_context(group).map_err(|error| refused(&error))?;
            let consumer: Arc<BaseConsumer<Group>> = Arc::new(created);
            consumer.context().serves(&consumer);
            join(&consumer, &brokers, &topics)?;
            RunningConsumer::new(consumer)
        });
        joined.await.map_err(|error| {
            Error::new(ErrorKind::Corrupt, "consume", format!("it did not start: {error}"))
        })?
    }

    /// Runs until the future is ready, and stops then.
    pub async fn run_until(self, end: impl Future<Output = ()>) -> Result<()> {
        let running = self.start().await?;
        end.await;
        running.stop().await
    }
}

/// Subscribes to topics that are there.
fn join(consumer: &BaseConsumer<Group>, brokers: &str, topics: &BTreeSet<String>) -> Result<()> {
    let group = consumer.context();
    // All of them: to ask for one may create it.
    let metadata = consumer.fetch_metadata(None, PATIENCE).map_err(|error| {
        // Why shows only to those who poll.
        while consumer.poll(Duration::ZERO).is_some() {}
        let reason = group.complaint().unwrap_or_else(|| error.to_string());
        Error::new(
            ErrorKind::Unreachable,
            "consume",
            format!("the brokers {brokers} can't be used: {reason}"),
        )
    })?;
    let there: BTreeSet<&str> = metadata
        .topics()
        .iter()
        .filter(|topic| topic.error().is_none() && !topic.partitions().is_empty())
        .map(rdkafka::metadata::MetadataTopic::name)
        .collect();
    for topic in topics {
        if !there.contains(topic.as_str()) {
            let message =
                format!("the topic {topic} does not exist; create it, because Postrider creates none");
            return Err(Error::new(ErrorKind::NotFound, "consume", message));
        }
        let letters = group.crew.address.of(topic);
        if !there.contains(letters.as_str()) {
            tracing::warn!(group = %group.crew.group, topic, dead_letters = letters,
                "the topic for dead letters does not exist; create it, or a partition stands still when it needs it");
        }
    }
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    consumer
        .subscribe(&names)
        .map_err(|error| invalid(&format!("the topics can't be subscribed to: {error}")))
}
