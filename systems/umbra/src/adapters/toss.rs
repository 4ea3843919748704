//! The payment gateway: Toss, over HTTP.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::billing::charging::Gateway;
use crate::contracts::{Answer, AttemptId};

/// How long the gateway may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The answer to a charge that is taken back.
#[derive(Debug, Deserialize)]
struct Void {
    refunded: bool,
}

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

    async fn void(&self, attempt: AttemptId) -> Answer<bool> {
        let request = self.client.post(format!("{}/v1/charges/{attempt}/void", self.url)).timeout(PATIENCE);
        let answer = request.send().await.map_err(reqwest::Error::without_url)?;
        let answer = answer.error_for_status().map_err(reqwest::Error::without_url)?;
        let answer: Void = answer.json().await.map_err(reqwest::Error::without_url)?;
        Ok(answer.refunded)
    }
}
