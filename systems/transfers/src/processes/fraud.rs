//! Fraud detection: `DATABASE_URL`, `KAFKA_BROKERS`, and `TOPIC` and `GROUP` if they have other names than usual.

use postrider::postgres::Outbox;

use super::{Ended, pool};
use crate::adapters::kafka;

/// The consumer group of fraud detection.
pub const GROUP: &str = "fraud-detection";

/// Consumes until Ctrl-C or SIGTERM.
pub async fn run() -> Ended {
    story::process::logs();
    let outbox = Outbox::connect(&pool(10).await?).await?;
    let brokers = story::process::setting("KAFKA_BROKERS")?;
    let topic = std::env::var("TOPIC").unwrap_or_else(|_| "transfers".to_owned());
    let group = std::env::var("GROUP").unwrap_or_else(|_| GROUP.to_owned());
    let consumer = kafka::consumer(&outbox, &brokers, &topic, &group).start().await?;
    println!("consuming {topic} as {group}");
    postrider::asked_to_end().await;
    consumer.stop().await?;
    Ok(())
}
