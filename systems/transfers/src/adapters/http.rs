//! The transaction service over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;

use super::postgres::PgUnits;
use crate::application::ports::Origin;
use crate::application::transfer::{TransferCommand, TransferError, TransferService};
use crate::domain::{Account, Refusal};

struct Service {
    units: PgUnits,
    transfers: TransferService<PgUnits>,
}

#[derive(Deserialize, Serialize)]
struct AccountBody {
    id: String,
    balance: i64,
}

#[derive(Deserialize)]
struct TransferBody {
    from: String,
    to: String,
    amount: i64,
    #[serde(default)]
    memo: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

/// The routes: `POST /accounts`, `GET /accounts/{id}`, `POST /transfers`, `GET /healthz`.
pub fn router(units: PgUnits) -> Router {
    let service = Arc::new(Service { transfers: TransferService::new(units.clone()), units });
    Router::new()
        .route("/accounts", post(open))
        .route("/accounts/{id}", get(account))
        .route("/transfers", post(transfer))
        .route("/healthz", get(async || "alive\n"))
        .with_state(service)
}

async fn open(State(service): State<Arc<Service>>, Json(body): Json<AccountBody>) -> Response {
    if body.id.is_empty() || body.id.len() > 100 || body.balance < 0 {
        let rule = "an account must have an id of 1 to 100 bytes and a balance of at least 0";
        return refused(StatusCode::UNPROCESSABLE_ENTITY, rule);
    }
    match service.units.open_account(&Account { id: body.id, balance: body.balance }).await {
        Ok(true) => StatusCode::CREATED.into_response(),
        Ok(false) => refused(StatusCode::CONFLICT, "the account exists already"),
        Err(error) => failed(&error),
    }
}

async fn account(State(service): State<Arc<Service>>, Path(id): Path<String>) -> Response {
    match service.units.account(&id).await {
        Ok(Some(Account { id, balance })) => Json(AccountBody { id, balance }).into_response(),
        Ok(None) => refused(StatusCode::NOT_FOUND, "there is no such account"),
        Err(error) => failed(&error),
    }
}

async fn transfer(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Json(body): Json<TransferBody>,
) -> Response {
    let trace = headers.get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let TransferBody { from, to, amount, memo, attributes } = body;
    let command = TransferCommand { from, to, amount, memo, origin: Origin { trace, attributes } };
    match service.transfers.transfer(command, now()).await {
        Ok(done) => {
            let answer = json!({ "transactionId": done.transaction.id, "eventId": done.event_id });
            (StatusCode::CREATED, Json(answer)).into_response()
        }
        Err(TransferError::Refused(refusal @ Refusal::NoSuchAccount(_))) => {
            refused(StatusCode::NOT_FOUND, &refusal.to_string())
        }
        Err(TransferError::Refused(refusal)) => {
            refused(StatusCode::UNPROCESSABLE_ENTITY, &refusal.to_string())
        }
        Err(TransferError::Failed(fault)) => failed(&*fault),
    }
}

/// Now, in milliseconds since 1970.
pub fn now() -> i64 {
    i64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

fn refused(status: StatusCode, sentence: &str) -> Response {
    (status, Json(json!({ "error": sentence }))).into_response()
}

/// What failed is for the log; a client learns that nothing has happened.
fn failed(error: &dyn std::error::Error) -> Response {
    tracing::error!(%error, "a request failed");
    refused(StatusCode::SERVICE_UNAVAILABLE, "the service is unavailable; nothing was changed")
}
