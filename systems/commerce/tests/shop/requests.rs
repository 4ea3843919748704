//! Requests that can't be served: each is answered with a status that says whose fault it is, and a sentence.

use commerce::adapters::cache::HttpCache;
use commerce::adapters::http::{Shop, router};
use commerce::adapters::mapping::{self, Encoding};
use commerce::adapters::postgres::PgUnits;
use commerce::domain::DomainEvent;
use postrider::NewEvent;
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

/// The API of a shop without a broker and without a cache.
struct Api {
    world: World,
    url: String,
}

impl Api {
    async fn new(encoding: Encoding) -> Self {
        let world = World::on("127.0.0.1:9").await;
        let units = PgUnits::new(world.outbox.clone(), encoding);
        let cache = HttpCache::new(story::process::client(), "http://127.0.0.1:9");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router(Shop { units, cache })).await });
        Self { world, url }
    }

    /// The status and the text of an answer.
    async fn ask(&self, method: &str, path: &str, body: String) -> (u16, String) {
        let method: Method = method.parse().expect("a method");
        let request = story::process::client().request(method, format!("{}{path}", self.url)).body(body);
        let answer = request.header("content-type", "application/json").send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    }
}

fn order(lines: &Value) -> String {
    json!({ "userId": 1, "lines": lines }).to_string()
}

/// C10: what is asked wrongly is the caller's fault, is said in a sentence, and changes nothing. Nothing of it is called an outage, which
/// would be tried again for ever.
#[tokio::test]
async fn a_request_that_can_never_be_served_is_no_outage() {
    let api = Api::new(mapping::json).await;
    let product = api.world.product(3).await;
    let dear = api.world.number(
        "insert into products (name, price, stock) values ('gold', 9223372036854775807, 9) returning id",
    );
    let dear = dear.await;
    let new =
        |name: Value, price: Value, stock: Value| json!({ "name": name, "price": price, "stock": stock });
    let line = |product: i64, quantity: i64| json!({ "productId": product, "quantity": quantity });
    let huge = format!("{{\"name\": \"{}\", \"price\": 1, \"stock\": 1}}", "t".repeat(2 << 20));
    let (views, likes) = (format!("/products/{product}"), format!("/products/{product}/likes"));
    for (method, path, body, status, sentence) in [
        ("POST", "/products", new("tea".into(), (-1).into(), 1.into()).to_string(), 422, "must be 0 or more"),
        ("POST", "/products", new("tea".into(), 1.into(), (-1).into()).to_string(), 422, "must be 0 or more"),
        ("POST", "/products", new("tea".into(), (1_u64 << 63).into(), 1.into()).to_string(), 422, "price"),
        ("POST", "/products", new("tea".into(), 1.into(), (1_i64 << 31).into()).to_string(), 422, "stock"),
        ("POST", "/products", new("t\0ea".into(), 1.into(), 1.into()).to_string(), 422, "NUL character"),
        ("POST", "/products", new(7.into(), 1.into(), 1.into()).to_string(), 422, "name"),
        ("POST", "/products", "tea".to_owned(), 400, "JSON"),
        ("POST", "/products", huge, 413, "length limit"),
        ("GET", "/products/999?userId=1", String::new(), 404, "there is no product 999"),
        ("GET", "/products/tea?userId=1", String::new(), 400, "tea"),
        ("GET", views.as_str(), String::new(), 400, "userId"),
        ("PUT", "/products/999/likes/1", String::new(), 404, "there is no product 999"),
        ("PUT", format!("{likes}/me").as_str(), String::new(), 400, "me"),
        ("PUT", format!("{likes}/9223372036854775808").as_str(), String::new(), 400, "9223372036854775808"),
        ("POST", "/orders", order(&json!([])), 422, "at least one piece"),
        ("POST", "/orders", order(&json!([line(product, 0)])), 422, "at least one piece"),
        ("POST", "/orders", order(&json!([line(product, -1)])), 422, "at least one piece"),
        ("POST", "/orders", order(&json!([line(product, 1 << 31)])), 422, "quantity"),
        (
            "POST",
            "/orders",
            order(&json!([line(product, 1), line(product, i64::from(i32::MAX))])),
            422,
            "pieces",
        ),
        ("POST", "/orders", order(&json!([line(dear, 2)])), 422, "must not cost more"),
        ("POST", "/orders", order(&json!([line(999, 1)])), 404, "there is no product 999"),
        ("POST", "/orders", json!({ "userId": "me", "lines": [] }).to_string(), 422, "userId"),
        ("POST", "/orders/999/payments", String::new(), 404, "there is no order 999"),
        ("POST", "/orders/one/payments", String::new(), 400, "one"),
    ] {
        let asked = format!("{method} {path} {}", body.chars().take(80).collect::<String>());
        let (found, text) = api.ask(method, path, body).await;
        assert_eq!(found, status, "{asked}: {text}");
        assert!(text.contains(sentence), "{asked}: {text}");
        assert!(!text.contains("try again"), "{asked}: {text}");
    }
    for table in ["postrider.event", "orders", "likes", "product_views"] {
        assert_eq!(api.world.number(&format!("select count(*) from {table}")).await, 0, "{table}");
    }
    assert_eq!(api.world.number("select count(*) from products").await, 2);
}

/// An encoding whose events no store keeps.
fn too_large(_: &DomainEvent) -> postrider::Result<NewEvent> {
    NewEvent::of("like", "loopers.like.created.v1", "Product", "1", &"x".repeat(2 << 20))
}

/// C10: an event that the log refuses for good is no outage either, and its change is not kept.
#[tokio::test]
async fn a_change_whose_event_is_refused_is_refused() {
    let api = Api::new(too_large).await;
    let product = api.world.product(3).await;
    let (status, text) = api.ask("PUT", &format!("/products/{product}/likes/1"), String::new()).await;
    assert_eq!(status, 422, "{text}");
    assert!(text.contains("payload"), "{text}");
    assert_eq!(api.world.number("select count(*) from likes").await, 0);
}
