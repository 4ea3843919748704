//! The API over HTTP. It answers when the transaction is committed, whatever Kafka does.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::adapters::figures::Figures;
use crate::adapters::persistence::MySqlLedger;
use crate::application::port::{LedgerPort, UnitOfWork};
use crate::application::problem::{Answer, Problem};
use crate::application::service::deposit::DepositCommand;
use crate::application::service::reversal::ReversalCommand;
use crate::application::service::transfer::TransferCommand;
use crate::application::service::withdrawal::WithdrawalCommand;
use crate::application::service::{
    DepositService, Receipt, ReversalService, TransferService, WithdrawalService,
};
use crate::domain::refusal::Refusal;
use crate::domain::{AccountId, TransactionId};

type Reply = (StatusCode, Json<Value>);

/// The routes.
pub fn router(ledger: MySqlLedger) -> Router {
    Router::new()
        .route("/deposits", post(deposit))
        .route("/withdrawals", post(withdraw))
        .route("/transfers", post(transfer))
        .route("/transactions/{id}/reversal", post(reverse))
        .route("/accounts/{id}/balance", get(balance))
        .route("/figures", get(figures))
        .with_state(ledger)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneAccount {
    transaction_id: TransactionId,
    account_id: AccountId,
    amount: i64,
    memo: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TwoAccounts {
    transaction_id: TransactionId,
    from_account_id: AccountId,
    to_account_id: AccountId,
    amount: i64,
    memo: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfTransaction {
    transaction_id: TransactionId,
}

fn replied(answer: Answer<Receipt>) -> Reply {
    match answer {
        Ok(Receipt { transaction, tries, repeated }) => {
            let body = json!({ "transactionId": transaction, "tries": tries, "repeated": repeated });
            (StatusCode::OK, Json(body))
        }
        Err(problem) => refused(problem),
    }
}

fn refused(problem: Problem) -> Reply {
    let status = match &problem {
        Problem::Refused(Refusal::UnknownTransaction(_)) => StatusCode::NOT_FOUND,
        Problem::Refused(_) | Problem::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Problem::Conflict => StatusCode::CONFLICT,
        Problem::Broken(error) => {
            tracing::error!(error = %error, "a transaction failed");
            let body = json!({ "error": "the ledger can't answer now" });
            return (StatusCode::SERVICE_UNAVAILABLE, Json(body));
        }
    };
    (status, Json(json!({ "error": problem.to_string() })))
}

async fn deposit(State(ledger): State<MySqlLedger>, Json(asked): Json<OneAccount>) -> Reply {
    let OneAccount { transaction_id: transaction, account_id: account, amount, memo } = asked;
    let command = DepositCommand { transaction, account, amount, memo };
    replied(DepositService(&ledger).deposit(&command, OffsetDateTime::now_utc()).await)
}

async fn withdraw(State(ledger): State<MySqlLedger>, Json(asked): Json<OneAccount>) -> Reply {
    let OneAccount { transaction_id: transaction, account_id: account, amount, memo } = asked;
    let command = WithdrawalCommand { transaction, account, amount, memo };
    replied(WithdrawalService(&ledger).withdraw(&command, OffsetDateTime::now_utc()).await)
}

async fn transfer(State(ledger): State<MySqlLedger>, Json(asked): Json<TwoAccounts>) -> Reply {
    let TwoAccounts { transaction_id: transaction, from_account_id: from, to_account_id: to, amount, memo } =
        asked;
    let command = TransferCommand { transaction, from, to, amount, memo };
    replied(TransferService(&ledger).transfer(&command, OffsetDateTime::now_utc()).await)
}

async fn reverse(
    State(ledger): State<MySqlLedger>,
    Path(of): Path<TransactionId>,
    Json(asked): Json<OfTransaction>,
) -> Reply {
    let command = ReversalCommand { transaction: asked.transaction_id, of };
    replied(ReversalService(&ledger).reverse(&command, OffsetDateTime::now_utc()).await)
}

async fn balance(State(ledger): State<MySqlLedger>, Path(account): Path<AccountId>) -> Reply {
    let read = async { ledger.begin().await?.balance(account).await };
    match read.await {
        Ok(balance) => (StatusCode::OK, Json(json!({ "accountId": account, "amount": balance.amount }))),
        Err(problem) => refused(problem),
    }
}

async fn figures(State(ledger): State<MySqlLedger>) -> Reply {
    match Figures::count(ledger.pool()).await {
        Ok(figures) => (StatusCode::OK, Json(json!(figures))),
        Err(problem) => refused(problem),
    }
}
