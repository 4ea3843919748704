//! What a relay logs. E14, C14: every line on an event says which, whose and how it went, and never what it says.

use std::time::{Duration, Instant};

use postrider::store::{DeliveryFailure, OutboxSource, Outcome};
use postrider::testing::{Destination, Outbox, until_quiet};
use postrider::{Event, Failure, NewEvent, Received, Relay, Retry, Uuid};
use postrider_testkit::LogLines;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: String,
    card: String,
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The events, by what becomes of them.
struct Ids {
    fine: Uuid,
    again: Uuid,
    dies: Uuid,
    known: Uuid,
}

async fn record(outbox: &Outbox, order: &str) -> Uuid {
    let event = OrderPaid { order: order.to_owned(), card: "4111-1111".to_owned() };
    let event = postrider::store::Recordable::to_new_event(&event).expect("an event").into_owned();
    outbox.record_alone(&event).await.expect("recorded")
}

async fn handle(event: Received<OrderPaid>) -> Result<(), Failure> {
    tracing::info!("in the handler");
    match (event.order.as_str(), event.attempt()) {
        ("again", 1) => Err(Failure::retry("not now")),
        ("dies", _) => Err(Failure::reject("never").answer("the card 4111-1111 was refused")),
        _ => Ok(()),
    }
}

/// Delivers to a handler, to a sink with an outage, and to one that is always too early.
async fn deliver(outbox: &Outbox, lines: &LogLines) -> Ids {
    let fine = record(outbox, "fine").await;
    let again = record(outbox, "again").await;
    let dies = record(outbox, "dies").await;
    let shop = Destination::new();
    shop.unavailable(Some("connection refused"));
    let sink = shop.clone();
    let late = Destination::new();
    late.decide(|_| Outcome::retry(DeliveryFailure::new("refused", "too early")));
    let short = Retry::fixed(Duration::from_millis(5)).max_age(Duration::from_millis(20));
    let relay = Relay::new(outbox)
        .subscribe("mail", |s| s.on(handle).retry(Retry::fixed(Duration::from_millis(20))))
        .subscribe("shop", |s| s.sink(sink).longest_pause(Duration::from_millis(20)))
        .subscribe("late", |s| s.sink(late).retry(short))
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
    until_quiet(&relay, "mail").await.expect("quiet");
    until_quiet(&relay, "late").await.expect("quiet");
    relay.stop().await.expect("stopped");
    Ids { fine, again, dies, known }
}

/// What a line says of whose event it is about.
fn who(event: Uuid, order: &str) -> [String; 6] {
    [
        format!("event_id={event}"),
        format!("trace_id=\"{TRACE}\""),
        "stream=orders".to_owned(),
        "event_type=OrderPaid".to_owned(),
        "aggregate_type=Order".to_owned(),
        format!("aggregate_id={order}"),
    ]
}

/// The lines on an event that contain these parts, too.
fn said(lines: &LogLines, event: Uuid, order: &str, rest: &[&str]) -> Vec<String> {
    let who = who(event, order);
    let parts: Vec<&str> = who.iter().map(String::as_str).chain(rest.iter().copied()).collect();
    lines.with(&parts)
}

#[tokio::test]
async fn every_line_on_an_event_says_which_and_none_what_it_says() {
    let lines = LogLines::capture();
    let outbox = Outbox::builder().trace(|| Some(TRACE.to_owned())).build();
    let Ids { fine, again, dies, known } = deliver(&outbox, &lines).await;

    let said = |event, order: &str, rest: &[&str]| said(&lines, event, order, rest);
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
    let summaries = lines.with(&["INFO", "subscription=mail", "lane=0", "batches=", "delivered="]);
    assert!(!lines.with(&["INFO", "subscription=mail", "retried=1", "dead=1"]).is_empty(), "{summaries:#?}");
    let position = |line: &String| line.contains("position=\"4/4\"");
    assert!(summaries.last().is_some_and(position), "where the lane stands: {summaries:#?}");
    let recorded = postrider::testing::recorded(&outbox).await.expect("recorded").remove(0);
    let times = [
        format!("recorded_at=\"{}T", recorded.recorded_at.date()),
        format!("occurred_at=\"{}T", recorded.occurred_at.date()),
    ];
    let expired = ["WARN", "subscription=late", "outcome=\"dead\"", "expired", "age_seconds="];
    let expired: Vec<&str> = expired.into_iter().chain(times.iter().map(String::as_str)).collect();
    one(said(fine, "fine", &expired));
    let in_handler = who(fine, "fine");
    let parts: Vec<&str> = in_handler.iter().map(String::as_str).chain(["in the handler"]).collect();
    one(lines.with(&parts));
    assert!(lines.with(&["4111"]).is_empty(), "no payload in any line");
}
