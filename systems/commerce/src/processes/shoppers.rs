//! Shoppers: they look, like, change their minds, order and pay, over HTTP.

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

/// Somebody who uses the API.
#[derive(Debug, Clone)]
pub struct Shoppers {
    client: Client,
    api: String,
}

impl Shoppers {
    /// Shoppers at an address.
    pub fn new(api: &str) -> Self {
        Self { client: story::process::client(), api: api.to_owned() }
    }

    async fn ask(&self, request: RequestBuilder) -> Result<Value, String> {
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body: Value = answer.json().await.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(body) } else { Err(format!("{status}: {body}")) }
    }

    /// Adds a product, and gives its number.
    pub async fn add(&self, name: &str, stock: i32) -> Result<i64, String> {
        let new = json!({ "name": name, "price": 1000, "stock": stock });
        let added = self.ask(self.client.post(format!("{}/products", self.api)).json(&new)).await?;
        added["productId"].as_i64().ok_or_else(|| "no number".to_owned())
    }

    /// Looks at a product; whether it is available.
    pub async fn look(&self, product: i64, user: i64) -> Result<bool, String> {
        let seen =
            self.ask(self.client.get(format!("{}/products/{product}?userId={user}", self.api))).await?;
        Ok(seen["available"] == true)
    }

    /// Likes a product.
    pub async fn like(&self, product: i64, user: i64) -> Result<(), String> {
        let like = self.client.put(format!("{}/products/{product}/likes/{user}", self.api));
        self.ask(like).await.map(drop)
    }

    /// Takes a like back.
    pub async fn unlike(&self, product: i64, user: i64) -> Result<(), String> {
        let unlike = self.client.delete(format!("{}/products/{product}/likes/{user}", self.api));
        self.ask(unlike).await.map(drop)
    }

    /// Orders and pays.
    pub async fn buy(&self, user: i64, lines: &[(i64, i32)]) -> Result<(), String> {
        let line = |(product, quantity): &(i64, i32)| json!({ "productId": product, "quantity": quantity });
        let new = json!({ "userId": user, "lines": lines.iter().map(line).collect::<Vec<_>>() });
        let order = self.ask(self.client.post(format!("{}/orders", self.api)).json(&new)).await?;
        let pay = self.client.post(format!("{}/orders/{}/payments", self.api, order["orderId"]));
        self.ask(pay).await.map(drop)
    }

    /// A round of shopping: these users, each with one of the products in turn.
    pub async fn round(&self, users: std::ops::Range<i64>, products: &[i64]) -> Result<(), String> {
        let mut tasks = tokio::task::JoinSet::new();
        for part in 0..4 {
            let (shoppers, products) = (self.clone(), products.to_vec());
            let users: Vec<i64> = users.clone().filter(|user| user % 4 == part).collect();
            tasks.spawn(async move {
                for user in users {
                    let product = products[(user / 4) as usize % products.len()];
                    shoppers.look(product, user).await?;
                    shoppers.like(product, user).await?;
                    if user % 3 == 0 {
                        shoppers.unlike(product, user).await?;
                    }
                    if user % 2 == 0 {
                        shoppers.buy(user, &[(product, 1 + (user % 3) as i32), (products[0], 1)]).await?;
                    }
                }
                Ok::<(), String>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        Ok(())
    }
}
