//! An endpoint that records what comes and answers as it is told.
#![allow(dead_code, unreachable_pub)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
    /// When it was there.
    pub at: Instant,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// The head of an answer: `200 OK`, or `429 Slow Down\r\nretry-after: 5`, or all of it; nothing means that there is none.
type Script = Arc<dyn Fn(&Request) -> Option<String> + Send + Sync>;

pub struct Endpoint {
    pub port: u16,
    state: Arc<ServerState>,
    task: JoinHandle<()>,
}

/// What an endpoint knows and does.
struct ServerState {
    script: Script,
    /// How long it takes to answer.
    pause: Duration,
    requests: Mutex<Vec<Request>>,
    /// How many requests wait for their answer, and how many did at most.
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Endpoint {
    pub async fn start(script: impl Fn(&Request) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::start_on(0, script).await
    }

    pub async fn start_on(
        port: u16,
        script: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::begin(port, Duration::ZERO, None, Arc::new(script)).await
    }

    /// One that takes its time.
    pub async fn start_slow(
        pause: Duration,
        script: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::begin(0, pause, None, Arc::new(script)).await
    }

    /// One that speaks TLS.
    pub async fn start_tls(
        tls: TlsAcceptor,
        script: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::begin(0, Duration::ZERO, Some(tls), Arc::new(script)).await
    }

    async fn begin(port: u16, pause: Duration, tls: Option<TlsAcceptor>, script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (requests, inside, most) = (Mutex::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let state = Arc::new(ServerState { script, pause, requests, inside, most });
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, tls) = (Arc::clone(&shared), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, state).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, state).await;
                            }
                        }
                    }
                });
            }
        });
        Self { port, state, task }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/events?token=hush", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().expect("requests").clone()
    }

    /// How many requests waited for their answer at once, at most.
    pub fn most(&self) -> usize {
        self.state.most.load(Ordering::SeqCst)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<ServerState>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (line, headers, body) = (String::new(), HashMap::new(), Vec::new());
        let mut request = Request { line, headers, body, at: Instant::now() };
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
        request.at = Instant::now();
        state.most.fetch_max(state.inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(state.pause).await;
        let answer = (state.script)(&request);
        state.requests.lock().expect("requests").push(request);
        state.inside.fetch_sub(1, Ordering::SeqCst);
        match answer {
            Some(head) => {
                let end = if head.contains("\r\n\r\n") { "" } else { "\r\ncontent-length: 0\r\n\r\n" };
                let text = format!("HTTP/1.1 {head}{end}");
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            None => std::future::pending::<()>().await,
        }
    }
}
