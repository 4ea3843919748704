//! The API: commands of users over HTTP. It answers after its commit, and delivers nothing.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{delete, post};
use axum::{Json, Router};
use postrider::ErrorKind;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Outbox;
use super::command_service::CommandService;
use crate::adapters::toss::Toss;
use crate::billing::{Order, Refusal, charging};
use crate::contracts::{Answer, Fault, UserId};

#[derive(Clone)]
struct Api {
    service: CommandService,
    toss: Toss,
}

type Reply = (StatusCode, Json<Value>);

/// The routes of the API.
pub fn router(outbox: &Outbox, toss: Toss) -> Router {
    Router::new()
        .route("/subscriptions", post(subscribe))
        .route("/subscriptions/{id}/cancel", post(cancel))
        .route("/subscriptions/{id}/plan", post(change_plan))
        .route("/billing-keys", post(issue_key))
        .route("/billing-keys/{id}", delete(delete_key))
        .route("/{context}/{fact}", post(report))
        .with_state(Api { service: CommandService::new(outbox), toss })
}

/// The body of `POST /subscriptions`.
#[derive(Debug, Deserialize)]
struct Subscribe {
    subscription_id: Uuid,
    guild_id: Uuid,
    user_id: Uuid,
    #[serde(default)]
    billing_key_id: Option<Uuid>,
    plan_code: String,
}

/// Flow 1. The caller chooses the id, so that a repeated request goes on where the first one stopped.
async fn subscribe(State(api): State<Api>, Json(body): Json<Subscribe>) -> Reply {
    let Subscribe { subscription_id, guild_id, user_id, billing_key_id, plan_code } = body;
    let order = Order { subscription_id, guild_id, user_id, billing_key_id, plan_code };
    let done = async {
        let now = api.service.now().await?;
        charging::subscribe(&order, now, &api.service, &api.toss).await
    };
    match done.await {
        Ok(status) if status == "active" => (StatusCode::OK, Json(json!({ "status": status }))),
        Ok(status) => (StatusCode::PAYMENT_REQUIRED, Json(json!({ "status": status }))),
        Err(fault) => failed(&fault),
    }
}

#[derive(Debug, Deserialize)]
struct Cancel {
    cancel_at_period_end: bool,
}

async fn cancel(State(api): State<Api>, Path(id): Path<Uuid>, Json(body): Json<Cancel>) -> Reply {
    reply(api.service.cancel(id, body.cancel_at_period_end).await)
}

#[derive(Debug, Deserialize)]
struct ChangePlan {
    plan_code: String,
}

async fn change_plan(State(api): State<Api>, Path(id): Path<Uuid>, Json(body): Json<ChangePlan>) -> Reply {
    reply(api.service.change_plan(id, &body.plan_code).await)
}

#[derive(Debug, Deserialize)]
struct IssueKey {
    billing_key_id: Uuid,
    user_id: Uuid,
}

async fn issue_key(State(api): State<Api>, Json(body): Json<IssueKey>) -> Reply {
    reply(api.service.issue_key(body.billing_key_id, body.user_id).await.map(|()| true))
}

/// Whose key is deleted.
#[derive(Debug, Deserialize)]
struct Owner {
    user_id: UserId,
}

/// A key of another user is none, as it is when it is used.
async fn delete_key(State(api): State<Api>, Path(id): Path<Uuid>, Query(owner): Query<Owner>) -> Reply {
    reply(api.service.delete_key(id, owner.user_id).await)
}

/// What the services of Recovery, Member and Identity report. Guilds are the bot's.
async fn report(
    State(api): State<Api>,
    Path((context, fact)): Path<(String, String)>,
    Json(payload): Json<Value>,
) -> Reply {
    if !["recovery", "member", "identity"].contains(&context.as_str()) {
        return (StatusCode::NOT_FOUND, Json(json!({ "error": "there is nothing here" })));
    }
    reply(api.service.report(&context, &fact, payload).await)
}

/// 200 after the commit, 404 if there was nothing to change.
pub(super) fn reply(done: Answer<bool>) -> Reply {
    match done {
        Ok(true) => (StatusCode::OK, Json(json!({ "status": "ok" }))),
        Ok(false) => (StatusCode::NOT_FOUND, Json(json!({ "error": "there is nothing to change" }))),
        Err(fault) => failed(&fault),
    }
}

fn refused(why: &str) -> Reply {
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "error": why })))
}

/// The cause goes to the log. The caller learns that nothing is certain, and may ask again with the same ids.
fn failed(fault: &Fault) -> Reply {
    if let Some(refusal) = fault.downcast_ref::<Refusal>() {
        let status = match refusal {
            Refusal::NoSuchKey | Refusal::NotPaidFor => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::KeyIdTaken | Refusal::OrderedOtherwise | Refusal::GuildSubscribed => {
                StatusCode::CONFLICT
            }
        };
        return (status, Json(json!({ "error": refusal.to_string() })));
    }
    if fault.is::<serde_json::Error>() {
        return refused("the payload must have the fields of the event");
    }
    if let Some(error) = fault.downcast_ref::<postrider::Error>()
        && error.kind() == ErrorKind::Invalid
    {
        return refused(error.message());
    }
    tracing::error!(error = %fault, "a request failed");
    (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "error": "the request failed; ask again" })))
}
