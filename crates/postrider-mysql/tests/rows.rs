//! One bad row stops nobody: it is refused where it is recorded, read as far as it can be, or dead with its reason.

mod support;

use std::time::Duration;

use postrider_conformance::TestLog;
use postrider_core::{
    Clock, DeliveryChange, DeliveryFailure, DeliveryState, ErrorKind, EventLog, Inspect, LeaseStatus,
    NewEvent, OpenDeliveryQuery, Settlement, Subscription, UNWRITABLE, Uuid,
};
use postrider_mysql::Outbox;
use sqlx::AssertSqlSafe;
use support::{My, MyLog, run};

const LEASE: Duration = Duration::from_secs(300);

async fn record(log: &MyLog, key: &str) -> Uuid {
    let event = NewEvent::of("orders", "Paid", "Order", key, &1).expect("JSON");
    let mut writer = log.begin().await;
    writer.record(&event).await.expect("record");
    writer.commit().await.expect("commit");
    event.event_id
}

fn failure() -> DeliveryFailure {
    DeliveryFailure::new("down", "not now")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_that_no_calendar_has_is_refused_where_it_is_recorded() {
    let log = My::default().my_log(Clock::Database).await;
    let mut conn = log.pool.acquire().await.expect("a connection");
    run(&mut conn, "set sql_mode = 'ALLOW_INVALID_DATES'").await;
    let insert = |day: &str| {
        AssertSqlSafe(format!(
            "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload, occurred_at) \
             values ('T', 'A', '1', '1', '{day}')"
        ))
    };
    for day in ["0000-00-00", "2026-00-10", "2026-05-00 10:00:00", "2026-02-31", "0000-05-05"] {
        let refused = sqlx::query(insert(day)).execute(&mut *conn).await.expect_err(day);
        assert!(
            refused.to_string().contains("postrider: occurred_at must be a day of the calendar"),
            "{refused}"
        );
    }
    for day in ["2024-02-29 23:59:59.999999", "1000-01-01", "9999-12-31 23:59:59"] {
        sqlx::query(insert(day)).execute(&mut *conn).await.expect(day);
    }
    conn.close_on_drop();
    assert_eq!(log.count("postrider_event").await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_cannot_be_read_stops_no_lane() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s").streams(["orders"])).await.expect("subscribe");
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(record(&log, &n.to_string()).await);
    }
    // As a publisher could write them before this was refused, or somebody without triggers.
    log.run("drop trigger postrider_event_refuse_update").await;
    let mut conn = log.pool.acquire().await.expect("a connection");
    run(&mut conn, "set sql_mode = ''").await;
    for (place, change) in [
        (0, "occurred_at = '0000-00-00'"),
        (1, "stream = null"),
        (2, "recorded_at = null, headers = null"),
        (3, "occurred_at = '2026-00-00'"),
    ] {
        run(
            &mut conn,
            &format!("update postrider_event set {change} where event_id = x'{}'", ids[place].simple()),
        )
        .await;
    }
    conn.close_on_drop();
    drop(conn);

    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 100).await.expect("read");
    let read: Vec<(Uuid, bool)> =
        batch.events.iter().map(|read| (read.event.event_id, read.unreadable.is_some())).collect();
    assert_eq!(read, [(ids[0], false), (ids[1], true), (ids[2], true), (ids[3], false), (ids[4], false)]);
    for place in [0, 3] {
        assert_eq!(batch.events[place].event.occurred_at, batch.events[place].event.recorded_at);
    }
    let reason = batch.events[2].unreadable.as_deref().expect("a reason");
    assert!(reason.contains("recorded_at, headers"), "{reason}");

    let mut settlement = Settlement::of(&batch);
    for read in &batch.events {
        settlement.deliveries.push(DeliveryChange::retrying(&read.event, 1, Duration::ZERO, failure()));
    }
    assert_ne!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Lost);
    let due = store.due(&lease, 100).await.expect("due").deliveries;
    let found: Vec<bool> = due.iter().map(|due| due.unreadable.is_some()).collect();
    assert_eq!(found, [false, true, true, false, false]);
    let mut settlement = Settlement::at(lease.position.clone());
    for due in &due {
        settlement.deliveries.push(DeliveryChange::dead(&due.event, 2, failure()));
    }
    assert_ne!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Lost);
    assert_eq!(
        store.open_deliveries(&OpenDeliveryQuery::default()).await.expect("open deliveries").len(),
        5,
        "people can look at them"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_the_tables_refuse_is_dead_and_the_rest_goes_on() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    for key in ["final", "other", "third"] {
        record(&log, key).await;
    }
    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 100).await.expect("read");
    let ids: Vec<Uuid> = batch.events.iter().map(|read| read.event.event_id).collect();
    // As a replay under a narrower filter leaves it.
    log.run(&format!(
        "insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts, delivered_at) \
         values ('s', {}, x'{}', 'Order:final', crc32('Order:final'), 'delivered', false, 2, 1)",
        batch.events[0].event.id,
        ids[0].simple()
    ))
    .await;
    let mut settlement = Settlement::of(&batch);
    for read in &batch.events[..2] {
        settlement.deliveries.push(DeliveryChange::retrying(&read.event, 1, Duration::ZERO, failure()));
    }
    let before = lease.position.clone();
    store.settle(&mut lease, &settlement).await.expect_err("no step leads from delivered to retrying");
    assert_eq!((&lease.position, log.count("postrider_delivery").await), (&before, 1), "nothing was written");

    settlement.one_by_one = true;
    assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    assert_eq!(lease.position, batch.next, "the lane goes on");
    let dead = store.open_deliveries(&OpenDeliveryQuery::default()).await.expect("open deliveries");
    let [dead] = dead.as_slice() else { panic!("{dead:?}") };
    assert_eq!((dead.event.event_id, dead.state), (ids[0], DeliveryState::Dead));
    assert_eq!((dead.error_code.as_deref(), dead.error_message.as_deref()), (Some(UNWRITABLE), None));
    let due = store.due(&lease, 100).await.expect("due").deliveries;
    assert_eq!(
        due.iter().map(|due| due.event.event_id).collect::<Vec<_>>(),
        [ids[1]],
        "the other is retried"
    );
    assert_eq!(due[0].error_code.as_deref(), Some("down"));
}

/// As in the moment of a migration in which one procedure is gone and the next is not there yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_that_misses_a_procedure_or_a_table_buries_no_event() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    record(&log, "1").await;
    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 100).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    settlement.one_by_one = true;
    let retrying = DeliveryChange::retrying(&batch.events[0].event, 1, Duration::ZERO, failure());
    settlement.deliveries.push(retrying);
    for (gone, back) in [
        ("drop procedure postrider_deliver", None),
        ("drop function postrider_run_at", None),
        (
            "rename table postrider_delivery to elsewhere",
            Some("rename table elsewhere to postrider_delivery"),
        ),
    ] {
        log.run(gone).await;
        let error = store.settle(&mut lease, &settlement).await.expect_err(gone);
        assert_eq!(error.kind(), ErrorKind::NotMigrated, "{gone}: {error}");
        if let Some(back) = back {
            log.run(back).await;
        }
        Outbox::migrated(&log.pool).await.expect("repaired");
        assert_eq!(log.count("postrider_delivery").await, 0, "nothing was written: {gone}");
    }
    assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    let due = store.due(&lease, 100).await.expect("due").deliveries;
    assert_eq!(due.iter().map(|due| due.error_code.as_deref()).collect::<Vec<_>>(), [Some("down")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_with_the_longest_key_is_written() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let (kind, key) = ("\u{1f600}".repeat(50), "\u{1f600}".repeat(125));
    let mut writer = log.begin().await;
    writer.record(&NewEvent::of("orders", "Paid", &kind, &key, &1).expect("JSON")).await.expect("record");
    writer.commit().await.expect("commit");
    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 100).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::retrying(
        &batch.events[0].event,
        1,
        Duration::ZERO,
        failure(),
    ));
    assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    assert_eq!(store.due(&lease, 100).await.expect("due").deliveries.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_id_that_is_none_is_refused_and_not_replaced() {
    let log = My::default().my_log(Clock::Database).await;
    let mut conn = log.pool.acquire().await.expect("a connection");
    let call = |id: &str| {
        AssertSqlSafe(format!(
            "call postrider_record_with('s', 'T', 'A', '1', '1', null, {id}, null, null, false)"
        ))
    };
    for id in [
        "''",
        "'7'",
        "'018f3c2e-0000-7000-8000-00000000000g'",
        "'018f3c2e-0000-7000-8000-000000000001\\n'",
        "repeat('a', 100)",
    ] {
        let refused = sqlx::raw_sql(call(id)).execute(&mut *conn).await.expect_err(id);
        assert!(refused.to_string().contains("postrider: event_id must be a UUID"), "{id}: {refused}");
    }
    for id in ["null", "'018f3c2e-0000-7000-8000-000000000001'", "'018F3C2E000070008000000000000002'"] {
        sqlx::raw_sql(call(id)).execute(&mut *conn).await.expect(id);
    }
    drop(conn);
    let ids = log.event_ids().await;
    assert!(
        ids.iter().any(|id| id.to_string() == "018f3c2e-0000-7000-8000-000000000002") && ids.len() == 3,
        "{ids:?}"
    );
}
