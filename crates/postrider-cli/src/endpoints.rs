//! What the relay answers over HTTP: `/metrics`, `/healthz` and `/readyz`.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use postrider::store::{StateQuery, Store};
use postrider::{Health, Running};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

use crate::config::{Config, Listen};
use crate::{Failure, database};

/// How long the database may take to show that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// The header of `/readyz` that only a relay sends: its version.
pub(crate) const RELAY: &str = "postrider-relay";

/// The header of `/readyz` that tells relays on one machine apart: see [`settings_id`].
pub(crate) const SETTINGS: &str = "postrider-settings";

/// What two processes with the same database and the same subscriptions have in common, and others do not; nothing where the
/// settings name no database or have no subscription, so that there is nothing to compare. It shows nothing of either.
pub(crate) fn settings_id(config: &Config) -> Option<String> {
    config.store.url.as_ref().filter(|_| !config.readers.is_empty())?;
    let mut names: Vec<&str> = config.readers.iter().map(|reader| reader.name.as_str()).collect();
    names.sort_unstable();
    let name = config.relay.name.as_deref().unwrap_or_default();
    let text = [&database::place(&config.store), &config.store.schema, name, &names.join("\n")].join("\n");
    Some(postrider::Uuid::new_v5(&postrider::Uuid::NAMESPACE_URL, text.as_bytes()).to_string())
}

/// Histograms by the ends of their names: those of several relays can be added up, which quantiles can't.
const BUCKETS: [(&str, &[f64]); 3] = [
    (
        "_seconds",
        &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0, 3600.0],
    ),
    ("_attempts", &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 50.0]),
    ("_batch_size", &[1.0, 10.0, 100.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0]),
];

/// What the endpoints know of the relay.
#[derive(Clone)]
pub(crate) struct Pulse {
    metrics: PrometheusHandle,
    relay: Arc<OnceCell<(Arc<dyn Store>, Health)>>,
    stopping: Arc<AtomicBool>,
    settings_id: String,
}

impl Pulse {
    /// Begins to collect metrics.
    pub(crate) fn new(config: &Config) -> Result<Self, Failure> {
        let metrics = BUCKETS.iter().try_fold(PrometheusBuilder::new(), |builder, (suffix, buckets)| {
            builder.set_buckets_for_metric(Matcher::Suffix((*suffix).to_owned()), buckets)
        });
        let metrics = metrics?.install_recorder()?;
        let settings_id = settings_id(config).unwrap_or_default();
        let (relay, stopping) = (Arc::new(OnceCell::new()), Arc::new(AtomicBool::new(false)));
        Ok(Self { metrics, relay, stopping, settings_id })
    }

    /// The relay has begun to work.
    pub(crate) fn started(&self, relay: &Running) {
        let _ = self.relay.set((Arc::clone(relay.store()), relay.health().clone()));
    }

    /// The relay is stopping: it is ready for nothing more.
    pub(crate) fn stops(&self) {
        self.stopping.store(true, Ordering::Release);
    }
}

/// Binds the address, so that a port that is taken is found out before anything starts. Where nobody has set it, a free port does
/// as well: a second relay on a machine starts without any setting.
pub(crate) async fn bind(listen: Listen) -> Result<TcpListener, Failure> {
    let address = listen.address;
    let mut bound = TcpListener::bind(address).await;
    if let Err(error) = &bound
        && error.kind() == ErrorKind::AddrInUse
        && !listen.is_set
    {
        bound = TcpListener::bind((address.ip(), 0)).await;
        if bound.is_ok() {
            tracing::warn!(
                "{address} is already in use, so the relay listens on a free port; set http.listen to choose one"
            );
        }
    }
    bound.map_err(|error| {
        let what = match error.kind() {
            ErrorKind::AddrInUse => "the address is already in use".to_owned(),
            _ => error.to_string(),
        };
        format!("http.listen: can't listen on {address}: {what}; choose another address, or \"off\"").into()
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
        .route("/readyz", get(readyz))
        .with_state(pulse);
    axum::serve(listener, router).with_graceful_shutdown(end).await?;
    Ok(())
}

async fn metrics(State(pulse): State<Pulse>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], pulse.metrics.render())
}

/// Whether the relay is ready, and which relay that is.
async fn readyz(State(pulse): State<Pulse>) -> impl IntoResponse {
    let (status, said) = ready(&pulse).await;
    let relay = [
        (HeaderName::from_static(RELAY), env!("CARGO_PKG_VERSION").to_owned()),
        (HeaderName::from_static(SETTINGS), pulse.settings_id),
    ];
    (status, relay, said)
}

/// Ready: the database answers, and every subscription has a lane manager that holds its lanes or stands by for them. A relay that
/// lost one is stopping; one whose subscription was removed is not ready.
async fn ready(pulse: &Pulse) -> (StatusCode, Cow<'static, str>) {
    if pulse.stopping.load(Ordering::Acquire) {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".into());
    }
    let Some((store, health)) = pulse.relay.get() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "starting: the database has not answered yet\n".into());
    };
    // Of an event that nobody has: the cheapest question.
    let nobody = StateQuery { event_id: Some(postrider::Uuid::nil()), limit: 1, ..StateQuery::default() };
    match tokio::time::timeout(PATIENCE, store.states(&nobody)).await {
        Ok(Ok(_)) => match &*health.problems() {
            [] => (StatusCode::OK, "ready\n".into()),
            problems => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", problems.join("\n")).into()),
        },
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n".into()),
    }
}
