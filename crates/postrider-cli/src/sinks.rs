//! The sinks that the settings describe.

use std::path::Path;

use postrider::catalog::CatalogFile;
use postrider::http::{Http, HttpBuilder, Secret};
use postrider::kafka::{DeadLetters, Kafka, KafkaBuilder, Mechanism};
use postrider::store::{DataSchemas, Lines, OutboxSource, Template};
use postrider::{CloudEvents, Subscriber};

use crate::config::sink::{AsCloudEvents, Format, HttpSink, KafkaSink};
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
            Sink::Stdout(cloud_events) => events(name, cloud_events, catalog).map(drop),
            Sink::Kafka(kafka) => {
                kafka_of(name, kafka, catalog)?.check().map_err(|error| of_kafka(name, kafka, &error))
            }
            Sink::Http(http) => http_of(name, http, catalog).map(drop),
        }
    }

    /// Makes the sink of that name. Whether its destination answers shows later: a relay starts without it.
    pub(crate) fn make(config: &Config, name: &str, sink: &Sink) -> Result<Self, Problem> {
        let catalog = config.catalog.file.as_path();
        Ok(match sink {
            Sink::Stdout(cloud_events) => Self::Lines(Lines::stdout(events(name, cloud_events, catalog)?)),
            Sink::Kafka(kafka) => {
                let made = kafka_of(name, kafka, catalog)?.build();
                let made = made.map_err(|error| of_kafka(name, kafka, &error))?;
                Self::Kafka(Box::new(made))
            }
            Sink::Http(http) => Self::Http(Box::new(http_of(name, http, catalog)?)),
        })
    }

    /// Gives it to a subscription.
    pub(crate) fn give<S: OutboxSource>(self, subscriber: Subscriber<S>) -> Subscriber<S> {
        match self {
            Self::Kafka(sink) => subscriber.sink(*sink),
            Self::Http(sink) => subscriber.sink(*sink),
            Self::Lines(sink) => subscriber.sink(sink),
        }
    }
}

/// A problem with a sink: with the first of these settings that alone gives the same error, or else with the sink as a whole.
fn of<T>(
    name: &str,
    error: &postrider::Error,
    alone: impl IntoIterator<Item = (&'static str, postrider::Result<T>)>,
) -> Problem {
    let same = |result: &postrider::Result<T>| {
        result.as_ref().is_err_and(|alone| alone.message() == error.message())
    };
    let setting = alone.into_iter().find(|(_, result)| same(result));
    let setting = setting.map(|(setting, _)| format!(".{setting}")).unwrap_or_default();
    Problem::of(format!("sink.{name}{setting}"), error.message())
}

fn of_kafka(name: &str, sink: &KafkaSink, error: &postrider::Error) -> Problem {
    let builder = || Kafka::builder(&sink.brokers);
    let authority = sink.authority.as_ref().map(|file| ("authority", builder().tls_authority(file).check()));
    of(name, error, [("brokers", builder().check())].into_iter().chain(authority))
}

fn of_http(name: &str, sink: &HttpSink, error: &postrider::Error) -> Problem {
    let build = |builder: HttpBuilder| builder.build(&sink.url);
    let token = sink.token.as_ref().map(|token| ("token", build(Http::builder().bearer(token))));
    let authority = sink.authority.as_ref().map(|file| ("authority", build(Http::builder().authority(file))));
    of(name, error, [("url", build(Http::builder()))].into_iter().chain(token).chain(authority))
}

fn events(name: &str, cloud_events: &AsCloudEvents, catalog: &Path) -> Result<CloudEvents, Problem> {
    let template = cloud_events.kind.as_deref().map(Template::parse).transpose();
    let template =
        template.map_err(|error| Problem::of(format!("sink.{name}.event_type"), error.message()))?;
    let (source, optional) = (cloud_events.source.clone(), cloud_events.attributes.clone());
    let data_schemas = match &cloud_events.dataschema {
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

/// Refuses a `dataschema` where there is no attribute to write it to.
fn without_attributes(name: &str, format: Format, events: &AsCloudEvents) -> Result<(), Problem> {
    let written = match format {
        Format::Payload => "a bare payload",
        Format::Envelope => "an envelope",
        Format::Binary | Format::Structured | Format::Batched => return Ok(()),
    };
    if events.dataschema.is_none() {
        return Ok(());
    }
    let what = format!("{written} has no attributes; leave it out, or set another format");
    Err(Problem::of(format!("sink.{name}.dataschema"), what))
}

fn kafka_of(name: &str, sink: &KafkaSink, catalog: &Path) -> Result<KafkaBuilder, Problem> {
    use postrider::kafka::Format as Written;
    without_attributes(name, sink.format, &sink.cloud_events)?;
    let format = match sink.format {
        Format::Structured | Format::Batched => Written::Structured,
        Format::Payload => Written::Payload,
        Format::Binary | Format::Envelope => Written::Binary,
    };
    let mut builder = Kafka::builder(&sink.brokers)
        .topic(&sink.topic)
        .format(format)
        .events(events(name, &sink.cloud_events, catalog)?)
        .send_timeout(sink.timeout);
    if let Some(table) = &sink.envelope {
        builder = builder.envelope(table.envelope.clone());
    }
    for (event_type, topic) in &sink.topics {
        builder = builder.topic_of(event_type, topic);
    }
    for event_type in &sink.tombstones {
        builder = builder.tombstone_of(event_type);
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
    without_attributes(name, sink.format, &sink.cloud_events)?;
    let format = match sink.format {
        Format::Structured => Written::Structured,
        Format::Batched => Written::Batched(sink.batch),
        Format::Binary | Format::Payload | Format::Envelope => Written::Binary,
    };
    let mut builder = Http::builder()
        .format(format)
        .events(events(name, &sink.cloud_events, catalog)?)
        .longest_retry_after(sink.longest_retry_after)
        .keep_answers(sink.keep_answers);
    if let Some(table) = &sink.envelope {
        builder = builder.envelope(table.envelope.clone());
    }
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
    builder.build(&sink.url).map_err(|error| of_http(name, sink, &error))
}
