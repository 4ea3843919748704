//! The API: signals, attempts, backtests and the kill switch, over HTTP.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::adapters::now;
use crate::application::{Answer, Exchange, Fault, Operations, Trading, Transactions, Work};
use crate::domain::about::new_trace;
use crate::domain::{About, Side, Signal};

/// What the API does.
#[derive(Clone)]
pub struct Api<D, X> {
    /// The database, to look things up.
    pub transactions: D,
    /// Backtests.
    pub backtests: crate::application::Backtests<D, X>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subject {
    owner_id: String,
    strategy_key: String,
    market: String,
}

impl Subject {
    fn about(self, headers: &HeaderMap) -> Answer<About> {
        let texts =
            [("ownerId", &self.owner_id), ("strategyKey", &self.strategy_key), ("market", &self.market)];
        let is_wrong = |text: &str| text.is_empty() || text.len() > LONGEST || text.contains('\0');
        if let Some((name, _)) = texts.into_iter().find(|(_, text)| is_wrong(text)) {
            let rule = format!("{name} must have 1 to {LONGEST} bytes and no NUL character");
            return Err(Fault::Invalid(rule));
        }
        let given = headers.get("traceparent").and_then(|trace| trace.to_str().ok());
        let trace = given.map_or_else(new_trace, str::to_owned);
        let Self { owner_id: owner, strategy_key: strategy, market } = self;
        Ok(About { owner, strategy, market, trace, cause: None })
    }
}

/// The longest name of an owner, a strategy or a market, in bytes.
const LONGEST: usize = 200;

#[derive(Deserialize)]
struct NewSignal {
    id: Option<Uuid>,
    #[serde(flatten)]
    subject: Subject,
    side: Side,
    price: i64,
    volume: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KillSwitch {
    engaged: bool,
    owner_id: String,
}

/// The routes.
pub fn router<D: Transactions, X: Exchange>(api: Api<D, X>) -> Router {
    Router::new()
        .route("/signals", post(signal))
        .route("/intents/{id}", get(intent))
        .route("/intents/{id}/attempts", post(attempt))
        .route("/backtests", post(backtest))
        .route("/kill-switch", post(kill_switch))
        .with_state(api)
}

/// 202 with what was made, 409 or 422 with why not, or 503. What failed outside is logged here, and the caller only learns that something did.
fn accepted(answer: Answer<serde_json::Value>) -> Response {
    match answer {
        Ok(made) => (StatusCode::ACCEPTED, Json(made)).into_response(),
        Err(Fault::Reject(why) | Fault::Missing(why)) => {
            (StatusCode::CONFLICT, Json(json!({ "error": why }))).into_response()
        }
        Err(Fault::Invalid(why)) => {
            (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "error": why }))).into_response()
        }
        Err(Fault::Retry(why)) => {
            tracing::error!(error = %why, "a request failed");
            let sentence = "everbit can't do that at the moment; try again";
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "error": sentence }))).into_response()
        }
    }
}

async fn signal<D: Transactions, X: Exchange>(
    State(api): State<Api<D, X>>,
    headers: HeaderMap,
    Json(new): Json<NewSignal>,
) -> Response {
    let take = async {
        let NewSignal { id, subject, side, price, volume } = new;
        let about = subject.about(&headers)?;
        let signal = Signal { id: id.unwrap_or_else(Uuid::new_v4), about, side, price, volume };
        Trading::new(api.transactions).take(&signal, now()).await
    };
    accepted(take.await.map(|id| json!({ "intentId": id })))
}

async fn attempt<D: Transactions, X: Exchange>(
    State(api): State<Api<D, X>>,
    Path(id): Path<Uuid>,
) -> Response {
    accepted(Trading::new(api.transactions).try_again(id).await.map(|no| json!({ "attemptNo": no })))
}

async fn intent<D: Transactions, X: Exchange>(
    State(api): State<Api<D, X>>,
    Path(id): Path<Uuid>,
) -> Response {
    let look = async {
        let mut work = api.transactions.begin().await?;
        let attempts = work.attempts(id).await?;
        let attempts: Vec<_> = attempts
            .iter()
            .map(|attempt| json!({ "attemptNo": attempt.no, "status": attempt.status.as_str(), "orderId": attempt.order_id }))
            .collect();
        Ok(json!({ "intentId": id, "attempts": attempts }))
    };
    accepted(look.await)
}

async fn backtest<D: Transactions, X: Exchange>(
    State(api): State<Api<D, X>>,
    headers: HeaderMap,
    Json(subject): Json<Subject>,
) -> Response {
    let ask = async { api.backtests.ask(&subject.about(&headers)?, now()).await };
    accepted(ask.await.map(|id| json!({ "jobId": id })))
}

async fn kill_switch<D: Transactions, X: Exchange>(
    State(api): State<Api<D, X>>,
    headers: HeaderMap,
    Json(switch): Json<KillSwitch>,
) -> Response {
    let subject = Subject { owner_id: switch.owner_id, strategy_key: "*".into(), market: "*".into() };
    let operations = Operations::new(api.transactions);
    let turn = async { operations.turn_kill_switch(switch.engaged, &subject.about(&headers)?, now()).await };
    accepted(turn.await.map(|id| json!({ "eventId": id })))
}
