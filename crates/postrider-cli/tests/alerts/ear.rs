//! An HTTP server that records what comes and answers as it is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) token: Option<String>,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Script {
    heard: Vec<Heard>,
    /// How each path answers: these in order, then 200 for ever.
    answers: HashMap<String, Vec<u16>>,
    /// What every path of that name answers as long as it is there.
    always: HashMap<String, u16>,
    /// Bodies with this field, and this text in it, are refused.
    refused: Option<(&'static str, &'static str)>,
}

/// The server; it is gone with the test.
pub(crate) struct Ear {
    address: String,
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

impl Ear {
    pub(crate) async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let script: Arc<Mutex<Script>> = Arc::default();
        let router = Router::new().fallback(hear).with_state(Arc::clone(&script));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self { address, script, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What came to a path, however it was answered.
    pub(crate) fn heard(&self, path: &str) -> Vec<Heard> {
        let script = self.script.lock().expect("the script");
        script.heard.iter().filter(|heard| heard.path == path).cloned().collect()
    }

    /// These answers come first on a path; 0 is none at all.
    pub(crate) fn answers(&self, path: &str, codes: &[u16]) {
        self.script.lock().expect("the script").answers.insert(path.to_owned(), codes.to_vec());
    }

    /// Bodies with this field, and this text in it, are refused.
    pub(crate) fn refuses(&self, field: &'static str, text: &'static str) {
        self.script.lock().expect("the script").refused = Some((field, text));
    }

    /// A path answers this, or well again.
    pub(crate) fn always(&self, path: &str, code: Option<u16>) {
        let mut script = self.script.lock().expect("the script");
        match code {
            Some(code) => script.always.insert(path.to_owned(), code),
            None => script.always.remove(path),
        };
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn hear(
    State(script): State<Arc<Mutex<Script>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let answer = answer(&script, &uri, &headers, &body);
    if answer == 0 {
        std::future::pending::<()>().await;
    }
    StatusCode::from_u16(answer).expect("a code")
}

fn answer(script: &Mutex<Script>, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> u16 {
    let mut script = script.lock().expect("the script");
    let path = uri.path().to_owned();
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    let answer = match script.always.get(&path) {
        Some(code) => *code,
        None => match script.answers.get_mut(&path) {
            Some(codes) if !codes.is_empty() => codes.remove(0),
            _ => 200,
        },
    };
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let answer = if script.refused.is_some_and(|(field, text)| body[field] == text) { 400 } else { answer };
    script.heard.push(Heard { at: Instant::now(), path, token, body });
    answer
}
