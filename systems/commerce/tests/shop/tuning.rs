//! Other values than the document's: all of them are settings, and what runs works by them.

use std::time::{Duration, Instant};

use commerce::adapters::consumers::{LIKES, SALES, likes};
use commerce::adapters::counts::PgLikes;
use postrider::Uuid;
use postrider_testkit::{Logged, until};

use crate::consumers::ready;
use crate::feed::Feed;
use crate::relay::ROUNDS;
use crate::topic::committed;
use crate::world::{World, depleted, liked, paid};

/// C15: one retry, three seconds after the failure, in the place of three, each a second apart.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_retries_as_often_and_as_late_as_it_is_told() {
    let world = World::new(&["order-events"]).await;
    let feed = Feed::new(&world, "order-events");
    let mut command = world.commerce(&["consumer", SALES]);
    command.env("RETRIES", "1").env("RETRY_INTERVAL_MS", "3000");
    let _consumer = Logged::start(&mut command, world.folder.path(), "sales");
    let (group, topic) = (world.name(SALES), world.name("order-events"));
    until("it has its partitions", async || committed(&world.brokers, &group, &topic)[0] == 0).await;
    let began = Instant::now();
    feed.fact(Uuid::now_v7(), &paid(404));
    feed.flush();
    world.until_committed(SALES, "order-events", 1).await;
    let letter = world.topic("order-events.DLT").records().pop().expect("a letter");
    assert_eq!(letter.headers["postrider_attempts"], "2", "the first try and one more");
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
}

/// C15: ten records a poll in the place of a hundred.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_takes_as_many_records_as_it_is_told() {
    let world = World::new(&["like-events"]).await;
    let feed = Feed::new(&world, "like-events");
    let first = ready(likes(&world.settings(), &world.outbox, PgLikes(world.pool.clone()))).await;
    first.stop().await.expect("stopped");
    world
        .run(
            "create table batches (number bigint generated always as identity, size bigint);
             create function note_batch() returns trigger language plpgsql as
             $$ begin insert into batches (size) select count(*) from fresh; return null; end $$;
             create trigger note after insert on metrics.product_likes referencing new table as fresh
             for each statement execute function note_batch()",
        )
        .await;
    // While it is away, 25 users like a product.
    for user in 0..25 {
        feed.fact(Uuid::now_v7(), &liked(7, user));
    }
    feed.flush();
    let mut command = world.commerce(&["consumer", LIKES]);
    let _consumer = Logged::start(command.env("MAX_POLL_RECORDS", "10"), world.folder.path(), "likes");
    world.until_committed(LIKES, "like-events", 25).await;
    let sizes = world.texts("select string_agg(size::text, ' ' order by number) from batches").await;
    assert_eq!(sizes, ["10 10 5"]);
}

/// When the relay looked last, in milliseconds. Its pauses grow with the quiet up to the interval: by doubling, no two in a row are alike.
const LAST_LOOK: &str =
    "select coalesce(max((extract(epoch from query_start) * 1000)::bigint), 0) from pg_stat_activity
    where datname = current_database() and query like '%late as mat' || 'erialized%'";

/// C15: the relay's batch, its looks and its patience with an event that can't be sent.
#[tokio::test(flavor = "multi_thread")]
async fn the_relay_works_by_the_values_of_its_file() {
    let world = World::new(&["product-events"]).await;
    world.record_views(20).await;
    let _relay = world.relay(
        "one",
        &[
            ("[store]", "[store]\nbell = false"),
            ("poll_interval = \"100ms\"", "poll_interval = \"2s\""),
            ("batch = 100", "batch = 7"),
            ("max_age = \"5m\"", "max_age = \"3s\""),
        ],
    );
    world.until_sent().await;
    assert_eq!(world.texts(ROUNDS).await, ["7 7 6"]);
    let mut looks = Vec::new();
    until("three looks are two seconds apart", async || {
        let look = world.number(LAST_LOOK).await;
        if looks.last().is_none_or(|last| *last + 100 < look) {
            looks.push(look);
        }
        let mut pauses = looks.windows(2).rev().map(|pair| pair[1] - pair[0]).take(2);
        looks.len() > 2 && pauses.all(|pause| (1900..3000).contains(&pause))
    })
    .await;
    let failing = world.publish(depleted(2)).await;
    until("it is given up", async || world.state(failing).await == "dead").await;
    let patience = "select extract(epoch from f.failed_at - o.created_at)::bigint from outbox_failed f join outbox o using (id)";
    assert!((2..60).contains(&world.number(patience).await), "three seconds and not five minutes");
}
