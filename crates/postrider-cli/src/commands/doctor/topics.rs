//! The topics that events go to: whether they are there, and kept on enough brokers.

use std::collections::{BTreeMap, BTreeSet};

use postrider::kafka::{Kafka, TopicHealth};
use postrider::store::{Filter, LoggedEvent, Pattern};

use super::finding::Finding;
use crate::config::sink::KafkaSink;
use crate::config::{Config, SubscriptionSection};

/// C13: on three brokers, of which two must have a record before it counts as written.
const REPLICAS: usize = 3;
const LEAST: usize = 2;

/// The topics that are in use, each with what goes there; and what can't go anywhere.
#[derive(Default)]
pub(super) struct Wanted {
    topics: BTreeMap<String, String>,
    nowhere: BTreeMap<String, String>,
}

/// The topics that a sink's subscriptions use: those that are named in the settings, and those that the newest events go to.
pub(super) fn wanted(
    config: &Config,
    name: &str,
    settings: &KafkaSink,
    kafka: &Kafka,
    events: Option<&[LoggedEvent]>,
) -> Wanted {
    let filters: Vec<Filter> =
        config.readers.iter().filter(|reader| reader.sink == name).map(filter).collect();
    let mut wanted = Wanted::default();
    for (event_type, topic) in &settings.topics {
        wanted.topics.insert(topic.clone(), format!("{event_type}, by sink.{name}.topics"));
    }
    if !settings.topic.contains('{') && !filters.is_empty() {
        wanted.topics.insert(settings.topic.clone(), format!("sink.{name}.topic"));
    }
    for logged in events.unwrap_or_default().iter().filter(|logged| !logged.archived) {
        let event = &logged.event;
        if !filters.iter().any(|filter| filter.wants(&event.stream, &event.event_type)) {
            continue;
        }
        match kafka.topic_of(event) {
            Ok(topic) => wanted.topics.entry(topic).or_insert_with(|| event.event_type.to_string()),
            Err(error) => wanted
                .nowhere
                .entry(event.event_type.to_string())
                .or_insert_with(|| error.message().to_owned()),
        };
    }
    wanted
}

fn filter(reader: &SubscriptionSection) -> Filter {
    let patterns = |texts: &[String]| texts.iter().map(Pattern::new).collect();
    Filter { streams: patterns(&reader.streams), types: patterns(&reader.types) }
}

/// What is wrong with them.
pub(super) async fn examine(name: &str, kafka: &Kafka, wanted: Wanted) -> Vec<Finding> {
    let mut findings: Vec<Finding> = wanted
        .nowhere
        .iter()
        .map(|(event_type, why)| {
            let remedy =
                format!("give {event_type} a topic in sink.{name}.topics, or change sink.{name}.topic");
            Finding::bad(format!("topic of {event_type}"), why, remedy)
        })
        .collect();
    let names: BTreeSet<String> = wanted.topics.keys().cloned().collect();
    let described = match kafka.describe_topics(&names).await {
        Ok(described) => described,
        Err(error) => {
            let remedy = "fix this, then run doctor again";
            findings.push(Finding::bad(format!("sink {name}"), error.message(), remedy));
            return findings;
        }
    };
    for (topic, health) in described {
        let of = wanted.topics.get(&topic).map_or("", String::as_str);
        findings.push(match health {
            None => Finding::bad(
                format!("topic {topic}"),
                format!("it does not exist, so events for it wait ({of})"),
                "create it; Postrider never creates topics",
            ),
            Some(health) => judged(&topic, &health),
        });
    }
    findings
}

/// How a topic that is there is kept.
fn judged(topic: &str, health: &TopicHealth) -> Finding {
    let about = format!("topic {topic}");
    let TopicHealth { partitions, leaderless, replicas, in_sync, least_in_sync } = health;
    let kept = format!(
        "{partitions} partition{}, {replicas} replica{}, {in_sync} in sync",
        if *partitions == 1 { "" } else { "s" },
        if *replicas == 1 { "" } else { "s" }
    );
    if *leaderless > 0 {
        let what =
            format!("{leaderless} of its partitions have no leader, so nothing can be written to them");
        return Finding::bad(about, what, "check for brokers that are down");
    }
    let least = match least_in_sync {
        Ok(least) => *least,
        Err(why) => {
            let what = format!("{kept}; can't read its min.insync.replicas: {why}");
            let remedy = "run doctor again; if it fails again, allow this user to describe topic configs";
            return Finding::warn(about, what, remedy);
        }
    };
    let kept = format!("{kept}, min.insync.replicas = {least}");
    if *in_sync < least {
        let what = format!("{kept}: nothing can be written until {least} replicas are in sync");
        return Finding::bad(about, what, "check for brokers that are down or behind");
    }
    if *replicas < REPLICAS || least < LEAST {
        let what = format!("{kept}: losing one broker can lose events");
        let remedy = format!("use {REPLICAS} replicas and min.insync.replicas = {LEAST}");
        return Finding::warn(about, what, remedy);
    }
    if in_sync < replicas {
        let what = format!("{kept}: a replica is not in sync");
        return Finding::warn(about, what, "check for brokers that are down or behind");
    }
    if *replicas == least {
        let what = format!("{kept}: nothing can be written while any broker is down");
        return Finding::warn(about, what, "set min.insync.replicas below the number of replicas");
    }
    Finding::good(about, kept)
}

#[cfg(test)]
mod tests {
    use postrider::store::Severity;

    use super::*;

    #[test]
    fn a_topic_is_judged_by_how_many_brokers_have_it() {
        let health = |leaderless, replicas, in_sync, least: Result<usize, &str>| TopicHealth {
            partitions: 3,
            leaderless,
            replicas,
            in_sync,
            least_in_sync: least.map_err(ToOwned::to_owned),
        };
        for (health, verdict, words) in [
            (health(0, 3, 3, Ok(2)), Severity::Good, "3 replicas, 3 in sync, min.insync.replicas = 2"),
            (health(0, 3, 2, Ok(2)), Severity::Warn, "a replica is not in sync"),
            (health(0, 3, 1, Ok(2)), Severity::Bad, "nothing can be written until 2 replicas are in sync"),
            (health(1, 3, 3, Ok(2)), Severity::Bad, "have no leader"),
            (health(0, 1, 1, Ok(1)), Severity::Warn, "losing one broker can lose events"),
            (health(0, 3, 3, Ok(1)), Severity::Warn, "losing one broker can lose events"),
            (health(0, 3, 3, Ok(3)), Severity::Warn, "while any broker is down"),
            (
                health(0, 3, 3, Err("not allowed")),
                Severity::Warn,
                "can't read its min.insync.replicas: not allowed",
            ),
        ] {
            let finding = judged("orders", &health);
            assert_eq!(finding.severity, verdict, "{finding:?}");
            assert!(finding.what.contains(words), "{finding:?}");
            assert_eq!(finding.remedy.is_none(), verdict == Severity::Good);
        }
    }
}
