//! A client of the transaction service.

use serde_json::{Value, json};
use story::process;
use uuid::Uuid;

/// Knows where the service is.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    /// The address of the service.
    pub url: String,
}

/// What the service answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

impl Answer {
    /// The event of the transfer, if it happened.
    pub fn event(&self) -> Option<Uuid> {
        self.body["eventId"].as_str().and_then(|id| id.parse().ok())
    }
}

/// Ids for so many new transfers.
pub fn new_ids(count: usize) -> Vec<Uuid> {
    (0..count).map(|_| Uuid::now_v7()).collect()
}

impl Client {
    /// A client of the service at this address.
    pub fn new(url: String) -> Self {
        Self { http: process::client(), url }
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Option<Answer> {
        let mut request = self.http.post(format!("{}{path}", self.url)).json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        Some(Answer { status, body: response.json().await.unwrap_or_default() })
    }

    /// Opens an account.
    pub async fn open(&self, id: &str, balance: i64) -> Option<Answer> {
        self.post("/accounts", &[], &json!({ "id": id, "balance": balance })).await
    }

    /// Asks for a new transfer; nothing if nobody answered.
    pub async fn transfer(&self, from: &str, to: &str, amount: i64) -> Option<Answer> {
        self.transfer_as(Uuid::now_v7(), from, to, amount).await
    }

    /// Asks for the transfer with this id. Whoever had no answer asks again with the same id.
    pub async fn transfer_as(&self, id: Uuid, from: &str, to: &str, amount: i64) -> Option<Answer> {
        let body = json!({ "transactionId": id, "from": from, "to": to, "amount": amount });
        self.post("/transfers", &[], &body).await
    }

    /// Asks for a new transfer with all that may go along: headers of the request, a memo, attributes.
    pub async fn transfer_with(&self, headers: &[(&str, &str)], body: &Value) -> Option<Answer> {
        let mut body = body.clone();
        body["transactionId"] = json!(Uuid::now_v7());
        self.post("/transfers", headers, &body).await
    }

    /// The balance of an account.
    pub async fn balance(&self, id: &str) -> Option<i64> {
        let response = self.http.get(format!("{}/accounts/{id}", self.url)).send().await.ok()?;
        response.json::<Value>().await.ok()?["balance"].as_i64()
    }

    /// Makes `count` new transfers of 1 won among accounts `account-0` to `account-{accounts - 1}`, sixteen at a time. How many the
    /// service said yes to.
    pub async fn transfers(&self, count: usize, accounts: usize) -> usize {
        self.transfers_as(&new_ids(count), accounts).await
    }

    /// The same with these ids. The same ids, in the same order, are the same transfers.
    pub async fn transfers_as(&self, ids: &[Uuid], accounts: usize) -> usize {
        let mut tasks = tokio::task::JoinSet::new();
        for worker in 0..16 {
            let client = self.clone();
            let own: Vec<(usize, Uuid)> = ids.iter().copied().enumerate().skip(worker).step_by(16).collect();
            tasks.spawn(async move {
                let mut done = 0;
                for (number, id) in own {
                    let from = format!("account-{}", number % accounts);
                    let to = format!("account-{}", (number * 7 + 1 + number / accounts) % accounts);
                    let to = if to == from { format!("account-{}", (number + 1) % accounts) } else { to };
                    let answer = client.transfer_as(id, &from, &to, 1).await;
                    done += usize::from(answer.is_some_and(|answer| [200, 201].contains(&answer.status)));
                }
                done
            });
        }
        tasks.join_all().await.into_iter().sum()
    }

    /// Opens accounts `account-0`, `account-1`, … with a million won each.
    pub async fn open_accounts(&self, count: usize) {
        for number in 0..count {
            let opened = self.open(&format!("account-{number}"), 1_000_000).await;
            assert!(opened.is_some_and(|answer| answer.status == 201), "account {number} can't be opened");
        }
    }
}
