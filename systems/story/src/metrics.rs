//! The metrics of a process, for Prometheus.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};
use tokio::net::TcpListener;

/// Histograms by the ends of their names: those of several processes can be added up, which quantiles can't.
const BUCKETS: [(&str, &[f64]); 3] = [
    ("_seconds", &[0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0, 3600.0]),
    ("_attempts", &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0]),
    ("_batch_size", &[1.0, 10.0, 100.0, 500.0, 1000.0]),
];

/// Begins to collect, once in a process, and returns the routes: `/metrics`.
pub fn collect() -> Result<Router, BuildError> {
    let builder = BUCKETS.iter().try_fold(PrometheusBuilder::new(), |builder, (suffix, buckets)| {
        builder.set_buckets_for_metric(Matcher::Suffix((*suffix).to_owned()), buckets)
    });
    let handle = builder?.install_recorder()?;
    let metrics = async move || ([(CONTENT_TYPE, "text/plain; version=0.0.4")], handle.render());
    Ok(Router::new().route("/metrics", get(metrics)))
}

/// For a process that serves nothing else: serves them on `METRICS`, as in `127.0.0.1:9400`, and says so on stdout. Without that variable
/// nothing is collected.
pub async fn serve_aside() -> std::io::Result<()> {
    let Ok(address) = crate::process::setting("METRICS") else { return Ok(()) };
    let listener = TcpListener::bind(&address).await?;
    println!("metrics on {}", listener.local_addr()?);
    let router = collect().map_err(std::io::Error::other)?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}
