//! The destinations: whether each of them takes a connection.

use postrider::store::LoggedEvent;

use super::finding::Finding;
use super::topics;
use crate::config::{Config, Sink};
use crate::sinks::Ready;

/// What is wrong with each sink, and with the topics behind it.
pub(super) async fn examine(config: &Config, events: Option<&[LoggedEvent]>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, sink) in &config.sinks {
        let about = format!("sink {name}");
        let ready = match Ready::make(config, name, sink) {
            Ok(ready) => ready,
            Err(problem) => {
                findings.push(Finding::bad_as_it_says(about, problem.to_string()));
                continue;
            }
        };
        match (ready, sink) {
            (Ready::Kafka(kafka), Sink::Kafka(settings)) => match kafka.check().await {
                Ok(()) => {
                    findings.push(Finding::good(about, format!("the brokers {} answer", settings.brokers)));
                    let wanted = topics::wanted(config, name, settings, &kafka, events);
                    findings.extend(topics::examine(name, &kafka, wanted).await);
                }
                Err(error) => findings.push(unreachable(about, &error)),
            },
            (Ready::Http(http), _) => findings.push(match http.check().await {
                Ok(()) => Finding::good(about, "the endpoint accepts connections"),
                Err(error) => unreachable(about, &error),
            }),
            _ => findings.push(Finding::good(about, "it is standard output")),
        }
    }
    findings
}

fn unreachable(about: String, error: &postrider::Error) -> Finding {
    Finding::bad(about, error.message(), "fix this; its events wait until then, and none is lost")
}
