//! The sink: events to an endpoint, keys at once, a key in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use postrider_core::{
    ByteBudget, Delivery, DeliveryFailure, Error, ErrorKind, Excerpt, HeldKeys, OffsetDateTime, Outcome,
    Recorded, Result, Sink, Unavailable,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::builder::HttpBuilder;
use crate::client::PATIENCE;
use crate::connect_error::{reason, sentence};
use crate::failure::NoAnswer;

/// So many that fail one after another, sent alone, and the others of their request are not sent.
const FAILED_IN_A_ROW: usize = 3;
/// About how many bytes of events go into one request of several: its body is made of copies of them.
const REQUEST_BYTES: u64 = 1 << 20;

/// How long the body of an answer is waited for, once its head is there.
const READ: Duration = Duration::from_secs(1);
/// What usually comes of a request.
const CODES: &[&str] = &[
    "200", "201", "202", "204", "400", "401", "403", "404", "409", "410", "413", "415", "422", "429", "500",
    "502", "503", "504", "connect", "timeout", "broken",
];

/// Posts events to an endpoint.
///
/// ```
/// use postrider::{Relay, testing::Outbox};
/// use postrider_http::{Format, Http};
///
/// # fn main() -> postrider::Result<()> {
/// let http = Http::builder().format(Format::Batched(100)).bearer("secret").build("https://shop.example.org/events")?;
/// let relay = Relay::new(&Outbox::new()).subscribe("to-shop", |s| s.sink(http));
/// # Ok(())
/// # }
/// ```
pub struct Http {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) settings: HttpBuilder,
    pub(crate) tls: Arc<rustls::ClientConfig>,
}

impl Http {
    /// A sink with settings.
    pub fn builder() -> HttpBuilder {
        HttpBuilder::default()
    }

    /// Checks that the endpoint accepts connections, with TLS if the URL is `https`. Sends no request.
    ///
    /// *On failure*: the error says what to do. It does not contain the path of the URL, which may hold a secret.
    pub async fn check(&self) -> Result<()> {
        let host = self.url.host_str().unwrap_or_default();
        let unreachable = |reason: String| {
            Error::new(ErrorKind::Unreachable, "http", format!("can't reach {host}: {reason}"))
        };
        let connecting = async {
            let address = (host.trim_matches(['[', ']']), self.url.port_or_known_default().unwrap_or(80));
            let stream = TcpStream::connect(address).await?;
            if self.url.scheme() == "https" {
                let name = ServerName::try_from(address.0.to_owned()).map_err(std::io::Error::other)?;
                TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await?;
            }
            Ok::<(), std::io::Error>(())
        };
        match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(unreachable(sentence(&error))),
            Err(_) => Err(unreachable(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }

    /// Posts events in one request and says what became of them.
    async fn post(&self, delivery: &Delivery, events: &[&Arc<Recorded>]) -> Result<Outcome, Unavailable> {
        let timeout = delivery.timeout;
        let message = self.settings.message(events);
        let mut own = message.headers;
        let now = OffsetDateTime::now_utc();
        if let Some(secret) = &self.settings.secret {
            let timestamp = now.unix_timestamp();
            own.push(("webhook-id".to_owned(), message.id.clone()));
            own.push(("webhook-timestamp".to_owned(), timestamp.to_string()));
            own.push(("webhook-signature".to_owned(), secret.sign(&message.id, timestamp, &message.body)));
        }
        let headers = match header_map(&own) {
            Ok(headers) => headers,
            Err(failure) => return Ok(Outcome::reject(failure)),
        };
        let mut request =
            self.client.post(self.url.clone()).headers(headers).timeout(timeout).body(message.body);
        if let Some(token) = &self.settings.bearer {
            request = request.bearer_auth(token);
        }
        let began = Instant::now();
        let answered = request.send().await;
        match &answered {
            Ok(answer) => delivery.requested(answer.status().as_str(), began.elapsed()),
            Err(error) => delivery.requested(NoAnswer::of(error).as_str(), began.elapsed()),
        }
        match answered {
            Ok(answer) => {
                let status = answer.status().as_u16();
                let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
                let retry_after = retry_after.map(ToOwned::to_owned);
                let keeps = self.settings.keeps_answers() && !answer.status().is_success();
                let body = if keeps { beginning(answer).await } else { None };
                Ok(self.settings.answers.outcome_of(status, retry_after.as_deref(), body, now))
            }
            Err(error) => self.unanswered(error, timeout),
        }
    }

    /// What a request without an answer means.
    fn unanswered(&self, error: reqwest::Error, timeout: Duration) -> Result<Outcome, Unavailable> {
        match NoAnswer::of(&error) {
            NoAnswer::Connect => Err(Unavailable::new(format!(
                "can't reach {}: {}",
                self.url.host_str().unwrap_or("the endpoint"),
                sentence(&error.without_url())
            ))),
            NoAnswer::Timeout => {
                let text = format!("the endpoint did not answer within {timeout:?}");
                Ok(Outcome::unclear(DeliveryFailure::new("timeout", text)))
            }
            NoAnswer::Broken => {
                let text = format!("the connection broke: {}", reason(&error.without_url()));
                Ok(Outcome::unclear(DeliveryFailure::new("http", text)))
            }
        }
    }

    /// Sends events one after another, in requests of up to `most`, until one fails.
    async fn chain(&self, delivery: &Delivery, chain: &[usize], most: usize) -> Result<(), Unavailable> {
        let mut rest = chain;
        while !rest.is_empty() {
            let (these, others) = rest.split_at(fitting(delivery, rest, most));
            if !delivery.begin_all(these) {
                return Ok(());
            }
            let events: Vec<&Arc<Recorded>> =
                these.iter().map(|&index| &delivery.events[index].event).collect();
            match self.post(delivery, &events).await? {
                outcome if outcome.is_delivered() => {
                    these.iter().for_each(|&index| delivery.report(index, outcome.clone()));
                }
                // A pause that is asked for is kept first. Nothing is held against any of them: after it the endpoint is asked
                // with one of them alone.
                Outcome::Unclear { after: after @ Some(_), rejects: false, failure } if these.len() > 1 => {
                    return Err(Unavailable { reason: failure.message, pause: after });
                }
                // Which of them it means shows when each is sent alone.
                Outcome::Reject { .. } | Outcome::Unclear { .. } if these.len() > 1 => {
                    return Box::pin(self.one_by_one(delivery, these)).await;
                }
                outcome => {
                    self.fail(delivery, these, &outcome);
                    return Ok(());
                }
            }
            rest = others;
        }
        Ok(())
    }

    /// A request failed: so did the first event of each key in it (of all of them, under strict order).
    fn fail(&self, delivery: &Delivery, events: &[usize], outcome: &Outcome) {
        let mut stopped = HeldKeys::new(delivery.order);
        for &index in events {
            let event = &delivery.events[index].event;
            if !stopped.holds(event) {
                delivery.report(index, outcome.clone());
                stopped.failed(event);
            }
        }
    }

    /// Sends events in requests of their own, in order, each key until one of it fails.
    async fn one_by_one(&self, delivery: &Delivery, events: &[usize]) -> Result<(), Unavailable> {
        let mut stopped = HeldKeys::new(delivery.order);
        let mut failed = 0;
        for &index in events {
            let event = &delivery.events[index].event;
            if stopped.holds(event) {
                continue;
            }
            // The endpoint may be away: each further one would wait for it in vain.
            if failed == FAILED_IN_A_ROW || !delivery.begin(index) {
                return Ok(());
            }
            let outcome = self.post(delivery, &[event]).await?;
            failed = if matches!(outcome, Outcome::Unclear { .. }) { failed + 1 } else { 0 };
            if !outcome.is_delivered() {
                stopped.failed(event);
            }
            delivery.report(index, outcome);
        }
        Ok(())
    }
}

/// The beginning of an answer's body: what has come of it within the request's time, and not much later than its head.
async fn beginning(mut answer: reqwest::Response) -> Option<Excerpt> {
    let mut body: Vec<u8> = Vec::new();
    let read = async {
        while body.len() < Excerpt::BYTES
            && let Ok(Some(part)) = answer.chunk().await
        {
            body.extend_from_slice(&part[..part.len().min(Excerpt::BYTES - body.len())]);
        }
    };
    // What became of the event is known, and must not wait for an endpoint that writes its answer letter by letter.
    let _ = tokio::time::timeout(READ, read).await;
    Excerpt::new(&body)
}

/// How many of these events go into the next request: up to `most`, and as many as its bytes allow, but one.
fn fitting(delivery: &Delivery, events: &[usize], most: usize) -> usize {
    let mut fill = ByteBudget::new(REQUEST_BYTES);
    let fits = |index: &&usize| fill.takes(delivery.events[**index].event.size());
    events.iter().take(most).take_while(fits).count()
}

/// The headers of a request; or why these can't be sent, which is the event's own trouble. (The map panics when it is full.)
fn header_map(own: &[(String, String)]) -> Result<HeaderMap, DeliveryFailure> {
    let mut headers = HeaderMap::new();
    for (name, value) in own {
        let pair = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
        let (Ok(name), Ok(value)) = pair else {
            return Err(DeliveryFailure::new("header", format!("can't send its {name} as a header")));
        };
        if headers.try_append(name, value).is_err() {
            let text = format!("it has {} headers, too many for a request", own.len());
            return Err(DeliveryFailure::new("header", text));
        }
    }
    Ok(headers)
}

#[async_trait]
impl Sink for Http {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        if let Some(most) = self.settings.batched() {
            let all: Vec<usize> = (0..delivery.events.len()).collect();
            let _slot = delivery.slot().await;
            return self.chain(&delivery, &all, most).await;
        }
        if delivery.concurrency == 1 {
            // One at a time is the whole order.
            let all: Vec<usize> = (0..delivery.events.len()).collect();
            let _slot = delivery.slot().await;
            return self.one_by_one(&delivery, &all).await;
        }
        let mut results = stream::iter(delivery.chains())
            .map(|chain| {
                let delivery = Arc::clone(&delivery);
                async move {
                    let _slot = delivery.slot().await;
                    self.chain(&delivery, &chain, 1).await
                }
            })
            .buffer_unordered(delivery.concurrency.max(1));
        let mut result = Ok(());
        while let Some(ended) = results.next().await {
            if let Err(unavailable) = ended {
                // What is under way may still succeed; nothing more is begun.
                delivery.stop();
                result = Err(unavailable);
            }
        }
        result
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn codes(&self) -> &'static [&'static str] {
        CODES
    }
}

#[cfg(test)]
mod tests;
