//! The clients of the API.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::application::service::TRIES;

/// Asks the API over HTTP, and asks again while others are faster.
#[derive(Debug)]
pub struct Bank {
    client: reqwest::Client,
    url: String,
    next: AtomicI64,
    conflicts: AtomicU64,
}

impl Bank {
    /// The clients of the API at this address.
    pub fn new(url: &str) -> Self {
        let (next, conflicts) = (AtomicI64::new(1), AtomicU64::new(0));
        Self { client: story::process::client(), url: url.to_owned(), next, conflicts }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How often somebody had to begin again because another had changed the same balance.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::SeqCst)
    }

    /// An id for a transaction.
    pub fn id(&self) -> i64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Asks for something: the status and the answer.
    pub async fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        loop {
            let sent = self.client.post(format!("{}{path}", self.url)).json(body).send().await;
            let answer = sent.expect("the API answers");
            let status = answer.status().as_u16();
            let answer: Value = answer.json().await.expect("JSON");
            if status != 409 {
                let tries = answer["tries"].as_u64().unwrap_or(1);
                self.conflicts.fetch_add(tries - 1, Ordering::SeqCst);
                return (status, answer);
            }
            self.conflicts.fetch_add(u64::from(TRIES), Ordering::SeqCst);
        }
    }

    /// Posts something that must succeed; the id of the transaction.
    pub async fn post(&self, path: &str, mut body: Value) -> i64 {
        let id = self.id();
        body["transactionId"] = json!(id);
        let (status, answer) = self.ask(path, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        id
    }

    /// Puts cash into an account.
    pub async fn deposit(&self, account: i64, amount: i64) -> i64 {
        self.post("/deposits", json!({ "accountId": account, "amount": amount })).await
    }

    /// Moves money.
    pub async fn transfer(&self, from: i64, to: i64, amount: i64) -> i64 {
        let body = json!({ "fromAccountId": from, "toAccountId": to, "amount": amount });
        self.post("/transfers", body).await
    }
}
