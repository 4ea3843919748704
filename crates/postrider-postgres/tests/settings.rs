//! The settings of an outbox.

mod support;

use std::sync::Mutex;

use postrider_conformance::relay::{drain, event, subscribe};
use postrider_core::{Clock, NewEvent};
use postrider_postgres::Outbox;
use support::Pg;

/// The source of an outbox is a header of its events, unless they have one.
#[tokio::test]
async fn the_outbox_adds_its_source() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let outbox =
        Outbox::builder().schema(&log.schema).source("billing").connect(&log.pool).await.expect("outbox");
    outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
    outbox.record_outside_transaction(&event("a", 2).with_header("source", "own")).await.expect("record");
    let read = drain(&log.store, "s").await;
    assert_eq!((read[0].headers.source(), read[1].headers.source()), (Some("billing"), Some("own")));
}

/// Limits are settings.
#[tokio::test]
async fn the_limit_of_a_payload_is_a_setting() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let limits = postrider_core::Limits { payload: 3_000_000, ..postrider_core::Limits::default() };
    let outbox =
        Outbox::builder().schema(&log.schema).limits(limits).connect(&log.pool).await.expect("outbox");
    let large = NewEvent::of("s", "T", "A", "1", &"x".repeat(2_900_000)).expect("JSON");
    outbox.record_outside_transaction(&large).await.expect("within the limit");
    assert!(log.outbox.record_outside_transaction(&large).await.is_err());
}

/// The trace of the code that records is a header of its events, unless they have one; it never stops them.
#[tokio::test]
async fn the_outbox_asks_for_the_current_trace() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let traces =
        Mutex::new(vec![Some("a\0b".to_owned()), None, Some("00-2-2-01".into()), Some("00-1-1-01".into())]);
    let current = move || {
        traces.lock().expect("a list").pop().expect("asked for no more often than events are recorded")
    };
    let builder = Outbox::builder().schema(&log.schema).source("billing").trace(current);
    let outbox = builder.clone().connect(&log.pool).await.expect("outbox");
    let mut tx = log.pool.begin().await.expect("begin");
    outbox.record(&mut tx, &event("a", 1)).await.expect("record");
    outbox.record(&mut tx, &event("a", 2).with_header("traceparent", "00-own")).await.expect("record");
    outbox.clone().record_all(&mut tx, &[event("a", 3), event("a", 4), event("a", 5)]).await.expect("record");
    tx.commit().await.expect("commit");
    let read = drain(&log.store, "s").await;
    let traces: Vec<_> = read.iter().map(|event| event.headers.traceparent()).collect();
    assert_eq!(traces, [Some("00-1-1-01"), Some("00-own"), Some("00-2-2-01"), None, None]);
    assert!(read.iter().all(|event| event.headers.source() == Some("billing")));
    assert!(!format!("{outbox:?} {builder:?}").is_empty());
}
