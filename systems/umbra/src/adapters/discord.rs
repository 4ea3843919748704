//! Direct messages: Discord, over HTTP.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use crate::contracts::Answer;

/// How long Discord may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client of Discord.
#[derive(Debug, Clone)]
pub struct Discord {
    client: reqwest::Client,
    url: String,
}

impl Discord {
    /// A client of Discord at this address.
    pub fn new(url: &str) -> Self {
        Self { client: story::process::client(), url: url.to_owned() }
    }

    /// Sends a message. Discord drops a second one with the same nonce.
    pub async fn send(&self, nonce: Uuid, text: &str) -> Answer<()> {
        let request = self.client.post(format!("{}/dm", self.url)).timeout(PATIENCE);
        let answer = request.json(&json!({ "nonce": nonce, "text": text })).send().await?;
        answer.error_for_status()?;
        Ok(())
    }
}
