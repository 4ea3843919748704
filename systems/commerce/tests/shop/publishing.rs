//! Publishing: the change and its event are one commit, the log is only added to, and the document's tables are there.

use commerce::application::ports::{Refusal, Unit, Units};
use commerce::application::{catalogue, likes, orders};
use commerce::domain::Line;
use postrider_testkit::{Program, until};
use serde_json::{Value, json};

use crate::world::{TOPICS, World, liked, viewed};

fn line(product_id: i64, quantity: i32) -> Line {
    Line { product_id, quantity }
}

/// C10: order paid, like, unlike, view and stock at 0, each in the transaction of its change, over the API.
#[tokio::test(flavor = "multi_thread")]
async fn the_api_publishes_the_five_events_with_their_changes() {
    let world = World::new(&[]).await;
    let mut cache = Program::start("cache", &mut world.commerce(&["stub-cache"]));
    let cache_url = cache.line("listening on ").await;
    let mut api = Program::start("api", world.commerce(&["api"]).env("CACHE_URL", &cache_url));
    let url = api.line("listening on ").await;
    let client = story::process::client();
    let ask = async |request: reqwest::RequestBuilder| {
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.expect("JSON"))
    };
    let new = json!({ "name": "tea", "price": 1500, "stock": 3 });
    let (_, product) = ask(client.post(format!("{url}/products")).json(&new)).await;
    let product = product["productId"].as_i64().expect("a product");
    let seen = ask(client.get(format!("{url}/products/{product}?userId=9"))).await;
    assert_eq!(seen, (200, json!({ "productId": product, "name": "tea", "price": 1500, "available": true })));
    for _ in 0..2 {
        assert_eq!(ask(client.put(format!("{url}/products/{product}/likes/9"))).await.0, 200);
    }
    assert_eq!(ask(client.delete(format!("{url}/products/{product}/likes/9"))).await.0, 200);
    let new = json!({ "userId": 9, "lines": [{ "productId": product, "quantity": 3 }] });
    let (_, order) = ask(client.post(format!("{url}/orders")).json(&new)).await;
    let payments = format!("{url}/orders/{}/payments", order["orderId"]);
    let first = ask(client.post(&payments)).await;
    assert_eq!((first.0, &first.1["amount"]), (200, &4500.into()));
    assert_eq!(ask(client.post(&payments)).await, first, "paid once, and the same answer");
    let (_, second) = ask(client.post(format!("{url}/orders")).json(&new)).await;
    let refused = ask(client.post(format!("{url}/orders/{}/payments", second["orderId"]))).await;
    assert_eq!(refused.0, 409, "{}", refused.1);
    assert_eq!(ask(client.get(format!("{url}/products/0?userId=9"))).await.0, 404);
    let types = world.texts("select event_type from outbox order by id").await;
    assert_eq!(
        types,
        [
            "loopers.product.viewed.v1",
            "loopers.like.created.v1",
            "loopers.like.canceled.v1",
            "loopers.order.paid.v1",
            "loopers.stock.depleted.v1",
        ],
        "each change has its event, and what changed nothing has none"
    );
    assert_eq!((api.stop().await, cache.stop().await), (Some(0), Some(0)));
}

/// What breaks a rule is refused with 422 and a sentence, and leaves nothing: a price or a stock below 0, an order of no pieces, and one
/// whose pieces or whose amount are more than a number can say.
#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_a_rule_is_refused_with_a_sentence_and_leaves_nothing() {
    let world = World::new(&[]).await;
    let mut api = Program::start("api", &mut world.commerce(&["api"]));
    let url = api.line("listening on ").await;
    let client = story::process::client();
    let post = async |path: &str, body: Value| {
        let answer = client.post(format!("{url}{path}")).json(&body).send().await.expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.json::<Value>().await.expect("JSON");
        (status, body["error"].as_str().unwrap_or_default().to_owned())
    };
    for (price, stock) in [(-1, 1), (1, -1)] {
        let refused = post("/products", json!({ "name": "tea", "price": price, "stock": stock })).await;
        assert_eq!(refused, (422, "the price and the stock of a product must be 0 or more".to_owned()));
    }
    let (cheap, dear) = (world.product(9).await, world.product(9).await);
    world.run(&format!("update products set price = {} where id = {dear}", i64::MAX)).await;
    let order = |lines: &[(i64, i32)]| {
        let line = |(product, quantity): &(i64, i32)| json!({ "productId": product, "quantity": quantity });
        json!({ "userId": 9, "lines": lines.iter().map(line).collect::<Vec<_>>() })
    };
    let (pieces, amount) =
        ("at least one piece each", "the order must not cost more than 9223372036854775807 won");
    for (lines, sentence) in [
        (&[][..], pieces),
        (&[(cheap, 0)], pieces),
        (&[(cheap, -3)], pieces),
        (
            &[(cheap, i32::MAX), (cheap, i32::MAX)],
            "an order must not have more than 2147483647 pieces of a product",
        ),
        (&[(dear, 2)], amount),
        (&[(dear, 1), (cheap, 1)], amount),
    ] {
        let (status, said) = post("/orders", order(lines)).await;
        assert!(status == 422 && said.contains(sentence), "{lines:?}: {status} {said}");
    }
    assert_eq!(world.number("select count(*) from orders").await, 0);
    assert_eq!(post("/orders", order(&[(dear, 1)])).await.0, 200, "the most that can be said is fine");
    assert_eq!(api.stop().await, Some(0));
}

/// C5: whatever fails before the commit leaves neither a change nor an event.
#[tokio::test]
async fn a_unit_that_is_not_committed_leaves_neither_change_nor_event() {
    let world = World::new(&[]).await;
    let (units, product) = (world.units(), world.product(1).await);
    let other = world.product(9).await;
    let lines = [line(other, 1), line(product, 2)];
    let order = orders::place(&units, 1, &lines).await.expect("an order");
    let refused = orders::pay(&units, order).await.expect_err("there is one piece only");
    assert!(matches!(refused, Refusal::Conflict(_)), "{refused}");
    let mut unit = units.begin().await.expect("a unit");
    assert!(unit.add_like(1, product).await.expect("a like"));
    unit.publish(liked(product, 1)).await.expect("recorded");
    drop(unit);
    let left = "select (select count(*) from outbox) + (select count(*) from payments) + (select count(*) from likes)";
    assert_eq!(world.number(left).await, 0);
    assert_eq!(world.number("select sum(stock) from products").await, 10, "no stock was taken");
    likes::unlike(&units, 1, product).await.expect("nothing to take back");
    assert_eq!(world.number("select count(*) from outbox").await, 0);
    let missing = orders::pay(&units, 0).await.expect_err("no such order");
    assert!(matches!(missing, Refusal::Missing(_)), "{missing}");
    catalogue::add(&units, "pot", 1, 0).await.expect("a product");
}

/// C5: the log is only added to.
#[tokio::test]
async fn what_was_recorded_cannot_be_changed_or_deleted() {
    let world = World::new(&[]).await;
    world.publish(viewed(1, 1)).await;
    for sql in ["update postrider.event set payload = '{}'", "delete from postrider.event"] {
        let refused = sqlx::raw_sql(sql).execute(&world.pool).await.expect_err(sql);
        assert!(refused.to_string().contains("events can't be changed"), "{refused}");
    }
    assert_eq!(world.number("select count(*) from outbox").await, 1);
}

/// C5: a row that is committed late has a lower id than the cursor. Who reads by the cursor loses it; the relay sends it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_late_commit_is_sent_although_the_cursor_is_past_it() {
    let world = World::new(&["product-events"]).await;
    let _relay = world.relay("one", &[]);
    let mut late = world.units().begin().await.expect("a unit");
    late.publish(viewed(1, 1)).await.expect("recorded");
    let early = world.publish(viewed(2, 2)).await;
    until("the other is sent", async || world.state(early).await == "done").await;
    late.commit().await.expect("committed");
    let passed = "select count(*) from outbox where id <= (select last_processed_id from outbox_cursor)";
    assert_eq!(world.number(passed).await, 2, "the late one is below the cursor");
    let topic = world.topic("product-events");
    until("the late one is sent", async || topic.count() == 2).await;
    let keys: Vec<String> = topic.records().into_iter().map(|record| record.key).collect();
    assert_eq!((keys.len(), keys.contains(&"1".to_owned())), (2, true), "{keys:?}");
}

/// X1, C5: the document's four tables with its columns.
#[tokio::test(flavor = "multi_thread")]
async fn the_documents_tables_are_there_with_its_columns() {
    let world = World::new(&TOPICS).await;
    let named = "event_id event_type source aggregate_type aggregate_id payload";
    for (table, columns) in [
        ("outbox", format!("id {named} next_retry_at created_at")),
        ("outbox_cursor", "id last_processed_id updated_at".to_owned()),
        ("outbox_failed", format!("id {named} error_message failed_at")),
        ("event_handled", "id idempotency_key created_at".to_owned()),
    ] {
        let sql = format!(
            "select column_name::text from information_schema.columns where table_name = '{table}' and table_schema = 'public'
             order by ordinal_position"
        );
        assert_eq!(world.texts(&sql).await.join(" "), columns, "{table}");
    }
    let ids = [world.publish(viewed(1, 5)).await, world.publish(liked(1, 5)).await];
    let row = "select concat_ws('|', event_id, event_type, source, aggregate_type, aggregate_id, payload, next_retry_at is null)
        from outbox order by id limit 1";
    let wanted = format!(
        "{}|loopers.product.viewed.v1|commerce-api|Product|1|{{\"productId\":1,\"userId\":5}}|t",
        ids[0]
    );
    assert_eq!(world.texts(row).await, [wanted], "it is there before a relay has run");
    let _relay = world.relay("one", &[]);
    world.until_sent().await;
    let at_end = "select count(*) from outbox_cursor
        where id = 1 and last_processed_id = (select max(id) from outbox) and updated_at > now() - interval '1 min'";
    world.until_number("the cursor is at the end", at_end, 1).await;
}
