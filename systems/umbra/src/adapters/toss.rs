//! The payment gateway: Toss, over HTTP.

use std::time::Duration;

use serde_json::json;

use crate::billing::charging::Gateway;
use crate::contracts::{Answer, AttemptId};

/// How long the gateway may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client of the gateway.
#[derive(Debug, Clone)]
pub struct Toss {
    client: reqwest::Client,
    url: String,
}

impl Toss {
    /// A client of the gateway at this address.
    pub fn new(url: &str) -> Self {
        Self { client: story::process::client(), url: url.to_owned() }
    }
}

impl Gateway for Toss {
    async fn charge(&self, attempt: AttemptId, amount: i64) -> Answer<bool> {
        let request = self.client.post(format!("{}/v1/charges", self.url)).timeout(PATIENCE);
        let request = request.header("Idempotency-Key", attempt.to_string());
        let answer =
            request.json(&json!({ "amount": amount })).send().await.map_err(reqwest::Error::without_url)?;
        match answer.status().as_u16() {
            200 => Ok(true),
            402 => Ok(false),
            // It says nothing of the charge, so the attempt stays open.
            status => Err(format!("the gateway answered with {status}").into()),
        }
    }
}
