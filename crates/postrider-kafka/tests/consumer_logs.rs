//! What a consumer logs. E14, C14: every line on a record says where it is, which event it holds and how it went, and never what it says.

mod support;

use postrider::testing::Outbox;
use postrider::{Event, Failure, Received};
use postrider_testkit::LogLines;
use serde::{Deserialize, Serialize};
use support::{Feed, committed, consumer, topics, until};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[derive(Serialize, Deserialize, Event)]
#[event(stream = "shop", aggregate = "Order", id = order)]
struct OrderPaid {
    order: String,
    card: String,
}

/// An order that was paid, with some headers more.
fn paid(feed: &mut Feed, id: &str, order: &str, more: &[(&str, &str)]) {
    let value = format!(r#"{{"order": "{order}", "card": "4111-1111"}}"#);
    let mut headers = vec![
        ("ce_specversion", "1.0"),
        ("ce_id", id),
        ("ce_source", "/feed"),
        ("ce_type", "OrderPaid"),
        ("ce_stream", "shop"),
        ("ce_subject", order),
        ("ce_traceparent", TRACE),
        ("content-type", "application/json"),
    ];
    headers.extend(more);
    feed.raw(order, &value, &headers);
}

/// The one line on the record at an offset with these parts; with all fields of an event, if it is one.
fn one(lines: &LogLines, offset: i64, event: Option<(&str, &str)>, parts: &[&str]) {
    let mut wanted: Vec<String> = ["group=clerk", "topic=logs", "partition=0"].map(ToOwned::to_owned).into();
    wanted.push(format!("offset={offset} "));
    if let Some((id, order)) = event {
        wanted.push(format!("trace_id=\"{TRACE}\""));
        wanted.push(format!("event_id={}", postrider::CloudEvents::event_id("/feed", id)));
        wanted.extend(["stream=shop", "event_type=OrderPaid", "aggregate_type=Order"].map(ToOwned::to_owned));
        wanted.push(format!("aggregate_id={order}"));
    }
    wanted.extend(parts.iter().map(|part| (*part).to_owned()));
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let found = lines.with(&wanted);
    let about = lines.with(&["group=clerk", &format!("offset={offset} ")]);
    assert_eq!(found.len(), 1, "{wanted:?}: {about:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_on_a_record_says_where_it_is_and_which_event_it_holds() {
    let lines = LogLines::capture();
    let brokers = topics(&[("logs", 1)]);
    let mut feed = Feed::new(&brokers, "logs");
    paid(&mut feed, "1", "fine", &[]);
    paid(&mut feed, "1", "fine", &[]);
    paid(&mut feed, "2", "again", &[]);
    paid(&mut feed, "3", "dies", &[]);
    feed.raw("x", "4111-1111", &[]);
    paid(&mut feed, "4", "theirs", &[("postrider_requeued_for", "mailer")]);
    paid(&mut feed, "5", "counted", &[("ce_sequence", "1")]);
    paid(&mut feed, "6", "counted", &[("ce_sequence", "3")]);
    feed.flush();
    let handler = |event: Received<OrderPaid>| async move {
        match (event.order.as_str(), event.attempt()) {
            ("again", 1) => Err(Failure::retry("not now")),
            ("dies", _) => Err(Failure::reject("never").answer("the card 4111-1111 was refused")),
            _ => Ok(()),
        }
    };
    let running = consumer(&Outbox::new(), &brokers, "clerk", "logs");
    let running = running.on(handler).inbox().start().await.expect("started");
    until("they are done", async || committed(&brokers, "clerk", "logs", 1) == [8]).await;
    // In another batch, the inbox knows it.
    paid(&mut feed, "1", "fine", &[]);
    feed.flush();
    until("it is done as well", async || committed(&brokers, "clerk", "logs", 1) == [9]).await;
    paid(&mut feed, "7", "newer", &[("ce_schemaversion", "2")]);
    feed.flush();
    until("it waits", async || !lines.with(&["outcome=\"hold\""]).is_empty()).await;
    running.stop().await.expect("stopped");

    let delivered = ["DEBUG", "outcome=\"delivered\"", "attempt=1"];
    one(&lines, 0, Some(("1", "fine")), &delivered);
    one(&lines, 1, Some(("1", "fine")), &["DEBUG", "outcome=\"duplicate\"", "skipped"]);
    let retry = ["WARN", "outcome=\"retry\"", "attempt=1", "next_in_seconds=0.2", "error=not now"];
    one(&lines, 2, Some(("2", "again")), &retry);
    one(&lines, 2, Some(("2", "again")), &["DEBUG", "outcome=\"delivered\"", "attempt=2"]);
    let dead = ["WARN", "outcome=\"dead\"", "dead_letters=\"logs.DLT\""];
    let rejected = [&dead[..], &["attempt=1", "error_code=rejected", "error=never"]].concat();
    one(&lines, 3, Some(("3", "dies")), &rejected);
    one(&lines, 4, None, &[&dead[..], &["error_code=not_an_event"]].concat());
    assert!(lines.with(&["offset=4 ", "event_id"]).is_empty(), "what is no event has no fields of one");
    let passed_over =
        lines.with(&["DEBUG", "offset=5 ", "outcome=\"skipped\"", "aggregate_id=theirs", TRACE]);
    assert_eq!(passed_over.len(), 1, "{passed_over:#?}");
    one(&lines, 6, Some(("5", "counted")), &delivered);
    let gap = lines.with(&["WARN", "offset=7 ", "expected=2", "got=3", "aggregate_id=counted", TRACE]);
    assert_eq!(gap.len(), 1, "{gap:#?}");
    one(&lines, 8, Some(("1", "fine")), &["DEBUG", "outcome=\"duplicate\"", "already handled"]);
    let waits = ["WARN", "outcome=\"hold\"", "error_code=version_from_the_future", "next_in_seconds=30"];
    one(&lines, 9, Some(("7", "newer")), &waits);
    assert!(lines.with(&["4111-1111"]).is_empty(), "no payload in any line");
}
