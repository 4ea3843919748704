//! Consumers that fail: retries, dead letters, a broken handled table, a kill, and a topic that is missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use commerce::adapters::consumers::{LIKES, SALES, VIEWS, likes, sales, views};
use commerce::adapters::counts::PgLikes;
use commerce::adapters::postgres::migrate;
use commerce::application::consumers::{LikeState, LikeStates};
use commerce::application::ports::Answer;
use postrider::Uuid;
use postrider_testkit::{Logged, until, until_within};
use sqlx::postgres::PgPoolOptions;
use xtask::postgres::Cluster;

use crate::consumers::ready;
use crate::feed::Feed;
use crate::topic::committed;
use crate::world::{World, liked, paid, viewed};

impl World {
    /// Orders 1 to `count`, each of one piece of a product; the products' numbers are the orders'.
    pub(crate) async fn orders(&self, count: i64) {
        for order in 1..=count {
            self.product(9).await;
            self.run("insert into orders (user_id) values (1)").await;
            self.run(&format!("insert into order_lines values ({order}, {order}, 1, 1000)")).await;
        }
    }

    pub(crate) async fn sold(&self) -> i64 {
        self.number("select coalesce(sum(quantity), 0)::bigint from metrics.product_sales").await
    }
}

/// C17 (a consumer fails), C12: three retries, a second apart, then the topic for dead letters; the events behind it are handled.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_fails_retries_three_times_a_second_apart_and_goes_on() {
    let world = World::new(&["order-events"]).await;
    world.orders(1).await;
    let feed = Feed::new(&world, "order-events");
    let settings = commerce::adapters::consumers::Settings {
        retry_interval: Duration::from_secs(1),
        ..world.settings()
    };
    let running = ready(sales(&settings, &world.outbox)).await;
    let began = Instant::now();
    // Order 404 has no lines, so its sales can't be counted.
    feed.fact(Uuid::now_v7(), &paid(404));
    feed.fact(Uuid::now_v7(), &paid(1));
    feed.flush();
    until("the one behind it is handled", async || world.sold().await == 1).await;
    world.until_committed(SALES, "order-events", 2).await;
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(3), "three pauses of a second: {took:?}");
    let letter = world.topic("order-events.DLT").records().pop().expect("a letter");
    assert_eq!(letter.key, "404");
    assert_eq!(letter.headers["postrider_attempts"], "4", "the first try and three more");
    assert!(letter.headers["postrider_error"].contains("order 404 has no lines"), "{:?}", letter.headers);
    running.stop().await.expect("stopped");
}

/// C17 (the idempotency check fails): a handled table that refuses is a failure like any other: retried, then a dead letter, and no effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_handled_table_that_refuses_leads_to_a_dead_letter_without_an_effect() {
    let world = World::new(&["product-events"]).await;
    let (poison, feed) = (Uuid::now_v7(), Feed::new(&world, "product-events"));
    world
        .run(&format!(
            "create function refuse_one() returns trigger language plpgsql as $$
             begin
                 if new.event_id = '{poison}' then raise exception 'the handled table is broken'; end if;
                 return new;
             end $$;
             create trigger refuse before insert on postrider.inbox for each row execute function refuse_one()"
        ))
        .await;
    let running = ready(views(&world.settings(), &world.outbox)).await;
    feed.fact(poison, &viewed(7, 1));
    feed.fact(Uuid::now_v7(), &viewed(8, 1));
    feed.flush();
    world.until_committed(VIEWS, "product-events", 2).await;
    let letter = world.topic("product-events.DLT").records().pop().expect("a letter");
    assert_eq!(letter.headers["postrider_attempts"], "4");
    assert!(
        letter.headers["postrider_error"].contains("the handled table is broken"),
        "{:?}",
        letter.headers
    );
    assert_eq!(world.texts("select product_id::text from metrics.product_views").await, ["8"], "no effect");
    running.stop().await.expect("stopped");
}

/// Counts how often it is tried to keep likes.
#[derive(Clone)]
struct Counted(PgLikes, Arc<AtomicU32>);

impl LikeStates for Counted {
    async fn keep(&mut self, states: &[LikeState]) -> Answer<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.keep(states).await
    }
}

/// C12, C17: a database that is away costs a batch of likes no try and makes no dead letter; they are counted when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn likes_wait_for_a_database_that_is_away() {
    let world = World::new(&["like-events"]).await;
    let create = tokio::task::spawn_blocking(|| Cluster::create(&[])).await;
    let mut server = create.expect("no panic").expect("a server of its own");
    let soon = PgPoolOptions::new().acquire_timeout(Duration::from_millis(200));
    let counted = soon.connect(&server.url("postgres")).await.expect("a connection");
    migrate(&counted).await.expect("tables");
    let (feed, tries) = (Feed::new(&world, "like-events"), Arc::new(AtomicU32::new(0)));
    let states = Counted(PgLikes(counted.clone()), Arc::clone(&tries));
    let running = ready(likes(&world.settings(), &world.outbox, states)).await;
    feed.fact(Uuid::now_v7(), &liked(1, 1));
    feed.flush();
    world.until_committed(LIKES, "like-events", 1).await;
    server.kill().expect("killed");
    tries.store(0, Ordering::SeqCst);
    feed.fact(Uuid::now_v7(), &liked(1, 2));
    feed.flush();
    // Four are all that an event has.
    until("more tries than an event has", async || tries.load(Ordering::SeqCst) > 4).await;
    server.start().expect("started again");
    world.until_committed(LIKES, "like-events", 2).await;
    assert_eq!(world.topic("like-events.DLT").count(), 0, "nobody is to blame");
    let sql = "select coalesce(sum(likes), 0)::bigint from metrics.product_like_count";
    assert_eq!(sqlx::query_scalar::<_, i64>(sql).fetch_one(&counted).await.expect(sql), 2);
    running.stop().await.expect("stopped");
}

/// C11: a consumer that is killed between its effect and its commit repeats no effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_killed_between_effect_and_commit_repeats_nothing() {
    let world = World::new(&["order-events"]).await;
    world.orders(2).await;
    let feed = Feed::new(&world, "order-events");
    let consumer = |name| Logged::start(&mut world.commerce(&["consumer", SALES]), world.folder.path(), name);
    let mut first = consumer("first");
    let (group, topic) = (world.name(SALES), world.name("order-events"));
    until("it has its partitions", async || committed(&world.brokers, &group, &topic)[0] == 0).await;
    // Product 1 is locked by somebody else, so the record that comes first can't be handled, and nothing can be committed.
    let mut lock = world.pool.begin().await.expect("a transaction");
    let hold = "insert into metrics.product_sales values (1, 0)";
    sqlx::raw_sql(hold).execute(&mut *lock).await.expect("locked");
    feed.fact(Uuid::now_v7(), &paid(1));
    feed.fact(Uuid::now_v7(), &paid(2));
    feed.flush();
    until("the second is handled", async || world.sold().await == 1).await;
    first.process.kill();
    assert_eq!(committed(&world.brokers, &group, &topic)[0], 0, "nothing was committed");
    lock.rollback().await.expect("free");
    let _second = consumer("second");
    world.until_committed(SALES, "order-events", 2).await;
    assert_eq!(world.sold().await, 2, "each once");
}

/// C4: a consumer whose topic is missing says so in a sentence and does not start.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_without_its_topic_says_so_and_creates_none() {
    let world = World::new(&[]).await;
    let mut consumer = Logged::start(&mut world.commerce(&["consumer", VIEWS]), world.folder.path(), "views");
    let ends = Duration::from_secs(20);
    until_within("it ends", ends, async || consumer.process.ended().is_some()).await;
    let sentence = format!("the topic {} does not exist; create it", world.name("product-events"));
    assert!(consumer.exit_code() == Some(1) && consumer.log().contains(&sentence), "{}", consumer.log());
    let port = world.brokers.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let metadata = xtask::kafka::topics::metadata(port, &[&world.name("product-events")]).expect("an answer");
    assert_ne!(metadata.topics[0].error, 0, "it is still missing");
    let output = world.commerce(&["consumer", "Nobody"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("there is no consumer Nobody") && text.contains(SALES), "{text}");
}
