//! The stub of Toss: takes charges, each idempotency key once, gives them back, and counts both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
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
    /// How many charges were given back.
    #[serde(default)]
    pub refunds: u64,
    /// The most charges that were under way at once.
    #[serde(default)]
    pub most_at_once: u64,
    /// How much was taken and not given back, in won.
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
    /// Answer with 503 and take nothing.
    #[serde(default)]
    pub down: Option<bool>,
    /// Do the work and answer with 503.
    #[serde(default)]
    pub lose: Option<bool>,
}

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charged {
    Taken(i64),
    Refused,
    Refunded,
    Void,
}

#[derive(Debug, Default)]
struct Books {
    results: BTreeMap<String, Charged>,
    figures: Figures,
    under_way: u64,
    refuse: bool,
    down: bool,
    lose: bool,
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

    /// Its routes: `POST /v1/charges`, `POST /v1/charges/{key}/void`, `POST /control`, `GET /figures`.
    pub fn router(self) -> Router {
        Router::new()
            .route("/v1/charges", post(charge))
            .route("/v1/charges/{key}/void", post(void))
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
        books.down = control.down.unwrap_or(books.down);
        books.lose = control.lose.unwrap_or(books.lose);
        if let Some(hold) = control.hold {
            self.gate.hold(hold);
        }
    }
}

impl Books {
    /// Whether the money of a key is taken, now or before.
    fn charge(&mut self, key: String, amount: i64) -> bool {
        if let Some(before) = self.results.get(&key) {
            return matches!(before, Charged::Taken(_));
        }
        let taken = !self.refuse;
        if taken {
            self.figures.charges += 1;
            self.figures.won += amount;
        } else {
            self.figures.refused += 1;
        }
        self.results.insert(key, if taken { Charged::Taken(amount) } else { Charged::Refused });
        taken
    }

    /// Whether the money of a key was given back, now or before. It is not taken again.
    fn void(&mut self, key: String) -> bool {
        let after = match self.results.get(&key) {
            Some(Charged::Taken(amount)) => {
                self.figures.refunds += 1;
                self.figures.won -= amount;
                Charged::Refunded
            }
            Some(Charged::Refunded) => Charged::Refunded,
            Some(Charged::Refused | Charged::Void) | None => Charged::Void,
        };
        self.results.insert(key, after);
        after == Charged::Refunded
    }
}

type Reply = (StatusCode, Json<Value>);

fn away() -> Reply {
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "error": "away" })))
}

#[derive(Debug, Deserialize)]
struct Charge {
    amount: i64,
}

async fn charge(State(toss): State<Toss>, headers: HeaderMap, Json(charge): Json<Charge>) -> Reply {
    let key = headers.get("Idempotency-Key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    if key.is_empty() {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "Idempotency-Key must be set" })));
    }
    let (taken, lose) = {
        let mut books = toss.books();
        books.figures.requests += 1;
        if books.down {
            return away();
        }
        books.under_way += 1;
        books.figures.most_at_once = books.figures.most_at_once.max(books.under_way);
        (books.charge(key, charge.amount), books.lose)
    };
    toss.gate.pass().await;
    toss.books().under_way -= 1;
    match taken {
        _ if lose => away(),
        true => (StatusCode::OK, Json(json!({ "status": "DONE" }))),
        false => (StatusCode::PAYMENT_REQUIRED, Json(json!({ "status": "ABORTED" }))),
    }
}

async fn void(State(toss): State<Toss>, Path(key): Path<String>) -> Reply {
    let mut books = toss.books();
    books.figures.requests += 1;
    if books.down {
        return away();
    }
    let refunded = books.void(key);
    if books.lose { away() } else { (StatusCode::OK, Json(json!({ "refunded": refunded }))) }
}

async fn control(State(toss): State<Toss>, Json(control): Json<Control>) -> StatusCode {
    toss.control(&control);
    StatusCode::OK
}
