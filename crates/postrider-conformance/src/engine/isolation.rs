//! One event's trouble is its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use postrider::store::{Clock, State};
use postrider::testing::{Destination, until_quiet};
use postrider::{Failure, OnDead, Received, Retry, Tx};
use postrider_core::{Delivery, Sink, Unavailable};

use super::{Fixture, OrderChanged, record, relay, state};

/// Panics when it is given an event of an order, and hands the others on.
struct Shy {
    order: &'static str,
    once: bool,
    over: AtomicBool,
    shop: Destination,
}

#[async_trait]
impl Sink for Shy {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let asked = delivery.events.iter().any(|attempt| attempt.event.aggregate_id == self.order);
        if asked && !(self.once && self.over.swap(true, Ordering::SeqCst)) {
            panic!("an event of {} came", self.order);
        }
        self.shop.deliver(delivery).await
    }
}

fn shy(order: &'static str, once: bool) -> (Shy, Destination) {
    let shop = Destination::new();
    (Shy { order, once, over: AtomicBool::new(false), shop: shop.clone() }, shop)
}

/// It fails as often as its policy says, and is dead then; the others are delivered.
pub async fn a_panic_in_a_sink_is_a_failure_of_its_event<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut events = Vec::new();
    for version in 1..=4 {
        for order in ["a", "b", "c"] {
            events.push((order, record(&outbox, order, version).await));
        }
    }
    let (sink, shop) = shy("b", false);
    let retry = Retry::fixed(Duration::from_millis(1)).max_attempts(2);
    let running =
        relay(&outbox).subscribe("s", |s| s.sink(sink).retry(retry)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("the lane is not stopped by it");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    for (order, event) in events {
        let now = state(&*store, "s", event).await;
        if order == "b" {
            assert_eq!((now.state, now.attempts), (State::Dead, 2), "{now:?}");
            assert_eq!(now.error_code.as_deref(), Some("panic"));
            let said = now.error_message.unwrap_or_default();
            assert!(!said.contains("an event of"), "what a panic says may quote the payload: {said}");
        } else {
            assert_eq!(now.state, State::Done, "{order}");
        }
    }
    let versions = |order: &str| {
        let delivered = shop.delivered();
        let of_it = delivered.iter().filter(|event| event.aggregate_id == order);
        of_it.map(|event| event.payload.decode::<OrderChanged>().expect("JSON").version).collect::<Vec<_>>()
    };
    assert_eq!((versions("a"), versions("c")), (vec![1, 2, 3, 4], vec![1, 2, 3, 4]), "once, and in order");
}

/// One that comes alone the next time costs no attempt of anybody.
pub async fn a_panic_that_does_not_come_again_is_held_against_nobody<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut events = Vec::new();
    for order in ["a", "b", "c"] {
        events.push(record(&outbox, order, 1).await);
    }
    let (sink, shop) = shy("b", true);
    let retry = Retry::fixed(Duration::from_millis(1)).max_attempts(1);
    let running =
        relay(&outbox).subscribe("s", |s| s.sink(sink).retry(retry)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    assert_eq!(shop.delivered().len(), 3);
    for event in events {
        assert_eq!(state(&*store, "s", event).await.state, State::Done);
    }
}

/// Under hold it keeps its own key, and no other.
pub async fn a_panic_in_a_sink_holds_its_key_where_the_dead_do<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut events = Vec::new();
    for version in 1..=2 {
        for order in ["a", "b"] {
            events.push(record(&outbox, order, version).await);
        }
    }
    let (sink, shop) = shy("b", false);
    let retry = Retry::fixed(Duration::from_millis(1)).max_attempts(1);
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).retry(retry).on_dead(OnDead::Hold))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    super::until("the first of it is dead", async || {
        state(&*store, "s", events[1]).await.state == State::Dead
    })
    .await;
    super::until("the others are done", async || shop.delivered().len() == 2).await;
    running.stop().await.expect("stopped");
    assert_eq!(state(&*store, "s", events[3]).await.state, State::Retrying, "it waits behind the dead one");
}

/// A handler may be given more time than its subscription; its transaction has it, too.
pub async fn a_handler_with_a_longer_time_has_it_in_its_transaction<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let handler = |_: Received<OrderChanged>, tx: Tx<G::Outbox>| async move {
        // Longer than the subscription allows, and than a server leaves an idle session in peace beyond that.
        tokio::time::sleep(Duration::from_secs(7)).await;
        drop(tx);
        Ok::<(), Failure>(())
    };
    // Where there is one writer, nobody extends the lease while a handler writes.
    let running = relay(&outbox)
        .lease(Duration::from_secs(30))
        .subscribe("s", |s| {
            s.on(handler)
                .timeout(Duration::from_secs(1))
                .timeout_of("OrderChanged", Duration::from_secs(20))
                .retry(Retry::fixed(Duration::from_millis(1)).max_attempts(1))
        })
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let now = state(&*store, "s", event).await;
    assert_eq!((now.state, now.attempts), (State::Done, 1), "{now:?}");
}
