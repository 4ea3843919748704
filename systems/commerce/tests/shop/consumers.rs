//! The four consumers: what they count, each with its own idempotency, and where a new group begins.

use std::sync::{Arc, Mutex};

use commerce::adapters::cache::{self, HttpCache};
use commerce::adapters::consumers::{LIKES, SALES, STOCK, VIEWS, likes, sales, stock, views};
use commerce::adapters::counts::PgLikes;
use commerce::adapters::mapping;
use commerce::application::consumers::{LikeState, LikeStates};
use commerce::application::ports::{Answer, ProductCache};
use commerce::application::{catalogue, orders};
use commerce::domain::{Line, Product};
use postrider::Uuid;
use postrider::kafka::RunningConsumer;
use postrider_testkit::{until, until_true};
use serde_json::json;

use crate::feed::Feed;
use crate::topic::committed;
use crate::world::{TOPICS, World, depleted, liked, paid, unliked, viewed};

/// Waits until a consumer holds the three partitions of its topic.
pub(crate) async fn ready(
    consumer: postrider::kafka::Consumer<postrider::postgres::Outbox>,
) -> RunningConsumer {
    let running = consumer.start().await.expect("started");
    until_true("it has its partitions", || running.partitions().len() == 3).await;
    running
}

impl World {
    /// Waits until a group is done with the first `records` of the first partition.
    pub(crate) async fn until_committed(&self, group: &str, topic: &str, records: i64) {
        let (group, topic) = (self.name(group), self.name(topic));
        until("the group is done", async || committed(&self.brokers, &group, &topic)[0] == records).await;
    }

    async fn likes_of(&self, product: i64) -> i64 {
        let sql =
            "select coalesce(sum(likes), 0)::bigint from metrics.product_like_count where product_id = ";
        self.number(&format!("{sql}{product}")).await
    }

    /// The cache, served by this process.
    async fn cache(&self) -> HttpCache {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, cache::stub()).await });
        HttpCache::new(story::process::client(), &url).patient()
    }
}

/// C10: what the services publish reaches the four consumers, and each counts what it is for.
#[tokio::test(flavor = "multi_thread")]
async fn four_consumers_count_likes_sales_and_views_and_empty_the_cache() {
    let world = World::new(&TOPICS).await;
    let (units, settings, cache) = (world.units(), world.settings(), world.cache().await);
    let running = [
        ready(likes(&settings, &world.outbox, PgLikes(world.pool.clone()))).await,
        ready(sales(&settings, &world.outbox)).await,
        ready(views(&settings, &world.outbox)).await,
        ready(stock(&settings, &world.outbox, cache.clone())).await,
    ];
    let _relay = world.relay("one", &[]);
    let product = catalogue::add(&units, "tea", 1000, 5).await.expect("a product");
    for user in 1..=3 {
        catalogue::view(&units, &cache, product, user).await.expect("viewed");
        commerce::application::likes::like(&units, user, product).await.expect("liked");
    }
    commerce::application::likes::unlike(&units, 2, product).await.expect("unliked");
    assert!(cache.get(product).await.expect("an answer").is_some_and(|known: Product| known.available));
    for quantity in [2, 3] {
        let line = Line { product_id: product, quantity };
        let order = orders::place(&units, 1, &[line]).await.expect("an order");
        orders::pay(&units, order).await.expect("paid");
    }
    until("two like it", async || world.likes_of(product).await == 2).await;
    world
        .until_number(
            "five are sold",
            "select coalesce(sum(quantity), 0)::bigint from metrics.product_sales",
            5,
        )
        .await;
    world
        .until_number(
            "it was looked at",
            "select coalesce(sum(views), 0)::bigint from metrics.product_views",
            3,
        )
        .await;
    until("the cache forgets it", async || matches!(cache.get(product).await, Ok(None))).await;
    let seen = catalogue::view(&units, &cache, product, 1).await.expect("viewed");
    assert!(!seen.available, "who looks now sees that it is sold out");
    for consumer in running {
        consumer.stop().await.expect("stopped");
    }
}

/// C11: orders and views by the handled table, keyed `{group}:{event id}`: the same event in one batch, and in another, counts once.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_or_a_view_that_comes_again_counts_once() {
    let world = World::new(&["order-events", "product-events"]).await;
    let (orders, looks) = (Feed::new(&world, "order-events"), Feed::new(&world, "product-events"));
    let running = [
        ready(sales(&world.settings(), &world.outbox)).await,
        ready(views(&world.settings(), &world.outbox)).await,
    ];
    let product = world.product(9).await;
    world.run("insert into orders (user_id) values (1)").await;
    world.run(&format!("insert into order_lines values (1, {product}, 4, 1000)")).await;
    let (order, view) = (Uuid::now_v7(), Uuid::now_v7());
    for batch in 1..=2 {
        for _ in 0..2 {
            orders.fact(order, &paid(1));
            looks.fact(view, &viewed(product, 1));
        }
        orders.flush();
        looks.flush();
        world.until_committed(SALES, "order-events", batch * 2).await;
        world.until_committed(VIEWS, "product-events", batch * 2).await;
    }
    assert_eq!(world.number("select sum(quantity)::bigint from metrics.product_sales").await, 4);
    assert_eq!(world.number("select sum(views)::bigint from metrics.product_views").await, 1);
    let keys = world.texts("select idempotency_key from event_handled order by 1").await;
    let mut wanted = [format!("{}:{order}", world.name(SALES)), format!("{}:{view}", world.name(VIEWS))];
    wanted.sort();
    assert_eq!(keys, wanted, "X1: the document's handled table");
    for consumer in running {
        consumer.stop().await.expect("stopped");
    }
}

/// What the consumer of likes would keep.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Vec<LikeState>>>>);

impl LikeStates for Kept {
    async fn keep(&mut self, states: &[LikeState]) -> Answer<()> {
        self.0.lock().expect("a list").push(states.to_vec());
        Ok(())
    }
}

/// C11, C13: likes are reduced within a batch to the last state of each user and product, 100 records a poll, and the handled table is
/// not used.
#[tokio::test(flavor = "multi_thread")]
async fn likes_are_reduced_within_a_batch_of_a_hundred_records() {
    let world = World::new(&["like-events"]).await;
    let (feed, kept) = (Feed::new(&world, "like-events"), Kept::default());
    ready(likes(&world.settings(), &world.outbox, kept.clone())).await.stop().await.expect("stopped");
    // While it is away: likes and unlikes of 125 users, 250 records in one partition.
    for user in 0..125 {
        feed.fact(Uuid::now_v7(), &liked(7, user));
        feed.fact(Uuid::now_v7(), &unliked(7, user));
    }
    feed.flush();
    let running = ready(likes(&world.settings(), &world.outbox, kept.clone())).await;
    world.until_committed(LIKES, "like-events", 250).await;
    running.stop().await.expect("stopped");
    let batches = kept.0.lock().expect("a list").clone();
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert!(sizes.iter().all(|size| *size <= 50), "100 records are 50 users: {sizes:?}");
    assert!(sizes.contains(&50), "a whole batch: {sizes:?}");
    assert!(batches.concat().iter().all(|state| !state.liked), "only the last of each is kept");
    assert_eq!(world.number("select count(*) from event_handled").await, 0);
}

/// C11: likes converge by upsert: again, in other batches, and an old one after a newer.
#[tokio::test(flavor = "multi_thread")]
async fn a_like_that_comes_again_changes_nothing() {
    let world = World::new(&["like-events"]).await;
    let feed = Feed::new(&world, "like-events");
    let running = ready(likes(&world.settings(), &world.outbox, PgLikes(world.pool.clone()))).await;
    for round in 1..=2 {
        feed.fact(Uuid::from_u128(1), &liked(7, 1));
        feed.fact(Uuid::from_u128(2), &liked(7, 2));
        feed.fact(Uuid::from_u128(3), &unliked(7, 2));
        feed.flush();
        world.until_committed(LIKES, "like-events", round * 3).await;
        assert_eq!(world.likes_of(7).await, 1);
    }
    let old = LikeState { user_id: 1, product_id: 7, liked: false, since: 0 };
    PgLikes(world.pool.clone()).keep(&[old]).await.expect("kept");
    assert_eq!(world.likes_of(7).await, 1, "an older state does not win");
    running.stop().await.expect("stopped");
}

/// C11: the cache's consumer keeps nothing, and removing twice does no harm. A cache that is away is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn the_cache_is_emptied_twice_without_harm_and_without_a_mark() {
    let world = World::new(&["stock-events"]).await;
    let feed = Feed::new(&world, "stock-events");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let cache = HttpCache::new(story::process::client(), &format!("http://{address}")).patient();
    let running = ready(stock(&world.settings(), &world.outbox, cache.clone())).await;
    let again = Uuid::now_v7();
    feed.fact(again, &depleted(7));
    feed.flush();
    let listener = loop {
        match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    tokio::spawn(async move { axum::serve(listener, cache::stub()).await });
    let tea = Product { id: 7, name: "tea".to_owned(), price: 1, available: true };
    world.until_committed(STOCK, "stock-events", 1).await;
    cache.put(&tea).await.expect("kept");
    feed.fact(again, &depleted(7));
    feed.flush();
    until("it is removed again", async || matches!(cache.get(7).await, Ok(None))).await;
    world.until_committed(STOCK, "stock-events", 2).await;
    assert_eq!(world.number("select count(*) from event_handled").await, 0);
    assert_eq!(world.topic("stock-events.DLT").count(), 0, "no attempt was lost to the cache that was away");
    running.stop().await.expect("stopped");
}

/// C13: a new group begins at the end, and misses nothing from then on. An unknown type is skipped.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_group_begins_at_the_end_and_misses_nothing_from_then_on() {
    let world = World::new(&["product-events"]).await;
    let feed = Feed::new(&world, "product-events");
    feed.fact(Uuid::now_v7(), &viewed(7, 1));
    feed.flush();
    let running = ready(views(&world.settings(), &world.outbox)).await;
    running.stop().await.expect("stopped");
    // Nobody is there, and the group has its position.
    feed.fact(Uuid::now_v7(), &viewed(7, 2));
    feed.event(Uuid::now_v7(), "loopers.product.renamed.v1", "7", &json!({ "name": "pot" }));
    feed.flush();
    let running = ready(views(&world.settings(), &world.outbox)).await;
    world.until_committed(VIEWS, "product-events", 3).await;
    assert_eq!(world.number("select sum(views)::bigint from metrics.product_views").await, 1);
    assert_eq!(world.topic("product-events.DLT").count(), 0, "an unknown type is no failure");
    running.stop().await.expect("stopped");
    assert_eq!(mapping::PRODUCT_VIEWED, "loopers.product.viewed.v1");
}

/// C16: handled rows go after seven days, as the file says, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn handled_events_are_forgotten_after_seven_days() {
    let world = World::new(&[]).await;
    let file = world.relay_file("prune", &[]);
    for days in [6, 8] {
        world
            .run(&format!(
                "insert into postrider.inbox values ('{}', gen_random_uuid(), now() - interval '{days} days')",
                world.name(VIEWS)
            ))
            .await;
    }
    assert_eq!(world.number("select count(*) from event_handled").await, 2);
    world.said(&["prune", "--yes", "--config", &file]);
    let left = "select count(*) from event_handled where created_at > now() - interval '7 days'";
    assert_eq!((world.number(left).await, world.number("select count(*) from event_handled").await), (1, 1));
}
