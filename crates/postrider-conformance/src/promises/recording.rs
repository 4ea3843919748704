//! What `record` promises.

use postrider_core::{ErrorKind, Headers, NewEvent, OffsetDateTime, Payload, Uuid};

use crate::harness::Harness;
use crate::relay::{claim, commit_one, drain, event, ids, log, read, subscribe};

/// U1: the event is recorded in the transaction that changes the state; a rollback leaves neither.
pub async fn rollback_leaves_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut writer = log.begin().await;
    writer.change("a").await.expect("change");
    writer.record(&event("a", 1)).await.expect("record");
    writer.rollback().await;
    assert!(drain(&*store, "s").await.is_empty());
    let mut writer = log.begin().await;
    assert_eq!(writer.change("a").await.expect("change"), 1, "the change was rolled back as well");
    writer.rollback().await;
}

/// U1: what is committed is delivered, once, in order.
pub async fn what_is_committed_is_delivered_once(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut committed = Vec::new();
    for n in 0..250 {
        committed.push(commit_one(&*log, &format!("a{}", n % 7)).await);
    }
    assert_eq!(ids(&drain(&*store, "s").await), committed);
    assert!(drain(&*store, "s").await.is_empty(), "nothing comes twice");
}

/// E2: the event id is unique; the error is clear and harms nothing.
pub async fn an_event_id_that_is_taken_is_refused_and_the_transaction_goes_on(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let first = event("a", 1);
    let mut writer = log.begin().await;
    writer.record(&first).await.expect("record");
    writer.commit().await.expect("commit");
    let mut writer = log.begin().await;
    let error = writer.record(&first).await.expect_err("the id is taken");
    assert_eq!(error.kind(), ErrorKind::AlreadyRecorded, "{error}");
    assert!(!error.is_retryable());
    let second = writer.record(&event("a", 2)).await.expect("the transaction is still usable");
    writer.commit().await.expect("commit");
    assert_eq!(ids(&drain(&*store, "s").await), [first.event_id, second]);
}

/// U5: recording the same id again is a no-op where asked.
pub async fn record_once_leaves_a_taken_id_at_that(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let first = event("a", 1).sequenced();
    for expected in [true, false] {
        let mut writer = log.begin().await;
        assert_eq!(writer.record_once(&first).await.expect("record"), expected);
        assert!(!writer.record_once(&first).await.expect("record"), "within a transaction as well");
        writer.commit().await.expect("commit");
    }
    let mut writer = log.begin().await;
    writer.record(&event("a", 2).sequenced()).await.expect("record");
    writer.commit().await.expect("commit");
    let numbers: Vec<_> = drain(&*store, "s").await.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, [Some(1), Some(2)], "a taken id uses up no number");
}

/// Any number of events in one call: all or none, in their order.
pub async fn record_all_is_all_or_nothing_and_keeps_its_order(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut events: Vec<NewEvent> = (1..=500).map(|n| event("a", n)).collect();
    events[7].payload = Payload::bytes("application/x-test", [1, 2, 3]).expect("a payload");
    events[9] = events[9].clone().ordered_by("k").sequenced().with_header("h", "v");
    let mut writer = log.begin().await;
    let recorded = writer.record_all(&events).await.expect("record all");
    assert_eq!(recorded, events.iter().map(|event| event.event_id).collect::<Vec<_>>());
    assert!(writer.record_all(&[]).await.expect("none").is_empty());
    writer.commit().await.expect("commit");

    let mut writer = log.begin().await;
    let error = writer
        .record_all(&[event("b", 1), events[3].clone(), event("b", 2)])
        .await
        .expect_err("one id is taken");
    assert_eq!(error.kind(), ErrorKind::AlreadyRecorded, "{error}");
    let same = event("b", 1);
    let error = writer.record_all(&[same.clone(), same]).await.expect_err("the same id twice");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    writer.commit().await.expect("the transaction is still usable");

    let read = drain(&*store, "s").await;
    assert_eq!(ids(&read), recorded);
    assert_eq!(read[7].payload, events[7].payload);
    assert_eq!((read[9].sequence, read[9].headers.get("h")), (Some(1), Some("v")));
}

/// Payloads are kept byte for byte: unicode, 1 MiB, deep nesting, big integers, white space, key order.
pub async fn a_payload_is_kept_byte_for_byte(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let large = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    let texts = [
        "{ \"b\" : 1,\n\t\"a\":  2, \"b\": 3 }",
        "\"한글 \u{1f40e} \\u00e9 \\\\u0000 \u{7f}\"",
        "[123456789012345678901234567890, -0.0, 1e-7, 1.10]",
        "null",
        &deep,
        &large,
    ];
    let mut writer = log.begin().await;
    for text in texts {
        let payload = Payload::json_text(text).expect("JSON");
        writer.record(&NewEvent::new("s", "T", "A", "1", payload)).await.expect("record");
    }
    writer.commit().await.expect("commit");
    let read = drain(&*store, "s").await;
    for (event, text) in read.iter().zip(texts) {
        assert!(event.payload.as_json() == Some(text), "a payload of {} bytes was changed", text.len());
    }
    assert_eq!(read.len(), texts.len());
}

/// Avro, Protobuf and the like: bytes with a content type.
pub async fn bytes_are_kept_with_their_content_type(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let payload = Payload::bytes("application/avro", every_byte).expect("a payload");
    let empty = Payload::bytes("text/plain; charset=utf-8", []).expect("a payload");
    let mut writer = log.begin().await;
    for payload in [&payload, &empty] {
        writer.record(&NewEvent::new("s", "T", "A", "1", payload.clone())).await.expect("record");
    }
    writer.commit().await.expect("commit");
    let read = drain(&*store, "s").await;
    assert_eq!([&read[0].payload, &read[1].payload], [&payload, &empty]);
}

/// E2, E9, U7: every field of the envelope comes back as it went in.
pub async fn every_field_comes_back(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let cause = Uuid::now_v7();
    let mut headers = Headers::new().with("owner", "kim").with("전략", "모멘텀");
    headers.set_source("trading");
    headers.set_schema_version(3);
    headers.set_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    headers.set_correlation_id("c-1");
    headers.set_causation_id(cause);
    headers.set_tenant("acme");
    let occurred_at = OffsetDateTime::from_unix_timestamp_nanos(1_700_000_000_123_456_000).expect("a time");
    let event = NewEvent {
        headers: headers.clone(),
        occurred_at: Some(occurred_at),
        ..NewEvent::of("everbit.trade", "OrderPlaced", "Order", "주문-1", &serde_json::json!({"n": 1}))
            .expect("JSON")
    }
    .ordered_by("account-7")
    .sequenced()
    .max_attempts(4);
    let before = OffsetDateTime::now_utc() - std::time::Duration::from_secs(60);
    let mut writer = log.begin().await;
    writer.record(&event).await.expect("record");
    writer.commit().await.expect("commit");
    let read = drain(&*store, "s").await.remove(0);
    assert_eq!(read.event_id, event.event_id);
    assert_eq!((&*read.stream, &*read.event_type), ("everbit.trade", "OrderPlaced"));
    assert_eq!((&*read.aggregate_type, read.aggregate_id.as_str()), ("Order", "주문-1"));
    assert_eq!((read.ordering_key.as_deref(), &*read.key()), (Some("account-7"), "account-7"));
    assert_eq!((read.sequence, read.max_attempts), (Some(1), Some(4)));
    assert_eq!(read.payload, event.payload);
    assert_eq!(read.headers, headers);
    assert_eq!(read.headers.causation_id(), Some(cause));
    assert_eq!(read.occurred_at, occurred_at);
    assert!(read.recorded_at > before && read.recorded_at < before + std::time::Duration::from_secs(120));
}

/// U14: a recorded event can't be changed; the database refuses it. Only retention deletes.
pub async fn events_cannot_be_changed_or_deleted(harness: &dyn Harness) {
    let log = log(harness).await;
    let id = commit_one(&*log, "a").await;
    let mut writer = log.begin().await;
    let said = writer.update_event(id).await.expect_err("an update must be refused");
    assert!(said.contains("can't be changed"), "{said}");
    writer.rollback().await;
    let mut writer = log.begin().await;
    let said = writer.delete_event(id).await.expect_err("a delete must be refused");
    assert!(said.contains("can't be changed"), "{said}");
    writer.rollback().await;
    assert_eq!(log.event_ids().await, [id]);
}

/// Bad input: one clear error each, nothing half-written, the transaction still usable, no payload in the text.
pub async fn bad_input_is_refused_in_a_sentence_and_the_transaction_goes_on(harness: &dyn Harness) {
    let log = log(harness).await;
    let good = event("a", 1);
    let secret = format!("\"4111-1111{}\"", "x".repeat(1 << 20));
    let bad = [
        (NewEvent { stream: String::new(), ..good.clone() }, "stream must not be empty"),
        (NewEvent { event_type: "x".repeat(201), ..good.clone() }, "event type has 201 bytes"),
        (NewEvent { aggregate_type: "a\0b".into(), ..good.clone() }, "NUL"),
        (NewEvent { aggregate_id: String::new(), ..good.clone() }, "aggregate id must not be empty"),
        (NewEvent { aggregate_id: "é".repeat(251), ..good.clone() }, "502 bytes"),
        (good.clone().ordered_by(""), "ordering key must not be empty"),
        (good.clone().with_header("h", "a\0b"), "header h"),
        (good.clone().with_header("h", "x".repeat(70_000)), "headers have"),
        (NewEvent { payload: Payload::Json(secret), ..good.clone() }, "more than the limit"),
        (NewEvent { payload: Payload::Json("{\"card\": 4111".into()), ..good.clone() }, "not JSON"),
        (NewEvent { payload: Payload::Json(r#""a\u0000b""#.into()), ..good.clone() }, "NUL"),
        (good.clone().max_attempts(0), "max_attempts"),
    ];
    let mut writer = log.begin().await;
    for (event, part) in bad {
        let error = writer.record(&event).await.expect_err(part);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        let text = error.to_string();
        assert!(text.contains(part), "{text:?} does not say {part:?}");
        assert!(!text.contains("4111") && text.len() < 300, "{text}");
        writer.record_all(&[good.clone(), event]).await.expect_err("nor among others");
    }
    writer.record(&good).await.expect("the transaction is still usable");
    writer.commit().await.expect("commit");
    assert_eq!(log.event_ids().await, [good.event_id]);
}

/// L11: a number per key, without gaps, also where transactions are rolled back.
pub async fn sequence_numbers_have_no_gaps_within_a_key(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    for n in 0..60 {
        let mut writer = log.begin().await;
        for key in ["x", "y"] {
            let event = event(&format!("tx-{n}"), n).ordered_by(key).sequenced();
            writer.record(&event).await.expect("record");
        }
        writer.record(&event("plain", n)).await.expect("record");
        if n % 3 == 0 { writer.rollback().await } else { writer.commit().await.expect("commit") }
    }
    let read = drain(&*store, "s").await;
    for key in ["x", "y"] {
        let numbers: Vec<_> =
            read.iter().filter(|event| event.key() == key).filter_map(|event| event.sequence).collect();
        assert_eq!(numbers, (1..=40).collect::<Vec<_>>(), "key {key}");
    }
    assert!(read.iter().filter(|event| event.aggregate_id == "plain").all(|event| event.sequence.is_none()));
}

/// Any language can publish with a plain insert.
pub async fn a_plain_insert_is_delivered(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut writer = log.begin().await;
    writer.plain_insert("a", None).await.expect("insert");
    writer.commit().await.expect("commit");
    let read = drain(&*store, "s").await;
    assert_eq!((read.len(), read[0].aggregate_id.as_str()), (1, "a"));
    assert_eq!(read[0].event_id.get_version_num(), 7);
}

/// An explicit id is overruled or refused; whatever was committed is delivered, once.
pub async fn an_explicit_id_loses_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let mut delivered = 0;
    for id in [Some(1), Some(1_000_000), Some(5), None, Some(-3), Some(i64::MAX), None, Some(2)] {
        let mut writer = log.begin().await;
        let inserted = writer.plain_insert("a", id).await;
        if inserted.is_ok() {
            writer.commit().await.expect("commit");
        } else {
            writer.rollback().await;
        }
        commit_one(&*log, "b").await;
        let batch = read(&*store, &lease, 10).await;
        assert_eq!(batch.events.len(), 1 + usize::from(inserted.is_ok()), "after an insert with id {id:?}");
        crate::relay::settle(&*store, &mut lease, &batch).await;
        delivered += batch.events.len();
    }
    assert_eq!(delivered, log.event_ids().await.len());
}
