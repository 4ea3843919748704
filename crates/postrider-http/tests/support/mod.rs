//! An endpoint that records what comes and answers as it is told.
#![allow(dead_code, unreachable_pub)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// The head of an answer: `200 OK`, or `429 Slow Down\r\nretry-after: 5`; nothing means that there is none.
type Script = Arc<dyn Fn(&Request) -> Option<String> + Send + Sync>;

pub struct Endpoint {
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl Endpoint {
    pub async fn start(script: impl Fn(&Request) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::start_on(0, script).await
    }

    pub async fn start_on(
        port: u16,
        script: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (seen, script): (_, Script) = (Arc::clone(&requests), Arc::new(script));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&script)));
            }
        });
        Self { port, requests, task }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/events?token=hush", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("requests").clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, seen: Arc<Mutex<Vec<Request>>>, script: Script) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = Request { line: String::new(), headers: HashMap::new(), body: Vec::new() };
        if !matches!(stream.read_line(&mut request.line).await, Ok(length) if length > 0) {
            return;
        }
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.is_err() || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.trim().split_once(':') {
                request.headers.insert(name.to_lowercase(), value.trim().to_owned());
            }
        }
        let length = request.header("content-length").parse().unwrap_or(0);
        request.body = vec![0; length];
        if stream.read_exact(&mut request.body).await.is_err() {
            return;
        }
        let answer = script(&request);
        seen.lock().expect("requests").push(request);
        match answer {
            Some(head) => {
                let text = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n");
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            None => std::future::pending::<()>().await,
        }
    }
}
