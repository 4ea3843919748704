//! Events that are too old to be worth sending, by a clock that the test turns.

use std::time::Duration;

use postrider::store::{OutboxSource, State};
use postrider::testing::{Clock, ManualClock, Outbox, until_quiet};
use postrider::{NewEvent, OffsetDateTime, Order, Relay, Retry, Running, Uuid, WhileUnavailable};
use postrider_kafka::Kafka;
use xtask::kafka::{Broker, Options};

use crate::arrivals::Topic;
use crate::{state, until};

const MINUTE: Duration = Duration::from_secs(60);

struct Shop {
    clock: ManualClock,
    outbox: Outbox,
    broker: Broker,
    relay: Running,
}

impl Shop {
    async fn new() -> Self {
        let broker = Broker::create(&Options::new()).expect("a broker starts");
        broker.create_topic("orders", 1).expect("a topic");
        let clock = ManualClock::at(OffsetDateTime::UNIX_EPOCH + 1000 * MINUTE);
        let outbox = Outbox::builder().clock(Clock::Manual(clock.clone())).build();
        let sink = Kafka::builder(&broker.bootstrap()).send_timeout(Duration::from_secs(3));
        let sink = sink.connect().await.expect("a sink");
        let relay = Relay::new(&outbox)
            .poll_interval(Duration::from_millis(200))
            .subscribe("kafka", |s| {
                s.sink(sink)
                    .order(Order::Strict)
                    .retry(Retry::fixed(Duration::from_secs(10)).max_age(5 * MINUTE))
                    .while_unavailable(WhileUnavailable::Expire)
                    .longest_pause(Duration::from_millis(100))
            })
            .start()
            .await
            .expect("started");
        Self { clock, outbox, broker, relay }
    }

    async fn record(&self, stream: &str, number: i64) -> Uuid {
        let event = NewEvent::of(stream, "OrderPaid", "Order", "7", &number).expect("an event");
        self.outbox.record_alone(&event).await.expect("recorded")
    }

    async fn state(&self, event: Uuid) -> State {
        state(&**self.relay.store(), event).await.state
    }

    /// The numbers that are in the topic.
    fn arrived(&self) -> Vec<i64> {
        let arrivals = Topic::new(&self.broker.bootstrap(), "orders", 1).arrivals();
        arrivals.iter().map(crate::arrivals::IncomingEvent::number).collect()
    }
}

/// C7.
#[tokio::test(flavor = "multi_thread")]
async fn after_five_minutes_without_a_broker_an_event_is_dead_and_the_rest_goes_on() {
    let mut shop = Shop::new().await;
    let before = shop.record("orders", 1).await;
    shop.relay.delivered("kafka", before, MINUTE).await.expect("delivered");
    shop.broker.kill().expect("killed");
    let old = [shop.record("orders", 2).await, shop.record("orders", 3).await];
    shop.clock.advance(4 * MINUTE);
    for event in old {
        assert_ne!(shop.state(event).await, State::Dead, "it is not five minutes old");
    }
    shop.clock.advance(MINUTE);
    for event in old {
        until("it is dead", async || shop.state(event).await == State::Dead).await;
        let dead = state(&**shop.relay.store(), event).await;
        assert_eq!((dead.attempts, dead.error_code.as_deref()), (0, Some("expired")));
        let message = dead.error_message.expect("a sentence");
        assert!(message.contains("the destination was unavailable"), "{message}");
    }
    let young = shop.record("orders", 4).await;
    shop.clock.advance(4 * MINUTE);
    shop.broker.start().expect("started again");
    shop.relay.delivered("kafka", young, MINUTE).await.expect("its time had not come");
    shop.record("orders", 5).await;
    until_quiet(&shop.relay, "kafka").await.expect("the rest goes on");
    assert_eq!(shop.arrived(), [1, 4, 5]);
    shop.relay.stop().await.expect("stopped");
}

/// C7.
#[tokio::test(flavor = "multi_thread")]
async fn after_five_minutes_without_its_topic_an_event_is_dead_and_the_rest_goes_on() {
    let shop = Shop::new().await;
    let before = shop.record("orders", 0).await;
    shop.relay.delivered("kafka", before, MINUTE).await.expect("delivered");
    let lost = shop.record("payments", 1).await;
    let behind = shop.record("orders", 2).await;
    until("it is held", async || state(&**shop.relay.store(), lost).await.error_code.is_some()).await;
    shop.clock.advance(4 * MINUTE);
    let later = shop.record("orders", 3).await;
    assert_ne!(shop.state(lost).await, State::Dead, "it is not five minutes old");
    assert_ne!(shop.state(behind).await, State::Done, "strict: nothing overtakes it");
    shop.clock.advance(MINUTE);
    until("it is dead", async || shop.state(lost).await == State::Dead).await;
    let dead = state(&**shop.relay.store(), lost).await;
    assert!(
        dead.error_message.is_some_and(|message| message.contains("payments of OrderPaid does not exist"))
    );
    let mut turned = 0;
    for event in [behind, later] {
        // What waits is looked at again when its time comes, by the same clock.
        until("the rest goes on", async || {
            if turned < 20 {
                turned += 1;
                shop.clock.advance(Duration::from_secs(1));
            }
            shop.state(event).await == State::Done
        })
        .await;
    }
    assert_eq!(shop.arrived(), [0, 2, 3]);
    shop.relay.stop().await.expect("stopped");
}
