//! From PostgreSQL to a real Kafka broker on the same machine, and back into PostgreSQL.

use std::time::Duration;

use postrider_kafka::Kafka;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

use crate::AnyError;

pub mod drain;
pub mod effects;
pub mod latency;
pub mod memory;

const PARTITIONS: i32 = 4;

/// The brokers that `POSTRIDER_TEST_KAFKA` names.
pub(crate) fn brokers() -> Result<String, AnyError> {
    Ok(std::env::var("POSTRIDER_TEST_KAFKA")
        .map_err(|_| "POSTRIDER_TEST_KAFKA is not set: run `cargo xtask bench kafka`")?)
}

/// A topic for a measurement.
pub(crate) struct Topic {
    pub(crate) name: String,
    admin: AdminClient<DefaultClientContext>,
}

impl Topic {
    /// A new one, with four partitions.
    pub(crate) async fn new() -> Result<Self, AnyError> {
        let name = format!("bench-{}", uuid::Uuid::now_v7());
        let admin: AdminClient<_> = ClientConfig::new().set("bootstrap.servers", brokers()?).create()?;
        let topic = NewTopic::new(&name, PARTITIONS, TopicReplication::Fixed(1));
        let patience = AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)));
        for result in admin.create_topics([&topic], &patience).await? {
            result.map_err(|(topic, code)| format!("the topic {topic} can't be created: {code}"))?;
        }
        Ok(Self { name, admin })
    }

    /// Deletes it.
    pub(crate) async fn close(self) -> Result<(), AnyError> {
        self.admin.delete_topics(&[self.name.as_str()], &AdminOptions::new()).await?;
        Ok(())
    }
}

/// The sink, as a relay has it.
pub(crate) async fn sink(topic: &str) -> Result<Kafka, AnyError> {
    Ok(Kafka::builder(&brokers()?).topic(topic).connect().await?)
}
