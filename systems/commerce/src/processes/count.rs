//! The count at the end of the story: what was recorded arrived or is dead, and what was counted is what happened.

use std::collections::BTreeMap;

use postrider::postgres::Outbox;
use story::Story;

use crate::adapters::cache::HttpCache;
use crate::application::ports::ProductCache;
use crate::processes::arrivals::{Arrivals, TOPICS};
use crate::processes::stage::Stage;

/// The products whose sales are not what was ordered and paid.
pub const SALES_OF_EACH: (&str, &str) = (
    "sales of each product",
    "select count(*) from products p where
        coalesce((select sum(l.quantity) from order_lines l join payments using (order_id) where l.product_id = p.id), 0)
        <> coalesce((select quantity from metrics.product_sales s where s.product_id = p.id), 0)",
);

/// What the consumers know against what happened: the number of products whose figures differ.
const DIFFERENCES: [(&str, &str); 3] = [
    (
        "likes of each product",
        "select count(*) from products p where
            (select count(*) from likes l where l.product_id = p.id)
            <> coalesce((select likes from metrics.product_like_count c where c.product_id = p.id), 0)",
    ),
    SALES_OF_EACH,
    (
        "views of each product",
        "select count(*) from products p where
            (select count(*) from product_views v where v.product_id = p.id)
            <> coalesce((select views from metrics.product_views c where c.product_id = p.id), 0)",
    ),
];

/// Counts, and says which promises held.
pub async fn count(story: &mut Story, stage: &Stage) {
    for (what, sql) in DIFFERENCES {
        let promise = format!("{what} = the source tables; products that differ");
        stage.comes_to(story, &promise, sql, 0).await;
    }
    let recorded = by_type(stage, "outbox").await;
    let failed = by_type(stage, "outbox_failed").await;
    let arrivals = Arrivals::default();
    let outbox = Outbox::connect(&stage.pool).await.unwrap_or_else(|error| panic!("{error}"));
    let counting = arrivals.begin(&outbox, &stage.broker.bootstrap()).await;
    let counting = counting.unwrap_or_else(|error| panic!("{error}"));
    let wanted: i64 = recorded.values().sum::<i64>() - failed.values().sum::<i64>();
    let arrived = async || arrivals.by_type().values().sum::<i64>();
    story.comes_to("what arrived in the topics = recorded - failed", arrived, wanted).await;
    for (event_type, recorded) in &recorded {
        let arrived = arrivals.by_type().get(event_type).copied().unwrap_or_default();
        let dead = failed.get(event_type).copied().unwrap_or_default();
        let promise = format!("{event_type}: recorded = arrived + failed");
        story.equal(&promise, (*recorded, dead), (arrived + dead, dead));
    }
    story.figure("records that came again (the batches in hand)", arrivals.duplicates());
    for (what, sums) in [
        ("likes", "select sum(likes)::bigint from metrics.product_like_count"),
        ("pieces sold", "select sum(quantity)::bigint from metrics.product_sales"),
        ("views", "select sum(views)::bigint from metrics.product_views"),
    ] {
        story.figure(what, stage.number(sums).await);
    }
    depleted(story, stage).await;
    for topic in TOPICS {
        story.equal(&format!("dead letters of {topic} that are left"), stage.letters(topic), Some(0));
    }
    if let Err(error) = counting.stop().await {
        story.holds("the count ends well", false, error);
    }
}

/// Nobody who looks is told that a product is available which is sold out. Who looked since then may have cached that it is not.
async fn depleted(story: &mut Story, stage: &Stage) {
    let cache = HttpCache::new(story::process::client(), &stage.cache).patient();
    let sold_out = sqlx::query_scalar("select id from products where stock = 0 order by id");
    let sold_out: Vec<i64> =
        sold_out.fetch_all(&stage.pool).await.unwrap_or_else(|error| panic!("no products: {error}"));
    let mut wrong = Vec::new();
    for product in &sold_out {
        let card = cache.get(*product).await.unwrap_or_else(|error| panic!("the cache failed: {error}"));
        if card.is_some_and(|card| card.available) {
            wrong.push(*product);
        }
    }
    let found = format!("{} are sold out, of {wrong:?} the cache is wrong", sold_out.len());
    story.holds(
        "the cache has no product as available that is sold out",
        !sold_out.is_empty() && wrong.is_empty(),
        found,
    );
}

async fn by_type(stage: &Stage, table: &str) -> BTreeMap<String, i64> {
    let sql = format!("select event_type, count(*) from {table} group by 1");
    let rows = sqlx::query_as::<_, (String, i64)>(sqlx::AssertSqlSafe(sql)).fetch_all(&stage.pool).await;
    rows.unwrap_or_else(|error| panic!("{table}: {error}")).into_iter().collect()
}
