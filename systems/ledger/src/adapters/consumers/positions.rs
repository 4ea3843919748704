//! The trigger of the order and position system, over HTTP.

use postrider::kafka::Consumer;
use postrider::mysql::Outbox;
use postrider::{Failure, Received};
use serde_json::json;

use super::Topics;
use crate::adapters::wire::{LedgerPosted, LedgerReversed, LegPayload};

/// The consumer that tells the position system of every leg. It may tell it twice: the key of the leg is the idempotency key.
pub fn positions(outbox: &Outbox, topics: &Topics, url: &str) -> Consumer<Outbox> {
    let system = PositionSystem { client: story::process::client(), url: format!("{url}/triggers") };
    let again = system.clone();
    topics
        .consumer(outbox, "ledger-positions")
        .inbox()
        .on(move |event: Received<LedgerPosted>| {
            let system = system.clone();
            async move { system.trigger(&event.0, event.event().sequence).await }
        })
        .on(move |event: Received<LedgerReversed>| {
            let system = again.clone();
            async move { system.trigger(&event.0, event.event().sequence).await }
        })
}

#[derive(Clone)]
struct PositionSystem {
    client: reqwest::Client,
    url: String,
}

impl PositionSystem {
    async fn trigger(&self, payload: &LegPayload, sequence: Option<i64>) -> Result<(), Failure> {
        let leg = payload.leg(sequence);
        let body = json!({ "key": leg.key(), "transactionId": leg.transaction, "accountId": leg.account, "change": leg.change });
        let sent = self.client.post(&self.url).json(&body).send().await;
        let answer = sent.map_err(postrider::http::failure)?;
        match Failure::from_status(answer.status().as_u16()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}
