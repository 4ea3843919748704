//! The same handlers behind a subscription, behind a consumer of what the sink wrote, and behind one of what the bus wrote.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::Template;
use postrider::testing::{Outbox, Tx};
use postrider::{
    CloudEvents, Context, ErrorKind, Event, EventBus, Failure, NewEvent, OptionalAttribute, Received, Relay,
    Upcasters, Uuid,
};
use postrider_kafka::{Format, Kafka, KafkaBuilder, KafkaBus};
use serde::{Deserialize, Serialize};
use support::{brisk, records, topics, until};

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(aggregate = "Order", id = order, stream = "orders", version = 2)]
struct OrderPaid {
    order: i64,
    currency: String,
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(aggregate = "Order", id = order, stream = "orders")]
struct OrderShipped {
    order: i64,
}

/// What handlers saw.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn saw(line: String) {
    SEEN.lock().expect("a list").push(line);
}

/// A plain handler with a context.
async fn paid(event: Received<OrderPaid>, context: Context) -> Result<(), Failure> {
    let (recorded, headers) = (event.event(), &event.event().headers);
    saw(format!(
        "{} {} {} of {} {}, {:?}, tenant {:?}, trace {:?}, correlation {:?}, try {}",
        context.subscription(),
        recorded.event_type,
        event.currency,
        recorded.aggregate_type,
        recorded.aggregate_id,
        recorded.occurred_at.unix_timestamp(),
        headers.tenant(),
        context.trace(),
        headers.correlation_id(),
        context.attempt(),
    ));
    Ok(())
}

/// A transactional handler that records what follows.
async fn shipped(event: Received<OrderShipped>, mut tx: Tx) -> Result<(), Failure> {
    let follow_up = NewEvent::of("mails", "MailAsked", "Mail", event.order.to_string(), &event.order)?;
    tx.record(&follow_up).await?;
    Ok(())
}

/// What the application publishes, whatever the bus.
async fn publish<W: ?Sized + Send>(bus: &(impl EventBus<W> + ?Sized), within: &mut W) -> Vec<Uuid> {
    let paid = OrderPaid { order: 7, currency: "KRW".to_owned() };
    let mut event = postrider::store::Recordable::to_new_event(&paid).expect("an event").into_owned();
    event.headers.set_tenant("acme");
    event.headers.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    event.headers.set_correlation_id("all of it");
    event.occurred_at = Some(postrider::OffsetDateTime::UNIX_EPOCH + Duration::from_secs(77));
    // An old version: it has no currency yet.
    let mut old = NewEvent::of("orders", OrderPaid::NAME, "Order", "8", &serde_json::json!({ "order": 8 }))
        .expect("an event");
    old.headers.set_schema_version(1);
    old.occurred_at = event.occurred_at;
    vec![
        bus.publish(within, &event).await.expect("published"),
        bus.publish(within, &old).await.expect("published"),
        bus.publish(within, &OrderShipped { order: 7 }).await.expect("published"),
    ]
}

fn upcasters() -> Upcasters {
    Upcasters::new().of::<OrderPaid>(1, |mut payload| {
        payload["currency"] = "EUR".into();
        payload
    })
}

/// Waits until the handlers are done, and takes what they saw.
async fn seen(outbox: &Outbox, cause: Uuid) -> Vec<String> {
    let follow_up =
        || outbox.recorded().into_iter().find(|event| event.headers.causation_id() == Some(cause));
    until("all three are handled", async || SEEN.lock().expect("a list").len() == 2 && follow_up().is_some())
        .await;
    let mut seen = std::mem::take(&mut *SEEN.lock().expect("a list"));
    seen.sort();
    seen
}

/// Runs the handlers behind a consumer, and takes what they saw.
async fn behind_a_consumer(brokers: &str, topic: &str, cause: Uuid) -> Vec<String> {
    let outbox = Outbox::new();
    let running = brisk(postrider_kafka::Consumer::new(&outbox, brokers, "orders").topics([topic]))
        .upcasters(upcasters())
        .on(paid)
        .on(shipped)
        .start()
        .await
        .expect("started");
    let seen = seen(&outbox, cause).await;
    running.stop().await.expect("stopped");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_handlers_run_unchanged_behind_an_outbox_a_sink_and_a_bus() {
    let modes = [
        ("binary", Format::Binary, &[][..]),
        ("structured", Format::Structured, &[]),
        ("binary-full", Format::Binary, &OptionalAttribute::ALL),
        ("structured-full", Format::Structured, &OptionalAttribute::ALL),
    ];
    let names = modes.map(|(name, ..)| [format!("sunk-{name}"), format!("bus-{name}")]);
    let names: Vec<(&str, u16)> = names.as_flattened().iter().map(|name| (name.as_str(), 2)).collect();
    let brokers = topics(&names);
    let outbox = Outbox::new();
    let mut tx = outbox.begin().await.expect("a transaction");
    let published = publish(&outbox, &mut *tx).await;
    tx.commit().await.expect("committed");
    let relay = Relay::new(&outbox)
        .upcasters(upcasters())
        .subscribe("orders", |s| s.streams(["orders"]).on(paid).on(shipped))
        .start()
        .await
        .expect("started");
    let wanted = seen(&outbox, published[2]).await;
    relay.stop().await.expect("stopped");
    assert!(wanted[0].starts_with("orders OrderPaid EUR of Order 8, 77, tenant None"), "{wanted:?}");
    assert!(
        wanted[1].starts_with("orders OrderPaid KRW of Order 7, 77, tenant Some(\"acme\")"),
        "{wanted:?}"
    );

    // A pattern for types is for those who read elsewhere: handlers here still go by the event type.
    let template = || Template::parse("com.shop.{event_type:kebab}.v{version}").expect("a template");
    for (name, format, attributes) in modes {
        let settings = |topic: &str| -> KafkaBuilder {
            let events = CloudEvents {
                type_template: Some(template()),
                source: Some("/shop".to_owned()),
                ..CloudEvents::default()
            };
            let settings = Kafka::builder(&brokers).topic(topic).format(format).events(events);
            settings.attributes(attributes.iter().copied())
        };
        let topic = format!("sunk-{name}");
        let sink = settings(&topic).connect().await.expect("connected");
        let relay = Relay::new(&outbox)
            .subscribe(&topic, |s| s.streams(["orders"]).sink(sink))
            .start()
            .await
            .expect("started");
        for event in &published {
            relay.delivered(&topic, *event, support::PATIENCE).await.expect("delivered");
        }
        relay.stop().await.expect("stopped");
        assert_eq!(behind_a_consumer(&brokers, &topic, published[2]).await, wanted, "{topic}");

        let topic = format!("bus-{name}");
        let bus = Arc::new(KafkaBus::connect(settings(&topic)).await.expect("connected"));
        let sent = publish::<()>(&*bus, &mut ()).await;
        assert_eq!(behind_a_consumer(&brokers, &topic, sent[2]).await, wanted, "{topic}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_answers_when_all_have_the_event_and_says_what_is_wrong() {
    let brokers = topics(&[("answers", 1)]);
    let bus = KafkaBus::connect(Kafka::builder(&brokers).topic("answers")).await.expect("connected");
    let id = EventBus::<()>::publish(&bus, &mut (), &OrderShipped { order: 1 }).await.expect("published");
    let there = records(&brokers, "answers", 1);
    assert_eq!((there.len(), there[0].headers["ce_id"].as_str()), (1, id.to_string().as_str()));
    let refused = async |bus: KafkaBus| {
        EventBus::<()>::publish(&bus, &mut (), &OrderShipped { order: 1 }).await.expect_err("refused")
    };
    let nowhere = refused(KafkaBus::new(Kafka::builder(&brokers).topic("nowhere")).expect("a bus")).await;
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    assert!(nowhere.to_string().contains("the topic nowhere does not exist; create it"), "{nowhere}");
    let away = refused(KafkaBus::new(Kafka::builder("127.0.0.1:1").topic("answers")).expect("a bus")).await;
    assert_eq!(away.kind(), ErrorKind::Unreachable, "{away}");
    assert!(KafkaBus::new(Kafka::builder(&brokers).property("acks", "1")).is_err());
}
