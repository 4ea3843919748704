//! The processes of the system, each as the program starts it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusBuilder;
use postrider::kafka::Consumer;
use postrider::mysql::Outbox;
use serde_json::{Value, json};
use story::process::{serve, setting};
use tokio::net::TcpListener;

use crate::adapters::consumers::Topics;
use crate::adapters::figures::Figures;
use crate::adapters::persistence::MySqlLedger;
use crate::adapters::{api, schema};

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

/// Serves `/metrics` of this process where `METRICS` says, as in `127.0.0.1:9400`.
async fn serve_metrics() -> Ended {
    let Ok(address) = setting("METRICS") else { return Ok(()) };
    let listener = TcpListener::bind(&address).await?;
    println!("metrics on {}", listener.local_addr()?);
    let metrics = PrometheusBuilder::new().install_recorder()?;
    let router = Router::new().route("/metrics", get(async move || metrics.render()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}

/// One of the consumers, until it is asked to end.
pub async fn consumer(make: impl FnOnce(&Outbox, &Topics) -> Consumer<Outbox>) -> Ended {
    let pool = schema::connect(&read_database()?).await?;
    let outbox = Outbox::connect(&pool).await?;
    serve_metrics().await?;
    let consumer = make(&outbox, &Topics::from_environment()?).start().await?;
    println!("consuming");
    postrider::asked_to_end().await;
    Ok(consumer.stop().await?)
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
