//! The sinks that the settings describe.

use std::path::Path;

use postrider::catalog::CatalogFile;
use postrider::http::{Http, Secret};
use postrider::kafka::{DeadLetters, Kafka, KafkaBuilder, Mechanism};
use postrider::store::Source;
use postrider::{CloudEvents, DataSchemas, Lines, Subscriber, Template};

use crate::config::sink::{Envelope, Format, HttpSink, KafkaSink};
use crate::config::{Config, Problem, Sink};

/// A sink that is ready.
pub(crate) enum Ready {
    Kafka(Box<Kafka>),
    Http(Box<Http>),
    Lines(Lines),
}

impl Ready {
    /// Whether the sink of that name can be made. Nobody is asked, and nothing is started.
    pub(crate) fn check(config: &Config, name: &str, sink: &Sink) -> Result<(), Problem> {
        let catalog = config.catalog.file.as_path();
        match sink {
            Sink::Stdout(envelope) => events(name, envelope, catalog).map(drop),
            Sink::Kafka(kafka) => kafka_of(name, kafka, catalog)?.check().map_err(|error| of(name, &error)),
            Sink::Http(http) => http_of(name, http, catalog).map(drop),
        }
    }

    /// Makes the sink of that name. Whether its destination answers shows later: a relay starts without it.
    pub(crate) fn make(config: &Config, name: &str, sink: &Sink) -> Result<Self, Problem> {
        let catalog = config.catalog.file.as_path();
        Ok(match sink {
            Sink::Stdout(envelope) => Self::Lines(Lines::stdout(events(name, envelope, catalog)?)),
            Sink::Kafka(kafka) => {
                let made = kafka_of(name, kafka, catalog)?.build().map_err(|error| of(name, &error))?;
                Self::Kafka(Box::new(made))
            }
            Sink::Http(http) => Self::Http(Box::new(http_of(name, http, catalog)?)),
        })
    }

    /// Gives it to a subscription.
    pub(crate) fn give<S: Source>(self, subscriber: Subscriber<S>) -> Subscriber<S> {
        match self {
            Self::Kafka(sink) => subscriber.sink(*sink),
            Self::Http(sink) => subscriber.sink(*sink),
            Self::Lines(sink) => subscriber.sink(sink),
        }
    }
}

/// A problem with a sink.
fn of(name: &str, error: &postrider::Error) -> Problem {
    Problem::of(format!("sink.{name}"), error.message())
}

fn events(name: &str, envelope: &Envelope, catalog: &Path) -> Result<CloudEvents, Problem> {
    let template = envelope.kind.as_deref().map(Template::parse).transpose();
    let template =
        template.map_err(|error| Problem::of(format!("sink.{name}.event_type"), error.message()))?;
    let (source, optional) = (envelope.source.clone(), envelope.attributes.clone());
    let data_schemas = match &envelope.dataschema {
        Some(template) => data_schemas(name, template, catalog)?,
        None => DataSchemas::default(),
    };
    Ok(CloudEvents { source, type_template: template, optional, data_schemas })
}

/// The `dataschema` of the events in the catalog file.
fn data_schemas(name: &str, template: &str, catalog: &Path) -> Result<DataSchemas, Problem> {
    let wrong = |what: String| Problem::of(format!("sink.{name}.dataschema"), what);
    let file = catalog.display();
    let text = std::fs::read_to_string(catalog).map_err(|error| {
        wrong(format!("it needs the catalog {file}, which can't be read: {error}; set catalog.file"))
    })?;
    let read = CatalogFile::parse(&text).map_err(|error| wrong(format!("{file}: {}", error.message())))?;
    Ok(read.data_schemas(template))
}

fn kafka_of(name: &str, sink: &KafkaSink, catalog: &Path) -> Result<KafkaBuilder, Problem> {
    use postrider::kafka::Format as Written;
    if sink.format == Format::Payload && sink.envelope.dataschema.is_some() {
        let what = "a bare payload has no attributes; leave it out, or set another format";
        return Err(Problem::of(format!("sink.{name}.dataschema"), what));
    }
    let format = match sink.format {
        Format::Structured | Format::Batched => Written::Structured,
        Format::Payload => Written::Payload,
        Format::Binary => Written::Binary,
    };
    let mut builder = Kafka::builder(&sink.brokers)
        .topic(&sink.topic)
        .format(format)
        .events(events(name, &sink.envelope, catalog)?)
        .send_timeout(sink.timeout);
    for (event_type, topic) in &sink.topics {
        builder = builder.topic_of(event_type, topic);
    }
    if let Some((mechanism, user, password)) = &sink.login {
        builder = builder.sasl(mechanism_of(mechanism), user, password);
    }
    if sink.tls {
        builder = builder.tls();
    }
    if let Some(authority) = &sink.authority {
        builder = builder.tls_authority(authority);
    }
    for (property, value) in &sink.properties {
        builder = builder.property(property, value);
    }
    Ok(builder)
}

fn mechanism_of(name: &str) -> Mechanism {
    match name {
        "PLAIN" => Mechanism::Plain,
        "SCRAM-SHA-512" => Mechanism::ScramSha512,
        _ => Mechanism::ScramSha256,
    }
}

/// The dead letters of a group on the brokers of a sink, with its login and its TLS.
pub(crate) fn letters_of(sink: &KafkaSink, group: &str) -> DeadLetters {
    let mut letters = DeadLetters::new(&sink.brokers, group);
    if let Some((mechanism, user, password)) = &sink.login {
        letters = letters.sasl(mechanism_of(mechanism), user, password);
    }
    if sink.tls {
        letters = letters.tls();
    }
    if let Some(authority) = &sink.authority {
        letters = letters.tls_authority(authority);
    }
    sink.properties.iter().fold(letters, |letters, (property, value)| letters.property(property, value))
}

fn http_of(name: &str, sink: &HttpSink, catalog: &Path) -> Result<Http, Problem> {
    use postrider::http::Format as Written;
    let format = match sink.format {
        Format::Structured => Written::Structured,
        Format::Batched => Written::Batched(sink.batch),
        Format::Binary | Format::Payload => Written::Binary,
    };
    let mut builder = Http::builder()
        .format(format)
        .events(events(name, &sink.envelope, catalog)?)
        .longest_retry_after(sink.longest_retry_after)
        .keep_answers(sink.keep_answers);
    for (status, blame) in &sink.statuses {
        builder = builder.status(*status, *blame);
    }
    if let Some(secret) = &sink.secret {
        let secret = Secret::parse(secret)
            .map_err(|error| Problem::of(format!("sink.{name}.secret"), error.message()))?;
        builder = builder.sign(secret);
    }
    if let Some(token) = &sink.token {
        builder = builder.bearer(token);
    }
    if let Some(authority) = &sink.authority {
        builder = builder.authority(authority);
    }
    builder.build(&sink.url).map_err(|error| of(name, &error))
}
