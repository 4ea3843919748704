//! The push service, and the reader of backtest results.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;

type Kept = Arc<Mutex<(Vec<Value>, Vec<Value>)>>;

/// `POST /push` takes a notice, `POST /results` the result of a backtest; `GET` on either lists what came.
pub fn router() -> Router {
    Router::new()
        .route(
            "/push",
            post(async |State(kept): State<Kept>, Json(body): Json<Value>| keep(&kept, body, true)),
        )
        .route("/push", get(async |State(kept): State<Kept>| Json(list(&kept, true))))
        .route(
            "/results",
            post(async |State(kept): State<Kept>, Json(body): Json<Value>| keep(&kept, body, false)),
        )
        .route("/results", get(async |State(kept): State<Kept>| Json(list(&kept, false))))
        .with_state(Kept::default())
}

fn keep(kept: &Kept, body: Value, is_push: bool) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if is_push { kept.0.push(body) } else { kept.1.push(body) }
}

fn list(kept: &Kept, is_push: bool) -> Vec<Value> {
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if is_push { kept.0.clone() } else { kept.1.clone() }
}
