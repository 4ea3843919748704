//! The processes of the system, each as the program starts it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};
use axum::{Json, Router};
use postrider::kafka::Consumer;
use postrider::mysql::Outbox;
use serde_json::{Value, json};
use story::process::{serve, setting};

use crate::adapters::consumers::Topics;
use crate::adapters::figures::Figures;
use crate::adapters::persistence::MySqlLedger;
use crate::adapters::{api, inbox, schema};

type Ended = Result<(), Box<dyn std::error::Error>>;

/// The database of the consumers: `READ_DATABASE_URL`, or the ledger's.
fn read_database() -> Result<String, String> {
    setting("READ_DATABASE_URL").or_else(|_| setting("DATABASE_URL"))
}

/// Creates all tables.
pub async fn migrate() -> Ended {
    schema::migrate(&schema::connect(&setting("DATABASE_URL")?).await?).await?;
    schema::migrate_consumers(&schema::connect(&read_database()?).await?).await?;
    println!("migrated");
    Ok(())
}

/// The API of the ledger. It knows no broker.
pub async fn api() -> Ended {
    let pool = schema::connect(&setting("DATABASE_URL")?).await?;
    let outbox = Outbox::connect(&pool).await?;
    Ok(serve(api::router(MySqlLedger::new(pool, outbox))).await?)
}

/// Prints the figures of the outbox.
pub async fn figures() -> Ended {
    let pool = schema::connect(&setting("DATABASE_URL")?).await?;
    println!("{}", json!(Figures::count(&pool).await?));
    Ok(())
}

/// One of the consumers, until it is asked to end; it fails if the consumer ends by itself. It serves `/metrics` where `METRICS` says, as in `127.0.0.1:9400`.
pub async fn consumer(make: impl FnOnce(&Outbox, &Topics) -> Consumer<Outbox>) -> Ended {
    let pool = schema::connect(&read_database()?).await?;
    let outbox = Outbox::connect(&pool).await?;
    story::metrics::serve_aside().await?;
    if setting("READ_DATABASE_URL").is_ok() {
        tokio::spawn(inbox::forget_daily(outbox.clone()));
    }
    let mut consumer = tokio::select! {
        consumer = make(&outbox, &Topics::from_environment()?).start() => consumer?,
        () = postrider::asked_to_end() => return Ok(()),
    };
    println!("consuming");
    tokio::select! {
        () = postrider::asked_to_end() => Ok(consumer.stop().await?),
        error = consumer.failed() => Err(error.into()),
    }
}

/// A stub of Slack and PagerDuty: it takes what they would be told, and lists it.
pub async fn stub_alerts() -> Ended {
    type Told = Arc<Mutex<Vec<Value>>>;
    async fn take(State(told): State<Told>, uri: Uri, Json(body): Json<Value>) -> StatusCode {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(json!({ "path": uri.path(), "body": body }));
        StatusCode::ACCEPTED
    }
    async fn list(State(told): State<Told>) -> Json<Vec<Value>> {
        Json(told.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
    let router = Router::new().route("/slack", post(take)).route("/pagerduty", post(take));
    Ok(serve(router.route("/told", get(list)).with_state(Told::default())).await?)
}

/// A stub of the position system: it keeps the keys that it was told, each once.
pub async fn stub_positions() -> Ended {
    type Keys = Arc<Mutex<(u64, BTreeSet<String>)>>;
    async fn trigger(State(keys): State<Keys>, Json(body): Json<Value>) {
        let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.0 += 1;
        keys.1.insert(body["key"].as_str().unwrap_or_default().to_owned());
    }
    async fn count(State(keys): State<Keys>) -> Json<Value> {
        let keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        Json(json!({ "told": keys.0, "triggered": keys.1.len() }))
    }
    let router = Router::new().route("/triggers", post(trigger)).route("/count", get(count));
    Ok(serve(router.with_state(Keys::default())).await?)
}
