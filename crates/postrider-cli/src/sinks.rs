//! The sinks that the settings describe.

use postrider::http::{Http, Secret};
use postrider::kafka::{Kafka, KafkaBuilder, Mechanism};
use postrider::store::Source;
use postrider::{CloudEvents, Lines, Subscriber, Template};

use crate::config::sink::{Envelope, Format, HttpSink, KafkaSink};
use crate::config::{Problem, Sink};

/// A sink that is ready.
pub(crate) enum Ready {
    Kafka(Box<Kafka>),
    Http(Box<Http>),
    Lines(Lines),
}

impl Ready {
    /// Whether the sink of that name can be made. Nobody is asked, and nothing is started.
    pub(crate) fn check(name: &str, sink: &Sink) -> Result<(), Problem> {
        match sink {
            Sink::Stdout(envelope) => events(name, envelope).map(drop),
            Sink::Kafka(kafka) => kafka_of(name, kafka)?.check().map_err(|error| of(name, &error)),
            Sink::Http(http) => http_of(name, http).map(drop),
        }
    }

    /// Makes the sink of that name. Whether its destination answers shows later: a relay starts without it.
    pub(crate) fn make(name: &str, sink: &Sink) -> Result<Self, Problem> {
        Ok(match sink {
            Sink::Stdout(envelope) => Self::Lines(Lines::stdout(events(name, envelope)?)),
            Sink::Kafka(kafka) => {
                let made = kafka_of(name, kafka)?.build().map_err(|error| of(name, &error))?;
                Self::Kafka(Box::new(made))
            }
            Sink::Http(http) => Self::Http(Box::new(http_of(name, http)?)),
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

fn events(name: &str, envelope: &Envelope) -> Result<CloudEvents, Problem> {
    let template = envelope.kind.as_deref().map(Template::parse).transpose();
    let template =
        template.map_err(|error| Problem::of(format!("sink.{name}.event_type"), error.message()))?;
    let (source, optional) = (envelope.source.clone(), envelope.attributes.clone());
    Ok(CloudEvents { source, type_template: template, optional })
}

fn kafka_of(name: &str, sink: &KafkaSink) -> Result<KafkaBuilder, Problem> {
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
    Ok(builder)
}

fn http_of(name: &str, sink: &HttpSink) -> Result<Http, Problem> {
    use postrider::http::Format as Written;
    let format = match sink.format {
        Format::Structured => Written::Structured,
        Format::Batched => Written::Batched(sink.batch),
        Format::Binary | Format::Payload => Written::Binary,
    };
    let mut builder = Http::builder()
        .format(format)
        .events(events(name, &sink.envelope)?)
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
