//! What the exchange is asked, and whose answers count.

use axum::Router;
use axum::response::Redirect;
use everbit::adapters::exchange::HttpExchange;
use everbit::application::{Exchange, Fault, Reconciler, Transactions, Work};
use everbit::domain::{Reply, Status};
use everbit::stubs::exchange::Conduct;
use serde_json::{Value, json};
use story::Stub;

use crate::support::{World, serve};

/// E11: a 404 of a proxy, or of an exchange that is being deployed, does not say that there is no order. The attempt stays unknown, whatever the
/// grace, until the exchange itself answers.
#[tokio::test]
async fn a_404_that_is_not_the_exchanges_own_gives_no_attempt_up() {
    let world = World::new().await;
    let command = world.intent(Conduct::Late).await;
    world.execute(&command, 10_000).await;
    for body in [Value::Null, json!({ "error": "not_found" }), json!({ "error": "market_not_found" })] {
        let proxy = Stub::answering(move |_| (404, body.clone())).await;
        let exchange = HttpExchange::new(proxy.url(), world.settings.timeout);
        let reconciler = Reconciler::new(world.transactions.clone(), exchange, 60_000);
        let round = reconciler.round(1_000_000).await.expect("a round");
        assert_eq!((round.found, round.not_found), (0, 0));
        let failed: Vec<_> = round.failed.iter().map(|(identifier, _)| identifier.as_str()).collect();
        assert_eq!(failed, [command.identifier()], "it is told");
        assert_eq!(world.status(&command).await, Some(Status::Unknown), "long after the grace");
    }
    assert_eq!(world.services().reconciler.round(1_000_001).await.expect("a round").found, 1);
    assert_eq!((world.status(&command).await, world.requests().await), (Some(Status::Acked), 1));
}

/// E11: an order is sent to the exchange and to nobody else: a redirect is an unclear answer, and is not followed.
#[tokio::test]
async fn an_order_follows_no_redirect() {
    let world = World::new().await;
    let command = world.intent(Conduct::Place).await;
    let elsewhere = format!("{}/orders", world.settings.exchange);
    let redirecting = serve(Router::new().fallback(async move || Redirect::temporary(&elsewhere))).await;
    let mut work = world.transactions.begin().await.expect("a transaction");
    let intent = work.intent(command.order_intent_id).await.expect("an answer").expect("an intent");
    let exchange = HttpExchange::new(&redirecting, world.settings.timeout);
    assert_eq!(exchange.place(&command.identifier(), &intent).await, Reply::Unclear);
    assert_eq!(world.requests().await, 0);
    let found = exchange.find(&command.identifier()).await;
    assert!(matches!(found, Err(Fault::Retry(_))), "{found:?}");
}

/// A market is one segment of the path, whatever is in its name.
#[tokio::test]
async fn the_name_of_a_market_leads_nowhere_else() {
    let world = World::new().await;
    let stub = Stub::answering(|_| (200, json!([1, 2]))).await;
    let exchange = HttpExchange::new(stub.url(), world.settings.timeout);
    assert_eq!(exchange.candles("KRW-BTC/../../orders/x?y=1#z").await, Ok(vec![1, 2]));
    assert_eq!(exchange.candles("KRW-ETH").await, Ok(vec![1, 2]));
    let paths: Vec<String> = stub.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/candles/KRW-BTC%2F..%2F..%2Forders%2Fx%3Fy=1%23z", "/candles/KRW-ETH"]);
}
