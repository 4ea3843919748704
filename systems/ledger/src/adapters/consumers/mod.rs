//! The three consumers, each a group of its own behind the ledger's topics.

mod audit;
mod positions;
mod read_model;

use std::env;
use std::time::Duration;

use postrider::Retry;
use postrider::kafka::Consumer;
use postrider::mysql::Outbox;

pub use audit::audit;
pub use positions::positions;
pub use read_model::read_model;

use crate::adapters::wire::upcasters;

/// Where the consumers read.
#[derive(Debug, Clone)]
pub struct Topics {
    /// The brokers, `host:port`.
    pub brokers: String,
    /// The topics: the one of option A, or the two of option B.
    pub names: Vec<String>,
    /// What the names of the groups begin with, where several systems share a broker.
    pub group_prefix: String,
}

impl Topics {
    /// From `KAFKA`, `TOPICS` and `GROUP_PREFIX`.
    pub fn from_environment() -> Result<Self, String> {
        let names = env::var("TOPICS").unwrap_or_else(|_| "ledger-events".to_owned());
        Ok(Self {
            brokers: story::process::setting("KAFKA")?,
            names: names.split(',').map(str::to_owned).collect(),
            group_prefix: env::var("GROUP_PREFIX").unwrap_or_default(),
        })
    }

    /// A consumer of these topics that has no handler yet.
    fn consumer(&self, outbox: &Outbox, group: &str) -> Consumer<Outbox> {
        let group = format!("{}{group}", self.group_prefix);
        Consumer::new(outbox, &self.brokers, &group)
            .topics(self.names.clone())
            .upcasters(upcasters())
            .retry(Retry::fixed(Duration::from_secs(1)).max_attempts(4))
            .longest_pause(Duration::from_secs(2))
            .wait_for_brokers(Duration::MAX)
            // One that was killed is noticed in 6 s instead of 45.
            .property("session.timeout.ms", "6000")
            .property("heartbeat.interval.ms", "1000")
    }

    /// Whether all events of an account are in one topic, so that their numbers have no gaps.
    fn have_whole_sequences(&self) -> bool {
        self.names.len() == 1
    }
}
