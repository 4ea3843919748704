//! Where events go: `[sink.NAME]`.

mod destination;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use postrider::OptionalAttribute;
use postrider::http::{HttpBuilder, StatusRule};
use postrider::kafka::KafkaBuilder;

use super::envelope::{self, EnvelopeTable};
use super::{Problem, Section, duration};

/// The defaults: of several words, the first.
pub(crate) const KAFKA_FORMATS: [(&str, Format); 4] = [
    ("binary", Format::Binary),
    ("structured", Format::Structured),
    ("payload", Format::Payload),
    (envelope::KEY, Format::Envelope),
];
pub(crate) const TLS: bool = false;
pub(crate) const HTTP_FORMATS: [(&str, Format); 4] = [
    ("binary", Format::Binary),
    ("structured", Format::Structured),
    ("batched", Format::Batched),
    (envelope::KEY, Format::Envelope),
];
pub(crate) const HTTP_BATCH: u32 = 100;
pub(crate) const KEEP_ANSWERS: bool = HttpBuilder::KEEP_ANSWERS;

/// Where events go.
#[derive(Debug, Clone)]
pub(crate) enum Sink {
    /// `type = "kafka"`.
    Kafka(Box<KafkaSink>),
    /// `type = "http"`.
    Http(Box<HttpSink>),
    /// `type = "stdout"`.
    Stdout(AsCloudEvents),
}

/// How events are written as CloudEvents.
#[derive(Debug, Clone, Default)]
pub(crate) struct AsCloudEvents {
    /// The `source` of events that have none.
    pub(crate) source: Option<String>,
    /// What the `type` is made of.
    pub(crate) kind: Option<String>,
    /// What else is written of each event.
    pub(crate) attributes: BTreeSet<OptionalAttribute>,
    /// What the `dataschema` is made of: a template for [`CatalogFile::data_schemas`](postrider::catalog::CatalogFile::data_schemas).
    pub(crate) dataschema: Option<String>,
}

/// How events are written into messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// CloudEvents, binary.
    Binary,
    /// CloudEvents, structured.
    Structured,
    /// The payload and the event's headers.
    Payload,
    /// CloudEvents, several in one request.
    Batched,
    /// A JSON object of the user's own.
    Envelope,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Structured => "structured",
            Self::Payload => "payload",
            Self::Batched => "batched",
            Self::Envelope => envelope::KEY,
        })
    }
}

/// A Kafka cluster.
#[derive(Clone)]
pub(crate) struct KafkaSink {
    /// Its brokers.
    pub(crate) brokers: String,
    /// What a topic's name is made of.
    pub(crate) topic: String,
    /// Exceptions by type.
    pub(crate) topics: Vec<(String, String)>,
    /// The types whose events are written without a value.
    pub(crate) tombstones: Vec<String>,
    /// How events are written.
    pub(crate) format: Format,
    /// As CloudEvents.
    pub(crate) cloud_events: AsCloudEvents,
    /// As JSON of the user's own.
    pub(crate) envelope: Option<EnvelopeTable>,
    /// How long a record may wait.
    pub(crate) timeout: Duration,
    /// Whether the connection is encrypted.
    pub(crate) tls: bool,
    /// The file of an authority of one's own.
    pub(crate) authority: Option<PathBuf>,
    /// The login: mechanism, user and password.
    pub(crate) login: Option<(String, String, String)>,
    /// Properties of librdkafka.
    pub(crate) properties: Vec<(String, String)>,
}

impl fmt::Debug for KafkaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink")
            .field("brokers", &self.brokers)
            .field("topic", &self.topic)
            .field("format", &self.format)
            .field("timeout", &self.timeout)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// An endpoint.
#[derive(Clone)]
pub(crate) struct HttpSink {
    /// Its address.
    pub(crate) url: String,
    /// How events are written.
    pub(crate) format: Format,
    /// How many events a request has, where it has several.
    pub(crate) batch: usize,
    /// As CloudEvents.
    pub(crate) cloud_events: AsCloudEvents,
    /// As JSON of the user's own.
    pub(crate) envelope: Option<EnvelopeTable>,
    /// What requests are signed with.
    pub(crate) secret: Option<String>,
    /// What requests are authorised with.
    pub(crate) token: Option<String>,
    /// The file of an authority of one's own.
    pub(crate) authority: Option<PathBuf>,
    /// What a status means, where that is not the default.
    pub(crate) statuses: Vec<(u16, StatusRule)>,
    /// How long a `Retry-After` is kept to at most.
    pub(crate) longest_retry_after: Duration,
    /// Whether the beginning of an answer that is a failure is kept.
    pub(crate) keep_answers: bool,
}

impl fmt::Debug for HttpSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSink")
            .field("format", &self.format)
            .field("batch", &self.batch)
            .field("statuses", &self.statuses)
            .field("longest_retry_after", &self.longest_retry_after)
            .field("keep_answers", &self.keep_answers)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Kafka,
    Http,
    Stdout,
}

impl Sink {
    /// Reads one. What it sends must be given up well before the lease is over under which it was read.
    pub(crate) fn read(mut section: Section<'_>, lease: Duration) -> Result<Self, Problem> {
        let kinds = [("kafka", Kind::Kafka), ("http", Kind::Http), ("stdout", Kind::Stdout)];
        let Some(kind) = section.word("type", &kinds)? else {
            return Err(
                section.problem("type", "it is required; it must be \"kafka\", \"http\" or \"stdout\"")
            );
        };
        let cloud_events = AsCloudEvents {
            source: section.text("source")?,
            kind: section.text("event_type")?,
            attributes: attributes(&mut section)?,
            dataschema: dataschema(&mut section)?,
        };
        let sink = match kind {
            Kind::Stdout => Self::Stdout(cloud_events),
            Kind::Kafka => Self::Kafka(Box::new(kafka(&mut section, cloud_events, lease)?)),
            Kind::Http => Self::Http(Box::new(http(&mut section, cloud_events)?)),
        };
        section.finish()?;
        Ok(sink)
    }
}

/// The optional attributes that are written.
fn attributes(section: &mut Section<'_>) -> Result<BTreeSet<OptionalAttribute>, Problem> {
    let names = section.list("attributes")?.unwrap_or_default();
    let read = |name: String| {
        name.parse().map_err(|error: postrider::Error| section.problem("attributes", error.message()))
    };
    names.into_iter().map(read).collect()
}

/// What the `dataschema` is made of.
fn dataschema(section: &mut Section<'_>) -> Result<Option<String>, Problem> {
    let Some(template) = section.text("dataschema")? else { return Ok(None) };
    let bare =
        ["{name}", "{version}", "{hash}"].iter().fold(template.clone(), |text, name| text.replace(name, ""));
    if bare == template || bare.contains(['{', '}', ' ']) {
        let what = "it must be a URI with {hash}, {name} or {version} in it, as in \"urn:sha256:{hash}\"";
        return Err(section.problem("dataschema", what));
    }
    Ok(Some(template))
}

fn kafka(
    section: &mut Section<'_>,
    cloud_events: AsCloudEvents,
    lease: Duration,
) -> Result<KafkaSink, Problem> {
    let format = section.word("format", &KAFKA_FORMATS)?.unwrap_or(KAFKA_FORMATS[0].1);
    let sink = KafkaSink {
        brokers: section.need("brokers", "127.0.0.1:9092")?,
        topic: section.text("topic")?.unwrap_or_else(|| KafkaBuilder::TOPIC.to_owned()),
        topics: section.texts("topics")?,
        tombstones: section.list("tombstones")?.unwrap_or_default(),
        format,
        cloud_events,
        envelope: EnvelopeTable::read(section, format == Format::Envelope)?,
        timeout: section.duration("send_timeout")?.unwrap_or(KafkaBuilder::SEND_TIMEOUT.min(lease / 3)),
        tls: section.parsed("tls", "true or false")?.unwrap_or(TLS),
        authority: section.text("authority")?.map(PathBuf::from),
        login: login(section)?,
        properties: section.texts("properties")?,
    };
    if sink.timeout.is_zero() {
        return Err(section.problem("send_timeout", "it must be greater than 0"));
    }
    let most = lease * 2 / 5;
    if sink.timeout > most {
        let what = format!(
            "{} is too long for relay.lease = {}: a relay that lost its lease must not go on sending; set send_timeout to \
             {} or less, or relay.lease to {} or more",
            duration::show(sink.timeout),
            duration::show(lease),
            duration::show(most),
            duration::show(sink.timeout * 5 / 2)
        );
        return Err(section.problem("send_timeout", what));
    }
    Ok(sink)
}

fn login(section: &mut Section<'_>) -> Result<Option<(String, String, String)>, Problem> {
    let mechanisms =
        [("plain", "PLAIN"), ("scram-sha-256", "SCRAM-SHA-256"), ("scram-sha-512", "SCRAM-SHA-512")];
    let mechanism = section.word("login", &mechanisms)?;
    match (section.text("user")?, section.text("password")?) {
        (Some(user), Some(password)) => {
            Ok(Some((mechanism.unwrap_or("SCRAM-SHA-256").to_owned(), user, password)))
        }
        (None, None) if mechanism.is_none() => Ok(None),
        (None, _) => Err(section.problem("user", "it is required together with password and login")),
        (_, None) => {
            Err(section.problem("password", "it is required; for example password = \"env:KAFKA_PASSWORD\""))
        }
    }
}

fn http(section: &mut Section<'_>, cloud_events: AsCloudEvents) -> Result<HttpSink, Problem> {
    let format = section.word("format", &HTTP_FORMATS)?.unwrap_or(HTTP_FORMATS[0].1);
    let sink = HttpSink {
        url: section.need("url", "https://example.org/events")?,
        format,
        batch: section.parsed("batch", "a number of events, 1 or more")?.unwrap_or(HTTP_BATCH as usize),
        cloud_events,
        envelope: EnvelopeTable::read(section, format == Format::Envelope)?,
        secret: section.text("secret")?,
        token: section.text("token")?,
        authority: section.text("authority")?.map(PathBuf::from),
        statuses: statuses(section)?,
        longest_retry_after: section
            .duration("longest_retry_after")?
            .unwrap_or(HttpBuilder::LONGEST_RETRY_AFTER),
        keep_answers: section.parsed("keep_answers", "true or false")?.unwrap_or(KEEP_ANSWERS),
    };
    if sink.batch == 0 {
        return Err(section.problem("batch", "it must be 1 or more"));
    }
    if sink.longest_retry_after.is_zero() {
        return Err(section.problem("longest_retry_after", "it must be greater than 0"));
    }
    Ok(sink)
}

/// What each status means.
fn statuses(section: &mut Section<'_>) -> Result<Vec<(u16, StatusRule)>, Problem> {
    let table = section.texts("statuses")?;
    let blame = |(status, word): (String, String)| {
        // Written in one way only, so that no status has two meanings.
        let plain = |number: &u16| (300..600).contains(number) && number.to_string() == status;
        let number = status.parse().ok().filter(plain);
        let number = number.ok_or_else(|| {
            let what = "it must be a status from 300 to 599, as in statuses = { 404 = \"event\" }; 2xx always means delivered";
            section.problem(&format!("statuses.{status}"), what)
        })?;
        match word.as_str() {
            "endpoint" => Ok((number, StatusRule::Endpoint)),
            "event" => Ok((number, StatusRule::Event)),
            "retry" => Ok((number, StatusRule::Retry)),
            "reject" => Ok((number, StatusRule::Reject)),
            _ => {
                let what =
                    format!("it must be \"endpoint\", \"event\", \"retry\" or \"reject\", not {word:?}");
                Err(section.problem(&format!("statuses.{status}"), what))
            }
        }
    };
    table.into_iter().map(blame).collect()
}
