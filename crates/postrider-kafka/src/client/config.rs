//! The settings of a Kafka sink, and what of librdkafka's may not be changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use postrider_core::{CloudEvents, Envelope, OptionalAttribute, Recorded, Result};
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::message::OwnedHeaders;

use crate::client::invalid::{invalid, refused};
use crate::client::locked_properties::{OF_PRODUCERS, broken};
use crate::client::security::{Security, security_methods, without_tls};
use crate::produce::record::{self, Format};
use crate::produce::sink::Kafka;
use crate::produce::topic::Topics;

/// Makes a [`Kafka`] sink.
///
/// ```no_run
/// use std::time::Duration;
///
/// use postrider_kafka::{Format, Kafka};
///
/// # async fn example() -> postrider::Result<()> {
/// let kafka = Kafka::builder("broker-1:9092,broker-2:9092")
///     .topic("{stream}-events")
///     .topic_of("OrderPaid", "payments")
///     .format(Format::Structured)
///     .send_timeout(Duration::from_secs(5))
///     .property("compression.type", "zstd")
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct KafkaBuilder {
    pub(crate) brokers: String,
    pub(crate) topic: String,
    pub(crate) topics: HashMap<String, String>,
    pub(crate) format: Format,
    pub(crate) events: CloudEvents,
    pub(crate) envelope: Option<Envelope>,
    pub(crate) tombstones: BTreeSet<String>,
    pub(crate) timeout: Duration,
    pub(crate) security: Security,
    pub(crate) properties: BTreeMap<String, String>,
}

impl KafkaBuilder {
    /// The default template of a topic's name.
    pub const TOPIC: &str = "{stream}";

    /// The default time in which Kafka must acknowledge a batch.
    pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);

    pub(crate) fn new(brokers: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            topic: Self::TOPIC.to_owned(),
            topics: HashMap::new(),
            format: Format::default(),
            events: CloudEvents::default(),
            envelope: None,
            tombstones: BTreeSet::new(),
            timeout: Self::SEND_TIMEOUT,
            security: Security::default(),
            properties: BTreeMap::new(),
        }
    }

    /// What writes dead letters: what was read is written again, with a little more; the topic itself says how large a
    /// record may be.
    pub(crate) fn for_letters(
        brokers: &str,
        security: &Security,
        properties: &BTreeMap<String, String>,
    ) -> Self {
        let mut settings = Self::new(brokers).property("message.max.bytes", "100000000");
        // Room for one of them, and more.
        settings = settings.property("queue.buffering.max.kbytes", "262144");
        settings.security = security.clone();
        settings.properties.extend(properties.clone());
        settings
    }

    /// The template of the topic name: see [`Template`](postrider_core::Template); by default `{stream}`.
    #[must_use]
    pub fn topic(mut self, template: impl Into<String>) -> Self {
        self.topic = template.into();
        self
    }

    /// Sends events of a type to this topic, instead of the one of the template.
    #[must_use]
    pub fn topic_of(mut self, event_type: impl Into<String>, topic: impl Into<String>) -> Self {
        self.topics.insert(event_type.into(), topic.into());
        self
    }

    /// How events are written into records; by default binary.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Writes this JSON object as the value of each record, instead of the [format](KafkaBuilder::format). The headers of a
    /// record are `content-type: application/json` and the event's `traceparent`. A [`Consumer`](crate::Consumer) does not read such
    /// records: it reads CloudEvents and bare payloads. Attributes are refused.
    #[must_use]
    pub fn envelope(mut self, envelope: Envelope) -> Self {
        self.envelope = Some(envelope);
        self
    }

    /// Writes events of this type as tombstones: records without a value, so that a compacted topic forgets the key. The headers
    /// describe the event, as in the binary format, or as in the payload format if that is set. A [`Consumer`](crate::Consumer)
    /// passes the event to its handler with the payload `null`. The recorded payload is not written to the topic.
    #[must_use]
    pub fn tombstone_of(mut self, event_type: impl Into<String>) -> Self {
        self.tombstones.insert(event_type.into());
        self
    }

    /// How events are written as CloudEvents. [Attributes](KafkaBuilder::attributes) that were set before stay set.
    #[must_use]
    pub fn events(mut self, events: CloudEvents) -> Self {
        self.events = events.with_optional(self.events.optional);
        self
    }

    /// Also writes these optional attributes; by default none. [`CloudEvents::each`] lists those that are always written.
    /// [`Format::Payload`] has no attributes, so it refuses them.
    #[must_use]
    pub fn attributes(mut self, attributes: impl IntoIterator<Item = OptionalAttribute>) -> Self {
        self.events = self.events.with_optional(attributes);
        self
    }

    /// How long Kafka may take to acknowledge a batch before the brokers count as unavailable; by default 10 s. It must be at
    /// most two fifths of the relay's lease: a process that stood still must not send its old batch after another relay has
    /// taken over.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    security_methods!();

    /// Sets a property of librdkafka; it overrides the other settings. One that would break a promise is refused.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// Checks whether a sink can be made with these settings. Connects to nothing and starts nothing.
    pub fn check(&self) -> Result<()> {
        self.checked().map(drop)
    }

    /// Makes the sink without waiting for the brokers; [`connect`](KafkaBuilder::connect) waits for them.
    pub fn build(self) -> Result<Kafka> {
        let topics = self.checked()?;
        Kafka::new(self, topics)
    }

    /// The topics, once all that can be wrong with the settings themselves is not.
    pub(crate) fn checked(&self) -> Result<Topics> {
        if self.brokers.trim().is_empty() {
            return Err(invalid("the brokers must be given as host:port, separated by commas"));
        }
        let without = match (&self.envelope, self.format) {
            (Some(_), _) => Some("envelope"),
            (None, Format::Payload) => Some("payload"),
            (None, Format::Binary | Format::Structured) => None,
        };
        if let (Some(format), Some(attribute)) = (without, self.events.optional.first()) {
            return Err(invalid(&format!(
                "the attribute {:?} can't be written: a record of the format {format} has no CloudEvents attributes; leave the \
                 attributes out, or use the format binary or structured",
                attribute.as_str()
            )));
        }
        if let Some(sentence) = broken(&self.properties, OF_PRODUCERS) {
            return Err(invalid(&sentence));
        }
        if !cfg!(feature = "tls") {
            without_tls(&self.asked())?;
        }
        if let Some(file) = self.security.authority.as_ref().filter(|file| !file.is_file()) {
            return Err(invalid(&format!("the CA certificate {} is not a file", file.display())));
        }
        self.client().create_native_config().map_err(|error| refused(&error))?;
        Topics::new(&self.topic, self.topics.clone())
    }

    /// Makes the sink once the brokers have answered. *On failure*: the error says what is wrong: the address, the
    /// login or a certificate.
    pub async fn connect(self) -> Result<Kafka> {
        let kafka = self.build()?;
        kafka.check().await?;
        Ok(kafka)
    }

    /// The value and the headers of an event's record. A tombstone has no value.
    pub(crate) fn record<'e>(&self, event: &'e Recorded) -> (Option<Cow<'e, [u8]>>, OwnedHeaders) {
        if self.tombstones.contains(&*event.event_type) {
            let format = if self.format == Format::Payload { Format::Payload } else { Format::Binary };
            return (None, format.headers(&self.events, event));
        }
        match &self.envelope {
            Some(envelope) => {
                let value = envelope.to_json(&self.events, event).into_bytes();
                (Some(Cow::Owned(value)), record::beside_envelope(event))
            }
            None => (Some(self.format.value(&self.events, event)), self.format.headers(&self.events, event)),
        }
    }

    /// What the client is made with, for benchmarks that compare.
    #[doc(hidden)]
    pub fn client(&self) -> ClientConfig {
        // Batches are taken back as a whole when their time is over, before the client would begin to. It does for a process
        // that stood still: what it wakes up with is too old to be sent.
        let millis = (self.timeout.as_millis().max(1) * 3 / 2 + 1).to_string();
        let mut config = ClientConfig::new();
        // Of a connection that is closed only the log tells.
        let asked = self.properties.contains_key("debug");
        config.set_log_level(if asked { RDKafkaLogLevel::Debug } else { RDKafkaLogLevel::Info });
        for (name, value) in [
            ("bootstrap.servers", self.brokers.as_str()),
            ("client.id", "postrider"),
            ("enable.idempotence", "true"),
            ("acks", "all"),
            ("enable.gapless.guarantee", "true"),
            ("message.timeout.ms", &millis),
            // Sooner than anybody gives up: a broker that is gone is found out by its silence.
            ("request.timeout.ms", "5000"),
            ("socket.timeout.ms", "10000"),
            ("reconnect.backoff.ms", "50"),
            ("reconnect.backoff.max.ms", "1000"),
            // Topics are looked for before anything is sent: one that vanishes then is gone, and holds up no other.
            ("topic.metadata.propagation.max.ms", "0"),
            ("linger.ms", "1"),
            ("queue.buffering.max.messages", "200000"),
            ("queue.buffering.max.kbytes", "65536"),
            // As Java's clients do: a key has one partition, whoever writes.
            ("partitioner", "murmur2_random"),
            ("allow.auto.create.topics", "false"),
        ] {
            config.set(name, value);
        }
        for (name, value) in self.asked() {
            config.set(name, value);
        }
        config
    }

    /// What was asked for, as properties of librdkafka.
    fn asked(&self) -> BTreeMap<String, String> {
        let named = self.security.properties().into_iter().map(|(name, value)| (name.to_owned(), value));
        named.chain(self.properties.clone()).collect()
    }

    /// The same over TLS for somebody without a name, who does not mind the brokers' names either: to find out what is
    /// wrong with a certificate. It knows no password.
    pub(crate) fn nameless(&self) -> Self {
        let mut other = self.clone();
        other.security.sasl = None;
        other.properties.retain(|name, _| !name.starts_with("sasl."));
        other.property("security.protocol", "SSL").property("ssl.endpoint.identification.algorithm", "none")
    }
}

/// Without the values of properties: any of them may be a secret.
impl fmt::Debug for KafkaBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaBuilder")
            .field("brokers", &self.brokers)
            .field("topic", &self.topic)
            .field("topics", &self.topics)
            .field("format", &self.format)
            .field("envelope", &self.envelope)
            .field("timeout", &self.timeout)
            .field("security", &self.security)
            .field("properties", &self.properties.keys())
            .finish_non_exhaustive()
    }
}
