//! The exchange: it has seven answers to an order, and keeps every order and every request.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

/// What the exchange does with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conduct {
    /// 200: it has the order.
    #[default]
    Place,
    /// 400: it does not take the order.
    Refuse,
    /// 429: it was asked too often.
    Throttle,
    /// 500: it does not have the order, and does not say so.
    Fail,
    /// It never answers, and does not have the order.
    Silent,
    /// It has the order, and answers too late.
    Late,
    /// It has an order with this identifier already.
    Duplicate,
}

impl Conduct {
    /// All seven.
    pub const ALL: [Self; 7] =
        [Self::Place, Self::Refuse, Self::Throttle, Self::Fail, Self::Silent, Self::Late, Self::Duplicate];
}

#[derive(Default)]
struct Book {
    /// The orders, by identifier, with their volumes.
    orders: BTreeMap<String, i64>,
    /// How often each identifier was sent.
    requests: BTreeMap<String, u32>,
    /// What to do with an identifier; the others are placed.
    conducts: HashMap<String, Conduct>,
    /// How much of an identifier is executed; all of the others.
    executed: HashMap<String, i64>,
}

/// The exchange.
#[derive(Clone)]
pub struct ExchangeStub {
    book: Arc<Mutex<Book>>,
    /// While it is true, no order is answered.
    held: Arc<watch::Sender<bool>>,
    /// While it is some, candles are answered with this status.
    candles: Arc<Mutex<Option<u16>>>,
}

#[derive(Deserialize)]
struct NewOrder {
    identifier: String,
    volume: i64,
}

/// The routes: those of the exchange, and `/book`, `/conduct`, `/executed`, `/hold` and `/candle-status` for whoever directs
/// it.
pub fn router() -> Router {
    let stub = ExchangeStub {
        book: Arc::default(),
        held: Arc::new(watch::channel(false).0),
        candles: Arc::default(),
    };
    Router::new()
        .route("/orders", post(place))
        .route("/orders/{identifier}", get(find))
        .route("/candles/{market}", get(candles))
        .route("/book", get(book))
        .route("/conduct/{identifier}", put(conduct))
        .route("/executed/{identifier}", put(executed))
        .route("/hold", put(hold))
        .route("/candle-status", put(candle_status))
        .with_state(stub)
}

impl ExchangeStub {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An order, as it is now.
    fn shown(&self, identifier: &str, volume: i64) -> Response {
        let executed = self.book().executed.get(identifier).copied().unwrap_or(volume);
        let uuid = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, identifier.as_bytes());
        Json(json!({ "uuid": uuid, "identifier": identifier, "executed_volume": executed })).into_response()
    }
}

/// An order is placed before the answer is held back, so that whoever dies while it waits has an order.
async fn place(State(stub): State<ExchangeStub>, Json(order): Json<NewOrder>) -> Response {
    let conduct = {
        let mut book = stub.book();
        *book.requests.entry(order.identifier.clone()).or_default() += 1;
        let scripted = book.conducts.get(&order.identifier).copied().unwrap_or_default();
        let known = book.orders.contains_key(&order.identifier);
        let conduct = if known { Conduct::Duplicate } else { scripted };
        if matches!(conduct, Conduct::Place | Conduct::Late | Conduct::Duplicate) {
            book.orders.insert(order.identifier.clone(), order.volume);
        }
        conduct
    };
    let mut held = stub.held.subscribe();
    let _ = held.wait_for(|held| !held).await;
    match conduct {
        Conduct::Place => stub.shown(&order.identifier, order.volume),
        Conduct::Refuse => error(StatusCode::BAD_REQUEST, "invalid_price"),
        Conduct::Throttle => error(StatusCode::TOO_MANY_REQUESTS, "too_many_requests"),
        Conduct::Fail => error(StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        Conduct::Duplicate => error(StatusCode::BAD_REQUEST, "duplicate_identifier"),
        // Later than any client waits: it ends when the client hangs up.
        Conduct::Silent | Conduct::Late => std::future::pending().await,
    }
}

fn error(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

async fn find(State(stub): State<ExchangeStub>, Path(identifier): Path<String>) -> Response {
    let volume = stub.book().orders.get(&identifier).copied();
    match volume {
        Some(volume) => stub.shown(&identifier, volume),
        None => error(StatusCode::NOT_FOUND, "order_not_found"),
    }
}

async fn candles(State(stub): State<ExchangeStub>, Path(market): Path<String>) -> Response {
    let status = *stub.candles.lock().unwrap_or_else(PoisonError::into_inner);
    match status.and_then(|status| StatusCode::from_u16(status).ok()) {
        Some(status) => status.into_response(),
        None if market.starts_with("KRW-") => Json([100, 90, 120]).into_response(),
        None => error(StatusCode::NOT_FOUND, "market_not_found"),
    }
}

async fn book(State(stub): State<ExchangeStub>) -> Json<Value> {
    let book = stub.book();
    Json(json!({ "orders": book.orders, "requests": book.requests }))
}

async fn conduct(
    State(stub): State<ExchangeStub>,
    Path(identifier): Path<String>,
    Json(conduct): Json<Conduct>,
) {
    stub.book().conducts.insert(identifier, conduct);
}

/// So much of an order is executed by now, also of one that is still to come.
async fn executed(State(stub): State<ExchangeStub>, Path(identifier): Path<String>, Json(volume): Json<i64>) {
    stub.book().executed.insert(identifier, volume);
}

async fn hold(State(stub): State<ExchangeStub>, Json(held): Json<bool>) {
    stub.held.send_replace(held);
}

async fn candle_status(State(stub): State<ExchangeStub>, Json(status): Json<Option<u16>>) {
    *stub.candles.lock().unwrap_or_else(PoisonError::into_inner) = status;
}
