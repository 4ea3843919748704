//! A web service with axum. It takes payments, and writes a receipt for each of them in the same process.
//!
//! The request only changes the order and records the event, so it is fast, and it never fails because of the receipt. The relay
//! reads the event and calls the handler. If the process is killed in between, the relay of the next process does it.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use postrider::sqlite::{Outbox, Tx};
use postrider::{Event, Failure, Received, Relay};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[derive(Serialize, Deserialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: i64,
    payment: i64,
}

/// What every request needs.
#[derive(Clone)]
struct Shop {
    db: SqlitePool,
    outbox: Outbox,
}

/// `POST /orders/7/payments`: the change and the event are one transaction.
async fn pay(State(shop): State<Shop>, Path(order): Path<i64>) -> Result<StatusCode, Failed> {
    let mut tx = shop.outbox.begin().await?;
    // The change comes first: it locks the order, so its events have the order of its changes.
    let change = "insert into orders (id, payments) values ($1, 1)
        on conflict (id) do update set payments = payments + 1 returning payments";
    let payment: i64 = sqlx::query_scalar(change).bind(order).fetch_one(&mut *tx).await?;
    shop.outbox.record(&mut tx, &OrderPaid { order, payment }).await?;
    tx.commit().await?;
    Ok(StatusCode::ACCEPTED)
}

/// `GET /orders/7/receipts`: the receipts so far, one line each.
async fn receipts(State(shop): State<Shop>, Path(order): Path<i64>) -> Result<String, Failed> {
    let select = "select text from receipts where order_id = $1 order by payment";
    let lines: Vec<String> = sqlx::query_scalar(select).bind(order).fetch_all(&shop.db).await?;
    Ok(lines.join("\n"))
}

/// Handles the event. With a `Tx`, the receipt and the mark "this event is handled" are one commit: the receipt is written once.
/// Any error returned with `?` is retried, after 1 s, 2 s, 4 s and so on.
async fn write_receipt(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    let text = format!("payment {} of order {}: received with thanks", event.payment, event.order);
    sqlx::query("insert into receipts (order_id, payment, text) values ($1, $2, $3)")
        .bind(event.order)
        .bind(event.payment)
        .bind(text)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteConnectOptions::new().filename("shop.db").create_if_missing(true);
    let db = SqlitePool::connect_with(file).await?;
    let tables = "create table if not exists orders (id integer primary key, payments integer not null);
        create table if not exists receipts (order_id integer not null, payment integer not null, text text not null)";
    sqlx::raw_sql(tables).execute(&db).await?;

    // `migrated` creates Postrider's tables. The relay works in the background from `start` on.
    let outbox = Outbox::migrated(&db).await?;
    let relay = Relay::new(&outbox).subscribe("receipts", |s| s.on(write_receipt)).start().await?;

    let routes = axum::Router::new()
        .route("/orders/{order}/payments", post(pay))
        .route("/orders/{order}/receipts", get(receipts))
        .with_state(Shop { db, outbox });
    let address = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);

    // Ctrl-C and SIGTERM end the web server first, then the relay: it finishes the handlers that run.
    axum::serve(listener, routes).with_graceful_shutdown(postrider::asked_to_end()).await?;
    relay.stop().await?;
    println!("stopped");
    Ok(())
}

/// Any error of a request. It is logged, and the client gets a 500.
struct Failed(Box<dyn std::error::Error>);

impl<E: std::error::Error + 'static> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        eprintln!("a request failed: {}", self.0);
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}
