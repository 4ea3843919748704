//! The exchange over HTTP.

use std::time::Duration;

use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;

use crate::application::{Answer, Exchange, Fault};
use crate::domain::{Intent, Placed, Reply, Side};

/// An exchange that speaks as Upbit does, as far as everbit needs it.
#[derive(Debug, Clone)]
pub struct HttpExchange {
    client: reqwest::Client,
    url: String,
    timeout: Duration,
}

#[derive(Deserialize)]
struct Order {
    uuid: String,
    executed_volume: i64,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// What the exchange says of an order that it does not have.
const NO_ORDER: &str = "order_not_found";
/// What the exchange says of a market that it does not have.
const NO_MARKET: &str = "market_not_found";

impl HttpExchange {
    /// At an address; an answer takes at most `timeout`.
    pub fn new(url: &str, timeout: Duration) -> Self {
        Self { client: story::process::client(), url: url.to_owned(), timeout }
    }

    /// The address of something that the exchange has, by its kind and its name; the name is one segment, whatever is in it.
    fn address(&self, kind: &str, name: &str) -> Answer<Url> {
        let wrong = || Fault::Reject("EXCHANGE_URL must be an HTTP address".to_owned());
        let mut url = Url::parse(&self.url).map_err(|_| wrong())?;
        url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend([kind, name]);
        Ok(url)
    }

    /// What is at an address. Nothing if the exchange itself says, in the word for it, that it has no such thing: a 404 of whoever stands before
    /// the exchange, such as a proxy or a deploy, says nothing of its orders.
    async fn get(&self, url: Url, missing: &str) -> Answer<Option<Response>> {
        let asked = self.client.get(url).timeout(self.timeout).send().await;
        let answer = asked.map_err(|error| Fault::Retry(said(error)))?;
        match answer.status() {
            status if status.is_success() => Ok(Some(answer)),
            StatusCode::NOT_FOUND => match answer.json::<Refusal>().await {
                Ok(refusal) if refusal.error == missing => Ok(None),
                _ => Err(Fault::Retry("404 was answered, and not by the exchange".to_owned())),
            },
            // Being asked too often is no fault of the question.
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(Fault::Retry("the exchange asks to wait".to_owned()))
            }
            status if status.is_client_error() => {
                Err(Fault::Reject(format!("the exchange answered {status}")))
            }
            status => Err(Fault::Retry(format!("the exchange answered {status}"))),
        }
    }
}

fn said(error: reqwest::Error) -> String {
    postrider::http::failure(error).message().to_owned()
}

impl Exchange for HttpExchange {
    async fn place(&self, identifier: &str, intent: &Intent) -> Reply {
        let side = if intent.side == Side::Buy { "bid" } else { "ask" };
        let body = serde_json::json!({
            "identifier": identifier, "market": intent.about.market, "side": side,
            "price": intent.price, "volume": intent.volume,
        });
        let request = self.client.post(format!("{}/orders", self.url)).timeout(self.timeout).json(&body);
        let Ok(answer) = request.send().await else { return Reply::Unclear };
        match answer.status() {
            status if status.is_success() => match answer.json::<Order>().await {
                Ok(order) => Reply::Placed(Placed { order_id: order.uuid, executed: order.executed_volume }),
                // It has the order, and we don't know its id.
                Err(_) => Reply::Unclear,
            },
            StatusCode::TOO_MANY_REQUESTS => Reply::Throttled,
            StatusCode::REQUEST_TIMEOUT => Reply::Unclear,
            status if status.is_client_error() => match answer.json::<Refusal>().await {
                Ok(refusal) if refusal.error == "duplicate_identifier" => Reply::Duplicate,
                _ => Reply::Refused,
            },
            _ => Reply::Unclear,
        }
    }

    async fn find(&self, identifier: &str) -> Answer<Option<Placed>> {
        let Some(answer) = self.get(self.address("orders", identifier)?, NO_ORDER).await? else {
            return Ok(None);
        };
        let order: Order = answer.json().await.map_err(|error| Fault::Retry(said(error)))?;
        Ok(Some(Placed { order_id: order.uuid, executed: order.executed_volume }))
    }

    async fn candles(&self, market: &str) -> Answer<Vec<i64>> {
        let Some(answer) = self.get(self.address("candles", market)?, NO_MARKET).await? else {
            return Err(Fault::Reject(format!("the exchange has no market {market}")));
        };
        answer.json().await.map_err(|error| Fault::Retry(said(error)))
    }
}
