//! What the brokers report about topics, for checks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postrider_core::{Recorded, Result};
use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, OwnedResourceSpecifier, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;
use rdkafka::metadata::MetadataTopic;

use crate::client::invalid::{invalid, refused};
use crate::produce::sink::Kafka;

/// How long the brokers may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The setting that says how many replicas must have a record before it counts as written.
const LEAST: &str = "min.insync.replicas";

/// The state of a topic on the brokers. `replicas` and `in_sync` are those of the partition that has fewest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicHealth {
    /// How many partitions it has.
    pub partitions: usize,
    /// How many of them have no leader, so that nothing can be written to them.
    pub leaderless: usize,
    /// How many replicas a partition has.
    pub replicas: usize,
    /// How many of those are in sync.
    pub in_sync: usize,
    /// How many replicas must have a record before it counts as written (`min.insync.replicas`), or why that is not known.
    pub least_in_sync: Result<usize, String>,
}

impl TopicHealth {
    fn of(topic: &MetadataTopic) -> Self {
        let partitions = topic.partitions();
        let fewest = |count: fn(&rdkafka::metadata::MetadataPartition) -> usize| {
            partitions.iter().map(count).min().unwrap_or(0)
        };
        Self {
            partitions: partitions.len(),
            leaderless: partitions.iter().filter(|partition| partition.leader() < 0).count(),
            replicas: fewest(|partition| partition.replicas().len()),
            in_sync: fewest(|partition| partition.isr().len()),
            least_in_sync: Err("not known yet".to_owned()),
        }
    }
}

impl Kafka {
    /// The topic that an event goes to.
    ///
    /// *On failure*: one sentence, if the result is not a valid topic name.
    pub fn topic_of(&self, event: &Recorded) -> Result<String> {
        let topic = self.topics.of(event);
        topic.map_err(|name| invalid(&format!("{name:?} is not a valid topic name")))
    }

    /// The state of these topics; `None` for one that does not exist. Creates and changes nothing.
    ///
    /// *On failure*: the brokers don't answer, with the sentence of [`check`](Kafka::check).
    pub async fn describe_topics(
        &self,
        names: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Option<TopicHealth>>> {
        let metadata = self.metadata().await?;
        let is_there = |topic: &&MetadataTopic| topic.error().is_none() && !topic.partitions().is_empty();
        let find = |name: &String| metadata.topics().iter().filter(is_there).find(|it| it.name() == name);
        let mut topics: BTreeMap<String, Option<TopicHealth>> =
            names.iter().map(|name| (name.clone(), find(name).map(TopicHealth::of))).collect();
        let there: Vec<&String> = names.iter().filter(|name| find(name).is_some()).collect();
        if there.is_empty() {
            return Ok(topics);
        }
        let admin: AdminClient<DefaultClientContext> =
            self.settings.client().create().map_err(|error| refused(&error))?;
        let wanted: Vec<ResourceSpecifier<'_>> =
            there.iter().map(|name| ResourceSpecifier::Topic(name)).collect();
        let options = AdminOptions::new().request_timeout(Some(PATIENCE)).operation_timeout(Some(PATIENCE));
        let mut said = BTreeMap::new();
        let mut silence = "the brokers did not answer".to_owned();
        match admin.describe_configs(&wanted, &options).await {
            Ok(answers) => {
                for (name, answer) in there.iter().zip(&answers) {
                    let (name, least) = least(name, answer.as_ref().map_err(ToString::to_string));
                    said.insert(name, least);
                }
            }
            Err(error) => silence = plain(&error),
        }
        for (name, topic) in &mut topics {
            if let Some(topic) = topic {
                topic.least_in_sync = said.remove(name).unwrap_or_else(|| Err(silence.clone()));
            }
        }
        Ok(topics)
    }
}

/// What an answer says of a topic; it names the topic itself, unless it is an error.
fn least(asked: &str, answer: Result<&ConfigResource, String>) -> (String, Result<usize, String>) {
    let resource = match answer {
        Ok(resource) => resource,
        Err(reason) => return (asked.to_owned(), Err(reason)),
    };
    let name = match &resource.specifier {
        OwnedResourceSpecifier::Topic(name) => name.clone(),
        _ => asked.to_owned(),
    };
    let value = resource.get(LEAST).and_then(|entry| entry.value.as_ref());
    let number = value.and_then(|value| value.parse().ok());
    (name, number.ok_or_else(|| format!("the brokers did not return {LEAST}")))
}

fn plain(error: &KafkaError) -> String {
    error.rdkafka_error_code().map_or_else(|| error.to_string(), |code| code.to_string())
}
