//! What a transaction in memory does beside the suite's promises: values, waiting, headers.

use std::time::Duration;

use postrider_core::{
    Clock, ErrorKind, EventBus, ManualClock, NewEvent, OffsetDateTime, OutboxSource, Result, Uuid,
};
use postrider_memory::{Connection, Outbox};

fn paid(order: &str) -> NewEvent {
    NewEvent::of("orders", "OrderPaid", "Order", order, &order).expect("JSON")
}

/// Whether something has to wait: it is looked at once, and dropped.
async fn waits<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::ZERO, future).await.is_err()
}

#[tokio::test]
async fn a_value_commits_with_its_event() {
    let outbox = Outbox::new();
    let mut tx = outbox.begin().await.expect("begin");
    tx.set("order 7", "paid").await.expect("set");
    outbox.record(&mut tx, &paid("7")).await.expect("record");
    assert_eq!(tx.get("order 7").as_deref(), Some("paid"), "it sees its own");
    assert_eq!((outbox.get("order 7"), outbox.recorded().len()), (None, 0), "nobody else does");
    tx.commit().await.expect("commit");
    assert_eq!(outbox.get("order 7").as_deref(), Some("paid"));
    assert_eq!(outbox.recorded()[0].aggregate_id, "7");
}

#[tokio::test]
async fn a_dropped_transaction_leaves_nothing() {
    let outbox = Outbox::new();
    let (event, inbox) = (paid("7"), outbox.inbox("mails"));
    let mut dropped = outbox.begin().await.expect("begin");
    dropped.set("order 7", "paid").await.expect("set");
    outbox.record(&mut dropped, &event).await.expect("record");
    assert!(inbox.first_time(&mut dropped, event.event_id).await.expect("inbox"));
    drop(dropped);
    assert!(outbox.recorded().is_empty() && outbox.get("order 7").is_none());

    let mut tx = outbox.begin().await.expect("begin");
    assert!(!waits(tx.set("order 7", "open")).await, "not even its locks");
    assert!(inbox.first_time(&mut tx, event.event_id).await.expect("inbox"));
    outbox.record(&mut tx, &event).await.expect("the id is free");
}

#[tokio::test]
async fn who_changes_the_same_value_waits_and_sees_the_change() {
    let outbox = Outbox::new();
    let more = |value: Option<String>| value.unwrap_or_default() + "I";
    let mut first = outbox.begin().await.expect("begin");
    let mut second = outbox.begin().await.expect("begin");
    first.update("tally", more).await.expect("update");
    assert!(waits(second.update("tally", more)).await);
    first.commit().await.expect("commit");
    assert_eq!(second.update("tally", more).await.expect("update"), "II");
}

#[tokio::test]
async fn who_records_an_id_of_an_open_transaction_waits_for_what_becomes_of_it() {
    let outbox = Outbox::new();
    for commits in [false, true] {
        let event = paid("7");
        let mut first = outbox.begin().await.expect("begin");
        let mut second = outbox.begin().await.expect("begin");
        outbox.record(&mut first, &event).await.expect("record");
        assert!(waits(outbox.record_once(&mut second, &event)).await);
        if commits {
            first.commit().await.expect("commit");
        } else {
            first.rollback().await.expect("rollback");
        }
        let recorded = outbox.record_once(&mut second, &event).await.expect("record");
        assert_eq!(recorded, !commits);
    }
}

#[tokio::test]
async fn who_numbers_the_same_key_waits_and_others_do_not() {
    let outbox = Outbox::new();
    let mut first = outbox.begin().await.expect("begin");
    let mut second = outbox.begin().await.expect("begin");
    outbox.record(&mut first, &paid("7").sequenced()).await.expect("record");
    assert!(waits(outbox.record(&mut second, &paid("7").sequenced())).await);
    outbox.record(&mut second, &paid("8").sequenced()).await.expect("another key");
    outbox.record(&mut second, &paid("7")).await.expect("without a number");
    first.commit().await.expect("commit");
    outbox.record(&mut second, &paid("7").sequenced()).await.expect("its turn");
    second.commit().await.expect("commit");
    let numbers: Vec<_> = outbox.recorded().iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, [Some(1), Some(1), None, Some(2)]);
}

#[tokio::test]
async fn a_savepoint_takes_values_and_marks_back() {
    let outbox = Outbox::new();
    let (event, inbox) = (Uuid::now_v7(), outbox.inbox("mails"));
    let mut tx = outbox.begin().await.expect("begin");
    tx.set("order 7", "open").await.expect("set");
    let savepoint = tx.savepoint();
    tx.set("order 7", "paid").await.expect("set");
    assert!(inbox.first_time(&mut tx, event).await.expect("inbox"));
    tx.rollback_to(&savepoint);
    assert_eq!(tx.get("order 7").as_deref(), Some("open"));
    assert!(inbox.first_time(&mut tx, event).await.expect("inbox"), "as if it had never been marked");
}

#[tokio::test]
async fn the_source_and_the_trace_are_set_where_an_event_has_none() {
    let outbox = Outbox::builder().source("shop").trace(|| Some("trace of here".to_owned())).build();
    outbox.record_outside_transaction(&paid("7")).await.expect("record");
    let own = paid("8").with_header("source", "till").with_header("traceparent", "of its own");
    outbox.record_outside_transaction(&own).await.expect("record");
    let recorded = outbox.recorded();
    let headers = |n: usize| (recorded[n].headers.source(), recorded[n].headers.traceparent());
    assert_eq!(headers(0), (Some("shop"), Some("trace of here")));
    assert_eq!(headers(1), (Some("till"), Some("of its own")));
}

#[tokio::test]
async fn a_publisher_need_not_know_the_outbox() {
    async fn pay(bus: &dyn EventBus<Connection>, within: &mut Connection) -> Result<Uuid> {
        bus.publish(within, &paid("7")).await
    }
    let outbox = Outbox::new();
    let mut tx = outbox.begin().await.expect("begin");
    let id = pay(&outbox, &mut tx).await.expect("publish");
    assert!(outbox.recorded().is_empty(), "not before the commit");
    tx.commit().await.expect("commit");
    assert_eq!(outbox.recorded()[0].event_id, id);
}

#[tokio::test]
async fn times_are_those_of_the_clock() {
    let clock = ManualClock::at(OffsetDateTime::UNIX_EPOCH);
    let outbox = Outbox::builder().clock(Clock::Manual(clock.clone())).build();
    outbox.record_outside_transaction(&paid("7")).await.expect("record");
    clock.advance(Duration::from_secs(60));
    outbox.record_outside_transaction(&paid("8")).await.expect("record");
    let times: Vec<_> = outbox.recorded().iter().map(|event| event.recorded_at.unix_timestamp()).collect();
    assert_eq!(times, [0, 60]);
}

#[tokio::test]
async fn the_log_is_shown_in_the_order_of_commits_and_paged_by_id() {
    let outbox = Outbox::new();
    let mut early = outbox.begin().await.expect("begin");
    let first = outbox.record(&mut early, &paid("7")).await.expect("record");
    let second = outbox.record_outside_transaction(&paid("8")).await.expect("record");
    early.commit().await.expect("commit");
    let ids: Vec<_> = outbox.recorded().iter().map(|event| event.event_id).collect();
    assert_eq!(ids, [second, first]);
    let page = OutboxSource::recorded(&outbox, 0, 1).await.expect("recorded");
    assert_eq!(page[0].event_id, first);
    let page = OutboxSource::recorded(&outbox, page[0].id, 10).await.expect("recorded");
    assert_eq!(page.iter().map(|event| event.event_id).collect::<Vec<_>>(), [second]);
}

/// E18: an outbox refuses what its publisher may not record, whichever way it is recorded.
#[tokio::test]
async fn an_outbox_refuses_streams_and_types_that_are_not_allowed() {
    let builder = Outbox::builder().allowed_streams(["orders"]).allowed_types(["Order*"]);
    let outbox = builder.build();
    let ticker = NewEvent::of("market", "TickerReceived", "Market", "KRW-BTC", &1).expect("JSON");
    let order = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("JSON");
    let refused = outbox.record_outside_transaction(&ticker).await.expect_err("not its stream");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("the stream \"market\" is not allowed"), "{refused}");
    let other = NewEvent { event_type: "TickerReceived".into(), ..order.clone() };
    let mut tx = outbox.begin().await.expect("a transaction");
    assert!(outbox.record(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_once(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_all(&mut tx, &[order.clone(), ticker]).await.is_err(), "one is not its own");
    outbox.record(&mut tx, &order).await.expect("the transaction goes on");
    tx.commit().await.expect("commit");
    let recorded: Vec<Uuid> = outbox.recorded().iter().map(|event| event.event_id).collect();
    assert_eq!(recorded, [order.event_id]);
}
