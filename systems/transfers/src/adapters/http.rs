//! The transaction service over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use postrider::ErrorKind;
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::postgres::PgUnits;
use crate::application::ports::{Origin, Units};
use crate::application::transfer::{TransferCommand, TransferError, TransferService};
use crate::domain::{Account, Refusal};

struct Service<U> {
    accounts: PgUnits,
    transfers: TransferService<U>,
}

#[derive(Deserialize, Serialize)]
struct AccountBody {
    id: String,
    balance: i64,
}

#[derive(Deserialize)]
struct TransferBody {
    #[serde(rename = "transactionId")]
    transaction_id: Uuid,
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
    routes(units.clone(), TransferService::new(units))
}

/// The same with other units of work for the transfers.
pub fn routes<U: Units + 'static>(accounts: PgUnits, transfers: TransferService<U>) -> Router {
    Router::new()
        .route("/accounts", post(open::<U>))
        .route("/accounts/{id}", get(account::<U>))
        .route("/transfers", post(transfer::<U>))
        .route("/healthz", get(async || "alive\n"))
        .with_state(Arc::new(Service { accounts, transfers }))
}

/// PostgreSQL can't keep it, so no database has to be asked.
const NUL: char = '\0';

async fn open<U>(State(service): State<Arc<Service<U>>>, Json(body): Json<AccountBody>) -> Response {
    if body.id.is_empty() || body.id.len() > 100 || body.id.contains(NUL) || body.balance < 0 {
        let rule = "an account must have an id of 1 to 100 bytes without a NUL character, and a balance of at least 0";
        return refused(StatusCode::UNPROCESSABLE_ENTITY, rule);
    }
    match service.accounts.open_account(&Account { id: body.id, balance: body.balance }).await {
        Ok(true) => StatusCode::CREATED.into_response(),
        Ok(false) => refused(StatusCode::CONFLICT, "the account exists already"),
        Err(error) => failed(&error, "the outcome is unknown; ask for the account"),
    }
}

async fn account<U>(State(service): State<Arc<Service<U>>>, Path(id): Path<String>) -> Response {
    if id.contains(NUL) {
        return refused(StatusCode::NOT_FOUND, "there is no such account");
    }
    match service.accounts.account(&id).await {
        Ok(Some(Account { id, balance })) => Json(AccountBody { id, balance }).into_response(),
        Ok(None) => refused(StatusCode::NOT_FOUND, "there is no such account"),
        Err(error) => failed(&error, "the service is unavailable; ask again"),
    }
}

async fn transfer<U: Units>(
    State(service): State<Arc<Service<U>>>,
    headers: HeaderMap,
    Json(body): Json<TransferBody>,
) -> Response {
    let trace = headers.get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let TransferBody { transaction_id: id, from, to, amount, memo, attributes } = body;
    if [&from, &to, &memo].into_iter().chain(attributes.values()).any(|text| text.contains(NUL)) {
        let rule = "from, to, memo and attributes must not contain a NUL character";
        return refused(StatusCode::UNPROCESSABLE_ENTITY, rule);
    }
    let command = TransferCommand { id, from, to, amount, memo, origin: Origin { trace, attributes } };
    match service.transfers.transfer(command, now()).await {
        Ok(done) => {
            let status = if done.repeated { StatusCode::OK } else { StatusCode::CREATED };
            let answer = json!({ "transactionId": done.transaction.id, "eventId": done.event_id });
            (status, Json(answer)).into_response()
        }
        Err(TransferError::Refused(refusal)) => {
            let status = match &refusal {
                Refusal::NoSuchAccount(_) => StatusCode::NOT_FOUND,
                Refusal::IdTaken(_) => StatusCode::CONFLICT,
                _ => StatusCode::UNPROCESSABLE_ENTITY,
            };
            refused(status, &refusal.to_string())
        }
        Err(TransferError::Failed(fault)) => match unrecordable(&*fault) {
            Some(sentence) => refused(StatusCode::UNPROCESSABLE_ENTITY, sentence),
            None => failed(&*fault, "the outcome is unknown; send the same transfer id again"),
        },
    }
}

/// Why the event of a transfer can never be recorded, if that is what failed: a name of an attribute that is reserved, a memo or attributes
/// that are too large. Nothing has happened then, and asking again does not help.
fn unrecordable<'a>(fault: &'a (dyn std::error::Error + Send + Sync + 'static)) -> Option<&'a str> {
    let error = fault.downcast_ref::<postrider::Error>()?;
    (error.kind() == ErrorKind::Invalid).then(|| error.message())
}

/// Now, in milliseconds since 1970.
pub fn now() -> i64 {
    i64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

fn refused(status: StatusCode, sentence: &str) -> Response {
    (status, Json(json!({ "error": sentence }))).into_response()
}

/// What failed is for the log; a client learns what is known, and what to do.
fn failed(error: &dyn std::error::Error, known: &str) -> Response {
    tracing::error!(%error, "a request failed");
    refused(StatusCode::SERVICE_UNAVAILABLE, known)
}
