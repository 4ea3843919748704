//! The push service.

use crate::application::{Answer, Fault, Push};

/// A push service over HTTP.
#[derive(Debug, Clone)]
pub struct WebPush {
    client: reqwest::Client,
    url: String,
}

impl WebPush {
    /// At an address.
    pub fn new(url: &str) -> Self {
        Self { client: story::process::client(), url: url.to_owned() }
    }
}

impl Push for WebPush {
    async fn send(&self, text: &str) -> Answer<()> {
        let body = serde_json::json!({ "text": text });
        let sent = self.client.post(format!("{}/push", self.url)).json(&body).send().await;
        match sent.and_then(reqwest::Response::error_for_status) {
            Ok(_) => Ok(()),
            Err(error) => Err(Fault::Retry(postrider::http::failure(error).message().to_owned())),
        }
    }
}
