//! The metrics of a worker, for Prometheus.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder};

/// The buckets of histograms, in seconds: those of several workers can be added up.
const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// Begins to collect, and returns what answers `/metrics`.
pub fn collect() -> Result<Router, BuildError> {
    let handle = PrometheusBuilder::new().set_buckets(SECONDS)?.install_recorder()?;
    let metrics = move || {
        let text = handle.render();
        std::future::ready(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text))
    };
    Ok(Router::new().route("/metrics", get(metrics)))
}
