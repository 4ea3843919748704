//! Fraud detection: `DATABASE_URL`, `KAFKA_BROKERS`, `TOPIC` and `GROUP` if they have other names than usual, and `METRICS` to serve
//! `/metrics` there.

use postrider::postgres::Outbox;

use super::{Ended, pool};
use crate::adapters::kafka;

/// The consumer group of fraud detection.
pub const GROUP: &str = "fraud-detection";

/// Consumes until Ctrl-C or SIGTERM. It fails if the consumer ends by itself, so that whoever runs it starts another one.
pub async fn run() -> Ended {
    story::process::logs();
    story::metrics::serve_aside().await?;
    let outbox = Outbox::connect(&pool(10).await?).await?;
    let brokers = story::process::setting("KAFKA_BROKERS")?;
    let topic = std::env::var("TOPIC").unwrap_or_else(|_| "transfers".to_owned());
    let group = std::env::var("GROUP").unwrap_or_else(|_| GROUP.to_owned());
    let mut running = tokio::select! {
        running = kafka::consumer(&outbox, &brokers, &topic, &group).start() => running?,
        () = postrider::asked_to_end() => return Ok(()),
    };
    println!("consuming {topic} as {group}");
    tokio::select! {
        () = postrider::asked_to_end() => Ok(running.stop().await?),
        error = running.failed() => Err(error.into()),
    }
}
