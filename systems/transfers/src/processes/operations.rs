//! A stub of operations: says on stdout what it is told. `LISTEN` for another address than a free port of loopback.

use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;

use super::Ended;

/// Serves `POST /alerts` until Ctrl-C or SIGTERM.
pub async fn run() -> Ended {
    story::process::serve(Router::new().route("/alerts", post(told))).await?;
    Ok(())
}

async fn told(Json(alert): Json<Value>) {
    println!("told: {}", alert["text"].as_str().unwrap_or("an alert without a text"));
}
