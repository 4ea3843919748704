//! A stub of the outside world: an HTTP server that keeps what it was sent and answers as it is told.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request that a stub got.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// With its query.
    pub path: String,
    /// The body; `null` if it is not JSON.
    pub body: Value,
}

type Answer = dyn Fn(&Request) -> (u16, Value) + Send + Sync;

#[derive(Clone)]
struct Shared {
    requests: Arc<Mutex<Vec<Request>>>,
    answer: Arc<Answer>,
}

/// An HTTP server on loopback for Slack, PagerDuty, a gateway. It ends when it is dropped.
#[derive(Debug)]
pub struct Stub {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl Stub {
    /// Starts one that answers everything with 200.
    pub async fn start() -> Self {
        Self::answering(|_| (200, Value::Null)).await
    }

    /// Starts one that answers by this function, with a status and JSON.
    pub async fn answering(answer: impl Fn(&Request) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared { requests: requests.clone(), answer: Arc::new(answer) };
        let listener =
            TcpListener::bind("127.0.0.1:0").await.unwrap_or_else(|error| panic!("no free port: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let router = Router::new().fallback(take).with_state(shared);
        let task = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Self { url: format!("http://{address}"), requests, task }
    }

    /// Its address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it got so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> (StatusCode, axum::Json<Value>) {
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let request = Request { method: method.to_string(), path: uri.to_string(), body };
    let (status, answer) = (shared.answer)(&request);
    shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), axum::Json(answer))
}
