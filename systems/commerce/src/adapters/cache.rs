//! The cache of products: a store of keys and values behind HTTP, and a stub of it that is a process of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use reqwest::Client;
use serde::{Deserialize, Serialize};

use crate::application::ports::{Answer, ProductCache, Refusal};
use crate::domain::{Product, ProductId};

/// How long the cache may take where a shopper waits, where a consumer does, and where somebody must know what it has.
const SHOPPERS_PATIENCE: Duration = Duration::from_millis(300);
const CONSUMERS_PATIENCE: Duration = Duration::from_secs(5);
const LOOKERS_PATIENCE: Duration = Duration::from_secs(10);

/// A product as the cache keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Card {
    /// What it is called.
    pub name: String,
    /// What one of it costs.
    pub price: i64,
    /// Whether there is any left.
    pub available: bool,
}

/// The cache, by its address.
#[derive(Debug, Clone)]
pub struct HttpCache {
    client: Client,
    url: String,
    patience: Duration,
}

impl HttpCache {
    /// The cache at `http://host:port`.
    pub fn new(client: Client, url: &str) -> Self {
        Self { client, url: url.trim_end_matches('/').to_owned(), patience: SHOPPERS_PATIENCE }
    }

    /// The same for who must know what it has: an answer is waited for longer than a shopper would.
    pub fn patient(self) -> Self {
        Self { patience: LOOKERS_PATIENCE, ..self }
    }

    fn key(&self, product: ProductId) -> String {
        format!("{}/products/{product}", self.url)
    }
}

impl ProductCache for HttpCache {
    async fn get(&self, product: ProductId) -> Answer<Option<Product>> {
        let ask = self.client.get(self.key(product)).timeout(self.patience).send();
        let found = ask.await.map_err(|error| unanswered("asked for a product", error))?;
        if found.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let card = async { found.error_for_status()?.json().await };
        let card = card.await.map_err(|error| unanswered("asked for a product", error))?;
        let Card { name, price, available } = card;
        Ok(Some(Product { id: product, name, price, available }))
    }

    async fn put(&self, product: &Product) -> Answer<()> {
        let card = Card { name: product.name.clone(), price: product.price, available: product.available };
        let put = self.client.put(self.key(product.id)).timeout(self.patience).json(&card).send().await;
        let put = put.and_then(reqwest::Response::error_for_status);
        put.map(drop).map_err(|error| unanswered("given a product", error))
    }

    async fn remove(&self, product: ProductId) -> Answer<()> {
        let removed = self.client.delete(self.key(product)).timeout(CONSUMERS_PATIENCE).send().await;
        removed.and_then(reqwest::Response::error_for_status).map(drop).map_err(Refusal::failed)
    }
}

/// Nobody but the log learns of a cache that fails a shopper.
fn unanswered(what: &str, error: reqwest::Error) -> Refusal {
    tracing::warn!(error = %error, "the cache failed when it was {what}");
    Refusal::failed(error)
}

type Cards = Arc<Mutex<HashMap<ProductId, Card>>>;

/// The stub of the cache: it keeps what it is given until it is told to forget it.
pub fn stub() -> Router {
    Router::new().route("/products/{id}", get(find).put(keep).delete(remove)).with_state(Cards::default())
}

async fn find(State(cards): State<Cards>, Path(id): Path<ProductId>) -> Result<Json<Card>, StatusCode> {
    let card = cards.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
    card.map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn keep(State(cards): State<Cards>, Path(id): Path<ProductId>, Json(card): Json<Card>) {
    cards.lock().unwrap_or_else(PoisonError::into_inner).insert(id, card);
}

async fn remove(State(cards): State<Cards>, Path(id): Path<ProductId>) {
    cards.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
}
