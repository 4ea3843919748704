//! What the relay answers over HTTP: `/metrics`, `/healthz` and `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use postrider::{StateQuery, Store};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

use crate::Failure;

/// How long the database may take to show that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the endpoints know of the relay.
#[derive(Clone)]
pub(crate) struct Pulse {
    metrics: PrometheusHandle,
    store: Arc<OnceCell<Arc<dyn Store>>>,
    stopping: Arc<AtomicBool>,
}

impl Pulse {
    /// Begins to collect metrics.
    pub(crate) fn new() -> Result<Self, Failure> {
        let metrics = PrometheusBuilder::new().install_recorder()?;
        Ok(Self { metrics, store: Arc::new(OnceCell::new()), stopping: Arc::new(AtomicBool::new(false)) })
    }

    /// The relay has begun to work on this store.
    pub(crate) fn started(&self, store: &Arc<dyn Store>) {
        let _ = self.store.set(Arc::clone(store));
    }

    /// The relay is stopping: it is ready for nothing more.
    pub(crate) fn stops(&self) {
        self.stopping.store(true, Ordering::Release);
    }
}

/// Binds the address, so that a port that is taken is found out before anything starts.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let what = match error.kind() {
            std::io::ErrorKind::AddrInUse => "somebody else listens there".to_owned(),
            _ => error.to_string(),
        };
        format!("http.listen: {address} can't be listened on: {what}; choose another address, or \"off\"")
            .into()
    })
}

/// Answers until the future is ready.
pub(crate) async fn serve(
    listener: TcpListener,
    pulse: Pulse,
    end: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let upkeep = pulse.metrics.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep();
        }
    });
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .with_state(pulse);
    axum::serve(listener, router).with_graceful_shutdown(end).await?;
    Ok(())
}

async fn metrics(State(pulse): State<Pulse>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], pulse.metrics.render())
}

/// Ready: the database answers, and lanes are held or stood by for.
async fn ready(State(pulse): State<Pulse>) -> (StatusCode, &'static str) {
    if pulse.stopping.load(Ordering::Acquire) {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
    }
    let Some(store) = pulse.store.get() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "starting: the database has not answered yet\n");
    };
    // Of an event that nobody has: the cheapest question.
    let nobody = StateQuery { event_id: Some(postrider::Uuid::nil()), limit: 1, ..StateQuery::default() };
    match tokio::time::timeout(PATIENCE, store.states(&nobody)).await {
        Ok(Ok(_)) => (StatusCode::OK, "ready\n"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
    }
}
