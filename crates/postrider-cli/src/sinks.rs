//! The sinks that the settings describe.

use postrider::http::{Http, Secret};
use postrider::kafka::{Kafka, Mechanism};
use postrider::{CloudEvents, Lines, Source, Subscriber, Template};

use crate::Failure;
use crate::config::sink::{Envelope, Format, HttpSink, KafkaSink};
use crate::config::{Problem, Sink};

/// A sink that is ready.
pub(crate) enum Ready {
    Kafka(Box<Kafka>),
    Http(Box<Http>),
    Lines(Lines),
}

impl Ready {
    /// Makes the sink of that name. Whether its destination answers shows later: a relay starts without it.
    pub(crate) fn make(name: &str, sink: &Sink) -> Result<Self, Failure> {
        let of = |error: &dyn std::fmt::Display| Problem::new(format!("sink.{name}: {error}"));
        match sink {
            Sink::Stdout(envelope) => Ok(Self::Lines(Lines::stdout(events(name, envelope)?))),
            Sink::Kafka(kafka) => {
                let made = kafka_of(name, kafka)?.map_err(|error| of(&error.message()))?;
                Ok(Self::Kafka(Box::new(made)))
            }
            Sink::Http(http) => {
                let made = http_of(name, http)?.map_err(|error| of(&error.message()))?;
                Ok(Self::Http(Box::new(made)))
            }
        }
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

fn events(name: &str, envelope: &Envelope) -> Result<CloudEvents, Problem> {
    let template = envelope.kind.as_deref().map(Template::parse).transpose();
    let template =
        template.map_err(|error| Problem::new(format!("sink.{name}.event_type: {}", error.message())))?;
    Ok(CloudEvents { source: envelope.source.clone(), type_template: template })
}

fn kafka_of(name: &str, sink: &KafkaSink) -> Result<postrider::Result<Kafka>, Problem> {
    use postrider::kafka::Format as Written;
    let format = match sink.format {
        Format::Structured | Format::Batched => Written::Structured,
        Format::Payload => Written::Payload,
        Format::Binary => Written::Binary,
    };
    let mut builder = Kafka::builder(&sink.brokers)
        .topic(&sink.topic)
        .format(format)
        .events(events(name, &sink.envelope)?)
        .send_timeout(sink.timeout);
    for (event_type, topic) in &sink.topics {
        builder = builder.topic_of(event_type, topic);
    }
    if let Some((mechanism, user, password)) = &sink.login {
        let mechanism = match mechanism.as_str() {
            "PLAIN" => Mechanism::Plain,
            "SCRAM-SHA-512" => Mechanism::ScramSha512,
            _ => Mechanism::ScramSha256,
        };
        builder = builder.sasl(mechanism, user, password);
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
    Ok(builder.build())
}

fn http_of(name: &str, sink: &HttpSink) -> Result<postrider::Result<Http>, Problem> {
    use postrider::http::Format as Written;
    let format = match sink.format {
        Format::Structured => Written::Structured,
        Format::Batched => Written::Batched(sink.batch),
        Format::Binary | Format::Payload => Written::Binary,
    };
    let mut builder = Http::builder().format(format).events(events(name, &sink.envelope)?);
    if let Some(secret) = &sink.secret {
        let secret = Secret::parse(secret)
            .map_err(|error| Problem::new(format!("sink.{name}.secret: {}", error.message())))?;
        builder = builder.sign(secret);
    }
    if let Some(token) = &sink.token {
        builder = builder.bearer(token);
    }
    Ok(builder.build(&sink.url))
}
