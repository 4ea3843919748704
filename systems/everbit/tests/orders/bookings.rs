//! One order must not keep the others from being booked, and what can never be is refused at the door.

use everbit::adapters::api::{Api, router};
use everbit::adapters::exchange::HttpExchange;
use everbit::application::trading::{HIGHEST_PRICE, LARGEST_VOLUME};
use everbit::application::{Backtests, Trading};
use everbit::domain::{CreateOrderAttempt, Signal};
use serde_json::{Value, json};

use crate::support::{World, serve, signal};

/// E11: an order that can't be booked is told, and the orders before and behind it are booked in the same round.
#[tokio::test]
async fn an_order_that_cannot_be_booked_keeps_no_other_up() {
    let world = World::new().await;
    // Nothing can be added to this position.
    let full = format!("insert into position values ('OWNER', 'KRW-FULL', {})", i64::MAX);
    world.database.execute(&full).await;
    let mut commands = Vec::new();
    for market in ["KRW-BTC", "KRW-FULL", "KRW-ETH"] {
        let mut signal = Signal { volume: LARGEST_VOLUME, price: HIGHEST_PRICE, ..signal() };
        signal.about.market = market.to_owned();
        let id = Trading::new(world.transactions.clone()).take(&signal, 1_000).await.expect("taken");
        let command = CreateOrderAttempt { order_intent_id: id, attempt_no: 1 };
        world.execute(&command, 2_000).await;
        commands.push(command);
    }
    let reconciler = world.services().reconciler;
    for filled in [2, 0] {
        let round = reconciler.round(3_000).await.expect("the round goes on");
        let failed: Vec<_> = round.failed.iter().map(|(identifier, _)| identifier.as_str()).collect();
        assert_eq!((round.filled, failed), (filled, vec![commands[1].identifier().as_str()]), "{round:?}");
    }
    let booked = format!("select count(*) from position where volume = {LARGEST_VOLUME}");
    assert_eq!(world.number(&booked).await, 2);
    world.database.execute("update position set volume = 0 where market = 'KRW-FULL'").await;
    assert_eq!(reconciler.round(4_000).await.expect("a round").filled, 1, "when there is room again");
}

/// What can never be done is refused with 422 and one sentence, not with 503: a client that is told *try again* would do so for ever.
#[tokio::test]
async fn a_request_that_can_never_succeed_is_refused_with_a_sentence() {
    let world = World::new().await;
    let exchange = HttpExchange::new(&world.settings.exchange, world.settings.timeout);
    let api = Api {
        backtests: Backtests::new(world.transactions.clone(), exchange),
        transactions: world.transactions.clone(),
    };
    let url = serve(router(api)).await;
    let signal = json!({ "ownerId": "OWNER", "strategyKey": "EXTREME_FLIP", "market": "KRW-BTC", "side": "BUY",
        "price": 1, "volume": 1 });
    let backtest = json!({ "ownerId": "OWNER", "strategyKey": "EXTREME_FLIP", "market": "KRW-BTC" });
    let switch = json!({ "ownerId": "OWNER", "engaged": true });
    let (name, range) = (
        "must have 1 to 200 bytes and no NUL character",
        "the price must be from 1 to 1000000000000, and the volume",
    );
    let long = "x".repeat(201);
    let cases: [(&str, &Value, &str, Value, &str); 14] = [
        ("signals", &signal, "ownerId", json!("a\0b"), name),
        ("signals", &signal, "strategyKey", json!("a\0b"), name),
        ("signals", &signal, "market", json!("KRW-\0"), name),
        ("signals", &signal, "market", json!(""), name),
        ("signals", &signal, "ownerId", json!(long), name),
        ("signals", &signal, "price", json!(0), range),
        ("signals", &signal, "price", json!(HIGHEST_PRICE + 1), range),
        ("signals", &signal, "price", json!(i64::MAX), range),
        ("signals", &signal, "volume", json!(-1), range),
        ("signals", &signal, "volume", json!(LARGEST_VOLUME + 1), range),
        ("signals", &signal, "volume", json!(i64::MAX), range),
        ("backtests", &backtest, "market", json!("KRW-\0"), name),
        ("backtests", &backtest, "ownerId", json!("\0"), name),
        ("kill-switch", &switch, "ownerId", json!("\0"), name),
    ];
    let send = async |path: &str, body: &Value| {
        let request = story::process::client().post(format!("{url}/{path}")).json(body);
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.expect("JSON")["error"].as_str().unwrap_or_default().to_owned())
    };
    for (path, whole, field, value, says) in cases {
        let mut body = whole.clone();
        body[field] = value.clone();
        let (status, sentence) = send(path, &body).await;
        assert_eq!(status, 422, "{path} {field} {value}: {sentence}");
        assert!(sentence.contains(says), "{field} {value}: {sentence}");
    }
    let rows = "select (select count(*) from signal) + (select count(*) from backtest_job) + (select count(*) from setting)
                + (select count(*) from outbox_event)";
    assert_eq!(world.number(rows).await, 0);
    assert_eq!(send("signals", &signal).await.0, 202, "the smallest that can be");
}
