//! The start of a consumer: what is wrong with it, the clients it needs, and joining its group.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use postrider_core::{Error, ErrorKind, OutboxSource, Result};
use postrider_relay::{METRICS, Metric};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use crate::client::blocking::blocking;
use crate::client::config::KafkaBuilder;
use crate::client::invalid::{invalid, refused};
use crate::client::locked_properties::{OF_CONSUMERS, broken};
use crate::consume::consumer::{Consumer, Offsets};
use crate::consume::group::Group;
use crate::consume::metrics::{CONSUMER_METRICS, ConsumerMetrics};
use crate::consume::running::RunningConsumer;
use crate::consume::worker::ConsumerShared;
use crate::produce::receipt_producer::ReceiptProducer;
use crate::produce::topic;

/// How long to wait for an answer about topics.
const PATIENCE: Duration = Duration::from_secs(5);

impl<S: OutboxSource> Consumer<S> {
    fn check(&self) -> Result<()> {
        if self.brokers.trim().is_empty() {
            return Err(invalid("the brokers must be given as host:port, separated by commas"));
        }
        if self.group.is_empty()
            || self.group.len() > postrider_core::Limits::NAME
            || self.group.contains('\0')
        {
            return Err(self.invalid("the name of a group must have 1 to 200 bytes and no NUL"));
        }
        if self.topics.is_empty() {
            return Err(self.invalid("it must have a topic; add one with topics(…)"));
        }
        if let Some(name) = self.topics.iter().find(|name| !topic::valid(name)) {
            return Err(self.invalid(&format!("{name:?} is not a valid topic name")));
        }
        self.address.check(self.topics.iter().map(String::as_str))?;
        if self.handlers.is_empty() {
            return Err(self.invalid("it must have a handler; add one with on(…)"));
        }
        self.retry.check().map_err(|error| self.invalid(error.message()))?;
        for (what, number) in [("concurrency", self.concurrency), ("records_per_poll", self.records)] {
            if number == 0 {
                return Err(self.invalid(&format!("{what} must be at least 1")));
            }
        }
        for (what, time) in [("timeout", self.timeout), ("longest_pause", self.longest_pause)] {
            if time.is_zero() {
                return Err(self.invalid(&format!("{what} must be greater than 0")));
            }
        }
        if let Some(sentence) = broken(&self.properties, OF_CONSUMERS) {
            return Err(self.invalid(&sentence));
        }
        let most = self.properties.get("max.poll.interval.ms").and_then(|time| time.parse().ok());
        if self.grace + PATIENCE >= Duration::from_millis(most.unwrap_or(300_000)) {
            return Err(self.invalid("grace must be more than 5 s shorter than max.poll.interval.ms"));
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
            // Of each partition, ahead of its worker; one answer, of at most 1 MB of a partition, comes on top.
            ("queued.max.messages.kbytes", "1024"),
            // An answer stays in memory until the last of its records is taken.
            ("fetch.max.bytes", "8388608"),
            ("statistics.interval.ms", "15000"),
        ] {
            config.set(name, value);
        }
        for (name, value) in self.security.properties() {
            config.set(name, value);
        }
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config
    }

    /// Joins the group and begins to work.
    ///
    /// *On failure*: nothing is started, and one sentence says what to do. It fails if a setting is wrong, if a topic does not exist,
    /// and if the brokers can't be reached within [`wait_for_brokers`](Consumer::wait_for_brokers). Dropping the future ends the wait.
    pub async fn start(mut self) -> Result<RunningConsumer> {
        self.check()?;
        let client = self.client();
        // What writes dead letters has the same brokers and the same login, and keeps what the sink promises.
        let letters = KafkaBuilder::for_letters(&self.brokers, &self.security, &self.properties);
        let receipt_producer = ReceiptProducer::new(letters.client())?;
        let topics: BTreeSet<String> = std::mem::take(&mut self.topics).into_iter().collect();
        let aggregates = self.handlers.aggregates();
        let sink = Arc::new(self.handlers.build(&self.source)?);
        let shared = Arc::new(ConsumerShared {
            group: self.group.as_str().into(),
            sink,
            receipt_producer,
            address: self.address,
            retry: self.retry,
            longest_pause: self.longest_pause,
            records: self.records,
            concurrency: self.concurrency,
            timeout: self.timeout,
            aggregates,
            numbered_keys: self.numbered_keys,
            on_gap: self.on_gap,
            workers: AtomicUsize::new(0),
        });
        METRICS.iter().chain(CONSUMER_METRICS).for_each(Metric::describe);
        // What counts is there at 0, so that the first of it is an increase.
        topics.iter().for_each(|topic| drop(ConsumerMetrics::new(&shared.group, topic)));
        let latest = self.offsets == Offsets::Latest;
        let starting =
            Starting { client, letters, brokers: self.brokers, topics, shared, grace: self.grace, latest };
        starting.within(self.wait_for_brokers).await
    }

    /// Runs until the future is ready, and stops then.
    pub async fn run_until(self, end: impl Future<Output = ()>) -> Result<()> {
        let mut end = std::pin::pin!(end);
        let running = tokio::select! {
            biased;
            running = self.start() => running?,
            () = &mut end => return Ok(()),
        };
        end.await;
        running.stop().await
    }
}

/// A consumer that is checked, and not yet in its group.
struct Starting {
    client: ClientConfig,
    letters: KafkaBuilder,
    brokers: String,
    topics: BTreeSet<String>,
    shared: Arc<ConsumerShared>,
    grace: Duration,
    latest: bool,
}

impl Starting {
    /// Tries until the brokers are there, for so long.
    async fn within(self, longest: Duration) -> Result<RunningConsumer> {
        let (began, mut backoff) = (Instant::now(), self.shared.backoff());
        loop {
            match self.once().await {
                Err(error) if error.kind() == ErrorKind::Unreachable && began.elapsed() < longest => {
                    let pause = backoff.next_delay().min(longest - began.elapsed().min(longest));
                    tracing::warn!(group = %self.shared.group, brokers = %self.brokers, %error, pause = ?pause,
                        "the brokers are away; the consumer starts when they are there");
                    tokio::time::sleep(pause).await;
                }
                result => return result,
            }
        }
    }

    async fn once(&self) -> Result<RunningConsumer> {
        self.letters.clone().connect().await?;
        let handle = tokio::runtime::Handle::current();
        let group = Group::new(Arc::clone(&self.shared), handle, self.grace, self.latest);
        let (client, brokers, topics) = (self.client.clone(), self.brokers.clone(), self.topics.clone());
        blocking("consume", move || {
            let created = client.create_with_context(group).map_err(|error| refused(&error))?;
            let consumer: Arc<BaseConsumer<Group>> = Arc::new(created);
            consumer.context().serves(&consumer);
            join(&consumer, &brokers, &topics)?;
            RunningConsumer::new(consumer)
        })
        .await
    }
}

/// Subscribes to topics that are there.
fn join(consumer: &BaseConsumer<Group>, brokers: &str, topics: &BTreeSet<String>) -> Result<()> {
    let group = consumer.context();
    // All of them: to ask for one may create it.
    let metadata = consumer.fetch_metadata(None, PATIENCE).map_err(|error| {
        // Why shows only to those who poll.
        while consumer.poll(Duration::ZERO).is_some() {}
        let reason = group.client_errors.sentence().unwrap_or_else(|| error.to_string());
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
        let letters = group.shared.address.of(topic);
        if !there.contains(letters.as_str()) {
            tracing::warn!(group = %group.shared.group, topic, dead_letters = letters,
                "the dead-letter topic does not exist; create it: without it, a partition stops at the first record that fails for good");
        }
    }
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    consumer.subscribe(&names).map_err(|error| invalid(&format!("can't subscribe to the topics: {error}")))
}
