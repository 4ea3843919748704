//! Fraud detection behind the topic, and how much is in the topic.

use std::sync::Arc;
use std::time::Duration;

use postrider::kafka::Consumer;
use postrider::postgres::Outbox;
use postrider::{Failure, Received};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::metadata::MetadataTopic;

use super::risk_logs::PgRiskLogs;
use super::steps::{Halt, LOGGED};
use crate::application::fraud::FraudService;
use crate::application::ports::{Fault, RiskLogs};
use crate::domain::TransferCompleteEvent;
use crate::domain::risk::Observed;

/// How many records of a partition fraud detection takes at a time.
pub const AT_A_TIME: usize = 500;

/// A process that was killed is out of its group after this time, and its partitions are somebody else's: own choice. It is the least
/// that brokers allow unless they are told otherwise.
const SESSION_TIMEOUT_MS: &str = "6000";

/// The consumer of fraud detection. It has no inbox: the risk log is what knows an event again.
pub fn consumer(outbox: &Outbox, brokers: &str, topic: &str, group: &str) -> Consumer<Outbox> {
    let service = Arc::new(FraudService::new(PgRiskLogs::new(outbox.pool().clone())));
    let halt = Halt::from_environment();
    let handler = move |events: Vec<Received<TransferCompleteEvent>>| {
        let (service, halt) = (Arc::clone(&service), halt.clone());
        async move {
            analyse(&service, events).await?;
            halt.reach(LOGGED).await;
            Ok::<(), Failure>(())
        }
    };
    Consumer::new(outbox, brokers, group)
        .topics([topic])
        .property("session.timeout.ms", SESSION_TIMEOUT_MS)
        .property("heartbeat.interval.ms", "1000")
        .records_per_poll(AT_A_TIME)
        // A deploy during an outage must not fail.
        .wait_for_brokers(Duration::MAX)
        .on(handler)
}

async fn analyse(
    service: &FraudService<impl RiskLogs>,
    events: Vec<Received<TransferCompleteEvent>>,
) -> Result<(), Failure> {
    let count = events.len();
    let analysed = service.analyse(events.into_iter().map(observed).collect()).await.map_err(failure)?;
    for event_id in &analysed.known {
        tracing::info!(%event_id, "already processed");
    }
    let (new, known, flagged) = (analysed.new, analysed.known.len(), analysed.flagged);
    tracing::info!(events = count, new, known, flagged, "analysed");
    Ok(())
}

fn observed(received: Received<TransferCompleteEvent>) -> Observed {
    let event = received.event();
    let headers = event.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Observed { event_id: event.event_id, headers, transfer: received.into_inner() }
}

/// A database that is away is nobody's fault: the partition waits. Anything else is an attempt of the event.
fn failure(fault: Fault) -> Failure {
    match fault.downcast::<sqlx::Error>() {
        Ok(error) => postrider::postgres::failure(*error),
        Err(fault) => Failure::from(fault),
    }
}

/// How many records a topic has, repetitions included.
pub fn records(brokers: &str, topic: &str) -> Result<i64, Fault> {
    const WITHIN: Duration = Duration::from_secs(20);
    let consumer: BaseConsumer = ClientConfig::new().set("bootstrap.servers", brokers).create()?;
    let metadata = consumer.fetch_metadata(Some(topic), WITHIN)?;
    let mut partitions = metadata.topics().iter().flat_map(MetadataTopic::partitions);
    partitions.try_fold(0, |sum, partition| {
        let (low, high) = consumer.fetch_watermarks(topic, partition.id(), WITHIN)?;
        Ok(sum + high - low)
    })
}
