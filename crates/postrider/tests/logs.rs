//! What a relay logs. E14, C14: every line on an event says which, whose and how it went, and never what it says.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use postrider::store::{DeliveryFailure, Outcome, Source};
use postrider::testing::{Destination, Outbox, until_quiet};
use postrider::{Event, Failure, NewEvent, Received, Relay, Retry};
use serde::{Deserialize, Serialize};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// The lines that contain all of these.
    fn with(&self, parts: &[&str]) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().expect("lines").clone()).expect("text");
        text.lines()
            .filter(|line| parts.iter().all(|part| line.contains(part)))
            .map(ToOwned::to_owned)
            .collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lines").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[derive(Serialize, Deserialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: String,
    card: String,
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn every_line_on_an_event_says_which_and_none_what_it_says() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");

    let outbox = Outbox::builder().trace(|| Some(TRACE.to_owned())).build();
    let record = async |order: &str| {
        let event = OrderPaid { order: order.to_owned(), card: "4111-1111".to_owned() };
        let event = postrider::store::Recordable::to_new_event(&event).expect("an event").into_owned();
        outbox.record_alone(&event).await.expect("recorded")
    };
    let fine = record("fine").await;
    let again = record("again").await;
    let dies = record("dies").await;
    let handler = |event: Received<OrderPaid>| async move {
        tracing::info!("in the handler");
        match (event.order.as_str(), event.attempt()) {
            ("again", 1) => Err(Failure::retry("not now")),
            ("dies", _) => Err(Failure::reject("never").answer("the card 4111-1111 was refused")),
            _ => Ok(()),
        }
    };
    let shop = Destination::new();
    shop.unavailable(Some("connection refused"));
    let sink = shop.clone();
    let relay = Relay::new(&outbox)
        .subscribe("mail", |s| s.on(handler).retry(Retry::fixed(Duration::from_millis(20))))
        .subscribe("shop", |s| s.sink(sink).longest_pause(Duration::from_millis(20)))
        .start()
        .await
        .expect("started");
    until_quiet(&relay, "mail").await.expect("quiet");
    let end = Instant::now() + Duration::from_secs(10);
    while lines.with(&["subscription=shop", "unavailable"]).is_empty() {
        assert!(Instant::now() < end, "the outage is said");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shop.unavailable(None);
    until_quiet(&relay, "shop").await.expect("quiet");
    shop.decide(|_| Outcome::Duplicate);
    let event = NewEvent::of("orders", "OrderPaid", "Order", "known", &"4111-1111").expect("an event");
    let known = outbox.record_alone(&event).await.expect("recorded");
    until_quiet(&relay, "shop").await.expect("quiet");
    shop.decide(|_| Outcome::retry(DeliveryFailure::new("refused", "not now")));
    relay.stop().await.expect("stopped");

    let who = |event: postrider::Uuid, order: &str| {
        [
            format!("event_id={event}"),
            format!("trace_id=\"{TRACE}\""),
            "stream=orders".to_owned(),
            "event_type=OrderPaid".to_owned(),
            "aggregate_type=Order".to_owned(),
            format!("aggregate_id={order}"),
        ]
    };
    let said = |event, order: &str, rest: &[&str]| {
        let who = who(event, order);
        let parts: Vec<&str> = who.iter().map(String::as_str).chain(rest.iter().copied()).collect();
        lines.with(&parts)
    };
    let one = |found: Vec<String>| assert_eq!(found.len(), 1, "{found:#?}");
    one(said(fine, "fine", &["DEBUG", "subscription=mail", "outcome=\"delivered\"", "attempt=1"]));
    one(said(
        again,
        "again",
        &["WARN", "outcome=\"retry\"", "attempt=1", "next_in_seconds=0.02", "error=not now"],
    ));
    one(said(again, "again", &["DEBUG", "subscription=mail", "outcome=\"delivered\"", "attempt=2"]));
    one(said(dies, "dies", &["WARN", "outcome=\"dead\"", "error_code=rejected", "error=never"]));
    one(said(known, "known", &["DEBUG", "subscription=shop", "outcome=\"duplicate\""]));
    one(lines.with(&["WARN", "subscription=shop", "unavailable", "connection refused"]));
    one(lines.with(&["INFO", "subscription=shop", "available again"]));
    assert!(
        !lines.with(&["INFO", "subscription=mail", "batches=", "retried=1", "dead=1"]).is_empty(),
        "a summary"
    );
    let in_handler = who(fine, "fine");
    let parts: Vec<&str> = in_handler.iter().map(String::as_str).chain(["in the handler"]).collect();
    one(lines.with(&parts));
    assert!(lines.with(&["4111"]).is_empty(), "no payload in any line");
}
