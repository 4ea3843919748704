//! The two buses: the outbox, which is part of the transaction, and Kafka, which is not.

use std::sync::Arc;

use postrider::kafka::{Kafka, KafkaBus};
use postrider::{Allowed, EventBus};

use crate::adapters::settings::Settings;
use crate::domain::{messages, streams};

/// What a transaction publishes through.
pub type Bus<Connection> = Arc<dyn EventBus<Connection>>;

/// Which bus it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// `outbox`: an event is there if and only if its transaction commits.
    #[default]
    Outbox,
    /// `kafka`: an event is sent before the transaction commits. What commits was sent; what was sent may have been rolled back, and a
    /// consumer may be faster than the commit.
    Kafka,
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "outbox" => Ok(Self::Outbox),
            "kafka" => Ok(Self::Kafka),
            other => Err(format!("EVERBIT_BUS must be outbox or kafka, not {other}")),
        }
    }
}

/// What may be published: the five streams, and the messages of everbit. Market data is refused.
pub fn allowed() -> Allowed {
    Allowed::default().streams(streams::ALL).types(messages::ALL)
}

/// The bus of the settings; the outbox is given.
pub async fn of<Connection: Send + 'static>(
    settings: &Settings,
    outbox: impl EventBus<Connection> + 'static,
) -> Result<Bus<Connection>, String> {
    if settings.bus == Kind::Outbox {
        return Ok(Arc::new(outbox));
    }
    let kafka = Kafka::builder(&settings.brokers).topic(format!("{}{{stream}}", settings.topic_prefix));
    let bus = KafkaBus::connect(kafka).await.map_err(|error| error.to_string())?;
    Ok(Arc::new(bus.allowed(allowed())))
}
