//! The stub of Toss: takes charges, each idempotency key once, and counts them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::gate::Gate;

/// What the gateway did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// How many requests came, repeated ones included.
    pub requests: u64,
    /// How many times money was taken.
    pub charges: u64,
    /// How many charges were refused.
    pub refused: u64,
    /// How much was taken, in won.
    pub won: i64,
}

/// How the gateway is to behave from now on. What is absent stays as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Control {
    /// Refuse new charges.
    #[serde(default)]
    pub refuse: Option<bool>,
    /// Do the work and hold the answers back.
    #[serde(default)]
    pub hold: Option<bool>,
}

#[derive(Debug, Default)]
struct Books {
    results: BTreeMap<String, bool>,
    figures: Figures,
    refuse: bool,
}

/// The gateway. Clones share its books.
#[derive(Debug, Clone, Default)]
pub struct Toss {
    books: Arc<Mutex<Books>>,
    gate: Gate,
}

impl Toss {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its routes: `POST /v1/charges`, `POST /control`, `GET /figures`.
    pub fn router(self) -> Router {
        Router::new()
            .route("/v1/charges", post(charge))
            .route("/control", post(control))
            .route("/figures", get(async |State(toss): State<Self>| Json(toss.figures())))
            .with_state(self)
    }

    /// What it did so far.
    pub fn figures(&self) -> Figures {
        self.books().figures.clone()
    }

    /// Makes it behave differently.
    pub fn control(&self, control: &Control) {
        let mut books = self.books();
        books.refuse = control.refuse.unwrap_or(books.refuse);
        if let Some(hold) = control.hold {
            self.gate.hold(hold);
        }
    }
}

#[derive(Debug, Deserialize)]
struct Charge {
    amount: i64,
}

async fn charge(
    State(toss): State<Toss>,
    headers: HeaderMap,
    Json(charge): Json<Charge>,
) -> (StatusCode, Json<Value>) {
    let key = headers.get("Idempotency-Key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    if key.is_empty() {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "Idempotency-Key must be set" })));
    }
    let taken = {
        let mut books = toss.books();
        books.figures.requests += 1;
        match books.results.get(&key) {
            Some(taken) => *taken,
            None => {
                let taken = !books.refuse;
                books.results.insert(key, taken);
                if taken {
                    books.figures.charges += 1;
                    books.figures.won += charge.amount;
                } else {
                    books.figures.refused += 1;
                }
                taken
            }
        }
    };
    toss.gate.pass().await;
    match taken {
        true => (StatusCode::OK, Json(json!({ "status": "DONE" }))),
        false => (StatusCode::PAYMENT_REQUIRED, Json(json!({ "status": "ABORTED" }))),
    }
}

async fn control(State(toss): State<Toss>, Json(control): Json<Control>) -> StatusCode {
    toss.control(&control);
    StatusCode::OK
}
