//! The API of the shop.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::adapters::cache::HttpCache;
use crate::adapters::postgres::PgUnits;
use crate::application::ports::Refusal;
use crate::application::{catalogue, likes, orders};
use crate::domain::{Line, OrderId, ProductId, UserId};

/// What the API works with.
#[derive(Debug, Clone)]
pub struct Shop {
    /// Its transactions.
    pub units: PgUnits,
    /// Its cache.
    pub cache: HttpCache,
}

/// The routes of the API.
pub fn router(shop: Shop) -> Router {
    Router::new()
        .route("/products", post(add_product))
        .route("/products/{product}", get(view))
        .route("/products/{product}/likes/{user}", put(like).delete(unlike))
        .route("/orders", post(place))
        .route("/orders/{order}/payments", post(pay))
        .with_state(shop)
}

/// Why a request was not served. What failed outside is logged here, and the caller only learns that something did.
struct Refused(Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, text) = match &self.0 {
            Refusal::Missing(text) => (StatusCode::NOT_FOUND, text.clone()),
            Refusal::Conflict(text) => (StatusCode::CONFLICT, text.clone()),
            Refusal::Invalid(text) => (StatusCode::UNPROCESSABLE_ENTITY, text.clone()),
            Refusal::Failed(error) => {
                tracing::error!(error = %error, "a request failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "the request failed; try again".to_owned())
            }
        };
        (status, Json(json!({ "error": text }))).into_response()
    }
}

type Reply = Result<Json<Value>, Refused>;

#[derive(Deserialize)]
struct NewProduct {
    name: String,
    price: i64,
    stock: i32,
}

async fn add_product(State(shop): State<Shop>, Json(new): Json<NewProduct>) -> Reply {
    let id = catalogue::add(&shop.units, &new.name, new.price, new.stock).await?;
    Ok(Json(json!({ "productId": id })))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Viewer {
    user_id: UserId,
}

async fn view(
    State(shop): State<Shop>,
    Path(product): Path<ProductId>,
    Query(viewer): Query<Viewer>,
) -> Reply {
    let product = catalogue::view(&shop.units, &shop.cache, product, viewer.user_id).await?;
    let (id, name, price) = (product.id, product.name, product.price);
    Ok(Json(json!({ "productId": id, "name": name, "price": price, "available": product.available })))
}

async fn like(State(shop): State<Shop>, Path((product, user)): Path<(ProductId, UserId)>) -> Reply {
    likes::like(&shop.units, user, product).await?;
    Ok(Json(json!({ "liked": true })))
}

async fn unlike(State(shop): State<Shop>, Path((product, user)): Path<(ProductId, UserId)>) -> Reply {
    likes::unlike(&shop.units, user, product).await?;
    Ok(Json(json!({ "liked": false })))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewOrder {
    user_id: UserId,
    lines: Vec<NewLine>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewLine {
    product_id: ProductId,
    quantity: i32,
}

async fn place(State(shop): State<Shop>, Json(new): Json<NewOrder>) -> Reply {
    let line = |line: &NewLine| Line { product_id: line.product_id, quantity: line.quantity };
    let lines: Vec<Line> = new.lines.iter().map(line).collect();
    let id = orders::place(&shop.units, new.user_id, &lines).await?;
    Ok(Json(json!({ "orderId": id })))
}

async fn pay(State(shop): State<Shop>, Path(order): Path<OrderId>) -> Reply {
    let paid = orders::pay(&shop.units, order).await?;
    Ok(Json(json!({ "paymentId": paid.payment_id, "amount": paid.amount })))
}
