//! The four consumers on Kafka, each in a group of its own with an idempotency of its own.

use std::time::Duration;

use postrider::kafka::{Consumer, Keep, Offsets, unique};
use postrider::postgres::{Outbox, Tx};
use postrider::{Failure, Raw, Received, Retry};

use crate::adapters::cache::HttpCache;
use crate::adapters::counts::Within;
use crate::adapters::mapping::{LIKE_CANCELED, LIKE_CREATED, ORDER_PAID, PRODUCT_VIEWED, STOCK_DEPLETED};
use crate::adapters::payload::{Like, OrderPaid, ProductViewed, StockDepleted};
use crate::application::consumers::{LikeState, LikeStates, count_likes, count_sales, count_view, forget};
use crate::application::ports::Refusal;

/// The consumers' names are their groups'.
pub const LIKES: &str = "ProductLikeEventConsumer";
/// Counts sales.
pub const SALES: &str = "ProductOrderEventConsumer";
/// Counts views.
pub const VIEWS: &str = "ProductViewEventConsumer";
/// Empties the cache.
pub const STOCK: &str = "ProductStockEventConsumer";

/// What all four are set to.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `host:port`, separated by commas.
    pub brokers: String,
    /// What stands before the names of topics and groups, where several shops share a broker.
    pub prefix: String,
    /// How many records of a partition are handled together, at most.
    pub max_poll_records: usize,
    /// How often a failed event is tried again before it is a dead letter.
    pub retries: u32,
    /// How long after a failure.
    pub retry_interval: Duration,
    /// How long a consumer may be silent before others take its partitions.
    pub session_timeout: Duration,
}

impl Settings {
    /// The document's values.
    pub fn new(brokers: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            prefix: String::new(),
            max_poll_records: 100,
            retries: 3,
            retry_interval: Duration::from_secs(1),
            session_timeout: Duration::from_secs(10),
        }
    }

    /// The name of a group or a topic.
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A consumer of a topic. Offsets are committed by hand when their records are done; a new group begins at the end.
    fn consumer(&self, outbox: &Outbox, group: &str, topic: &str) -> Consumer<Outbox> {
        Consumer::new(outbox, &self.brokers, &self.name(group))
            .topics([self.name(topic)])
            .from(Offsets::Latest)
            .records_per_poll(self.max_poll_records)
            .retry(Retry::fixed(self.retry_interval).max_attempts(self.retries + 1))
            .wait_for_brokers(Duration::MAX)
            .property("session.timeout.ms", self.session_timeout.as_millis().to_string())
            .property("heartbeat.interval.ms", (self.session_timeout / 4).as_millis().to_string())
    }
}

/// Likes per product. A batch is reduced to the last state of each user and product, and the states are kept.
pub fn likes<L>(settings: &Settings, outbox: &Outbox, states: L) -> Consumer<Outbox>
where
    L: LikeStates + Clone + Send + Sync + 'static,
{
    // Both types in one batch, in their order: a handler of one type would see only half of it.
    settings.consumer(outbox, LIKES, "like-events").on_other(move |events: Vec<Received<Raw>>| {
        let states = states.clone();
        async move { handle_likes(events, states).await }
    })
}

async fn handle_likes<L: LikeStates>(
    events: Vec<Received<Raw>>,
    mut likes: L,
) -> Result<Vec<Result<(), Failure>>, Failure> {
    let mut answers = Vec::with_capacity(events.len());
    let mut states = Vec::with_capacity(events.len());
    for event in events {
        match like_state(&event) {
            Ok(state) => {
                states.extend(state);
                answers.push(Ok(()));
            }
            Err(failure) => answers.push(Err(failure)),
        }
    }
    let batch = unique(states, Keep::Last, |state: &LikeState| (state.user_id, state.product_id));
    for LikeState { user_id, product_id, .. } in &batch.dropped {
        tracing::debug!(user_id, product_id, "a newer state of this like is in the batch; skipped");
    }
    count_likes(&batch.kept, &mut likes).await.map_err(failure)?;
    Ok(answers)
}

/// The state that an event says; nothing if it is of a type that nobody here knows.
fn like_state(event: &Received<Raw>) -> Result<Option<LikeState>, Failure> {
    let recorded = event.event();
    let liked = match &*recorded.event_type {
        LIKE_CREATED => true,
        LIKE_CANCELED => false,
        _ => return Ok(None),
    };
    let Like { user_id, product_id } = recorded
        .payload
        .decode()
        .map_err(|_| Failure::reject("its payload is no like").code("undecodable"))?;
    let since = (recorded.occurred_at.unix_timestamp_nanos() / 1000) as i64;
    Ok(Some(LikeState { user_id, product_id, liked, since }))
}

/// Sales per product. The mark in the inbox and the sum are one commit.
pub fn sales(settings: &Settings, outbox: &Outbox) -> Consumer<Outbox> {
    settings.consumer(outbox, SALES, "order-events").on_type(
        ORDER_PAID,
        async |event: Received<OrderPaid>, mut tx: Tx| {
            count_sales(event.order_id, &mut Within(&mut tx)).await.map_err(failure)
        },
    )
}

/// Views per product. The mark in the inbox and the sum are one commit, for up to a batch of views.
pub fn views(settings: &Settings, outbox: &Outbox) -> Consumer<Outbox> {
    settings.consumer(outbox, VIEWS, "product-events").max_tx_batch(settings.max_poll_records).on_type(
        PRODUCT_VIEWED,
        async |event: Received<ProductViewed>, mut tx: Tx| {
            count_view(event.product_id, &mut Within(&mut tx)).await.map_err(failure)
        },
    )
}

/// Empties the cache of products that are sold out. It may do so twice.
pub fn stock(settings: &Settings, outbox: &Outbox, cache: HttpCache) -> Consumer<Outbox> {
    settings.consumer(outbox, STOCK, "stock-events").on_type(
        STOCK_DEPLETED,
        move |event: Received<StockDepleted>| {
            let cache = cache.clone();
            async move { forget(event.product_id, &cache).await.map_err(failure) }
        },
    )
}

/// What a refusal means for an event: a cache or a database that is away is an outage, anything else is tried again.
fn failure(refusal: Refusal) -> Failure {
    let error = match refusal {
        Refusal::Failed(error) => error,
        other => return Failure::retry(other),
    };
    let error = match error.downcast::<reqwest::Error>() {
        Ok(error) => return postrider::http::failure(*error),
        Err(error) => error,
    };
    match error.downcast::<sqlx::Error>() {
        Ok(error) => postrider::postgres::failure(*error),
        Err(error) => Failure::from(error),
    }
}
