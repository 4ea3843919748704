//! What did not simply succeed, and what retention takes.

mod fixture;

use std::time::Duration;

use fixture::{Fixture, LEASE, event};
use postrider_core::{
    ArchiveOptions, ArchiveTable, DeliveryChange, DeliveryFailure, ErrorKind, EventLog, EventRef, Field,
    Inspect, Lease, OnDead, Operate, Order, ResolveDead, Settlement, State, StateQuery, Subscription, Sweep,
    Uuid,
};

const MINUTE: Duration = Duration::from_secs(60);

fn failure() -> DeliveryFailure {
    DeliveryFailure::new("timeout", "it took too long")
}

/// The event with this number; its own id is looked up when it is settled.
fn the(id: i64) -> EventRef {
    EventRef { id, event_id: Uuid::nil() }
}

/// The same changes with the events' own ids.
async fn known(fixture: &Fixture, mut deliveries: Vec<DeliveryChange>) -> Vec<DeliveryChange> {
    let states = fixture.store.states(&StateQuery::default()).await.expect("states");
    for change in &mut deliveries {
        let state = states.iter().find(|state| state.id == change.id).expect("an event");
        change.event_id = state.event_id;
    }
    deliveries
}

/// Settles all that is there, with these changes.
async fn settle(fixture: &Fixture, lease: &mut Lease, deliveries: Vec<DeliveryChange>) {
    let batch = fixture.store.read(lease, &lease.position, 100).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries = known(fixture, deliveries).await;
    fixture.store.settle(lease, &settlement).await.expect("settled");
}

async fn due(fixture: &Fixture, lease: &Lease) -> Vec<i64> {
    fixture.store.due(lease, 100).await.expect("due").deliveries.iter().map(|due| due.event.id).collect()
}

async fn states(fixture: &Fixture) -> Vec<State> {
    fixture
        .store
        .states(&StateQuery::default())
        .await
        .expect("states")
        .iter()
        .map(|state| state.state)
        .collect()
}

#[tokio::test]
async fn a_failing_event_holds_its_key_and_no_other() {
    let fixture = Fixture::new().await;
    for key in ["a", "a", "b"] {
        fixture.record(event(key)).await;
    }
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    let changes =
        vec![DeliveryChange::retrying(the(1), 1, MINUTE, failure()), DeliveryChange::waiting(the(2))];
    settle(&fixture, &mut lease, changes).await;
    assert!(lease.open);
    assert_eq!(states(&fixture).await, [State::Retrying, State::Retrying, State::Done]);
    for key in ["a", "b"] {
        fixture.record(event(key)).await;
    }
    let batch = fixture.store.read(&lease, &lease.position, 100).await.expect("read");
    assert_eq!(batch.events.iter().map(|read| read.held).collect::<Vec<_>>(), [true, false]);
    settle(&fixture, &mut lease, vec![DeliveryChange::waiting(the(4))]).await;
    assert_eq!(due(&fixture, &lease).await, Vec::<i64>::new());
    fixture.clock.advance(MINUTE);
    let found = fixture.store.due(&lease, 100).await.expect("due").deliveries;
    assert_eq!(found.iter().map(|due| due.event.id).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(
        (found[0].attempts, found[0].now - found[0].first_failed_at.expect("failed")),
        (1, time::Duration::MINUTE)
    );
    settle(&fixture, &mut lease, vec![DeliveryChange::delivered(the(1), 2)]).await;
    assert_eq!(due(&fixture, &lease).await, [2, 4]);
    settle(
        &fixture,
        &mut lease,
        vec![DeliveryChange::delivered(the(2), 1), DeliveryChange::delivered(the(4), 1)],
    )
    .await;
    assert!(!lease.open);
    assert_eq!(states(&fixture).await, [State::Done; 5]);
}

#[tokio::test]
async fn a_retry_that_is_not_due_is_not_brought_along() {
    let fixture = Fixture::new().await;
    for _ in 0..3 {
        fixture.record(event("a")).await;
    }
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    let changes = vec![
        DeliveryChange::retrying(the(1), 1, Duration::ZERO, failure()),
        DeliveryChange::retrying(the(2), 1, MINUTE, failure()),
        DeliveryChange::waiting(the(3)),
    ];
    settle(&fixture, &mut lease, changes).await;
    assert_eq!(due(&fixture, &lease).await, [1]);
}

#[tokio::test]
async fn under_strict_order_a_failure_holds_its_lane() {
    let fixture = Fixture::new().await;
    for key in ["a", "b", "c"] {
        fixture.record(event(key)).await;
    }
    fixture.subscribe(Subscription::new("s").order(Order::Strict)).await;
    let mut lease = fixture.hold().await;
    let changes = vec![
        DeliveryChange::waiting(the(1)),
        DeliveryChange::retrying(the(2), 1, MINUTE, failure()),
        DeliveryChange::waiting(the(3)),
    ];
    settle(&fixture, &mut lease, changes).await;
    fixture.record(event("d")).await;
    assert!(fixture.store.read(&lease, &lease.position, 10).await.expect("read").events[0].held);
    assert_eq!(due(&fixture, &lease).await, [1]);
    fixture.clock.advance(MINUTE);
    assert_eq!(due(&fixture, &lease).await, [1, 2, 3]);
}

#[tokio::test]
async fn without_order_nothing_waits() {
    let fixture = Fixture::new().await;
    for _ in 0..2 {
        fixture.record(event("a")).await;
    }
    fixture.subscribe(Subscription::new("s").order(Order::None)).await;
    let mut lease = fixture.hold().await;
    let changes = vec![
        DeliveryChange::retrying(the(1), 1, MINUTE, failure()),
        DeliveryChange::retrying(the(2), 1, Duration::ZERO, failure()),
    ];
    settle(&fixture, &mut lease, changes).await;
    assert!(lease.open, "a retry is open, although it holds nothing");
    assert_eq!(due(&fixture, &lease).await, [2]);
}

#[tokio::test]
async fn a_dead_event_holds_its_key_only_if_told_to_and_is_requeued_in_its_place() {
    let fixture = Fixture::new().await;
    for _ in 0..2 {
        fixture.record(event("a")).await;
    }
    fixture.subscribe(Subscription::new("s").on_dead(OnDead::Hold)).await;
    let mut lease = fixture.hold().await;
    settle(
        &fixture,
        &mut lease,
        vec![DeliveryChange::dead(the(1), 5, failure()), DeliveryChange::waiting(the(2))],
    )
    .await;
    assert_eq!((due(&fixture, &lease).await, lease.open), (vec![], true));
    assert_eq!(states(&fixture).await, [State::Dead, State::Retrying]);

    fixture.subscribe(Subscription::new("s").on_dead(OnDead::Skip)).await;
    assert_eq!(due(&fixture, &lease).await, [2], "a changed policy lets the key go on");
    let requeue = ResolveDead::Requeue { subscription: "s".into(), events: vec![] };
    assert_eq!(fixture.store.resolve_dead(&requeue).await.expect("amended"), 1);
    assert_eq!(fixture.store.resolve_dead(&requeue).await.expect("amended"), 0, "only dead ones change");
    let found = fixture.store.due(&lease, 10).await.expect("due").deliveries;
    assert_eq!((found[0].event.id, found[0].attempts, found[0].first_failed_at), (1, 0, None));
    assert_eq!(found[1].event.id, 2);

    settle(&fixture, &mut lease, vec![DeliveryChange::dead(the(1), 1, failure())]).await;
    let dead = found[0].event.event_id;
    let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![dead, uuid::Uuid::now_v7()] };
    assert_eq!(fixture.store.resolve_dead(&discard).await.expect("amended"), 1);
    assert_eq!(states(&fixture).await, [State::Discarded, State::Retrying]);
    let query = StateQuery { state: Some(State::Discarded), event_id: Some(dead), ..StateQuery::default() };
    let state = fixture.store.states(&query).await.expect("states").remove(0);
    assert_eq!((state.error_code.as_deref(), state.attempts), (Some("timeout"), 1));
    let nobody = ResolveDead::Requeue { subscription: "nobody".into(), events: vec![] };
    assert_eq!(fixture.store.resolve_dead(&nobody).await.expect_err("not there").kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_step_that_does_not_exist_is_refused_and_nothing_is_written() {
    let fixture = Fixture::new().await;
    fixture.record(event("a")).await;
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    settle(&fixture, &mut lease, vec![DeliveryChange::delivered(the(1), 2)]).await;
    fixture.record(event("a")).await;
    let batch = fixture.store.read(&lease, &lease.position, 10).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    let refused = vec![DeliveryChange::retrying(the(1), 3, MINUTE, failure())];
    settlement.deliveries = known(&fixture, refused).await;
    let error = fixture.store.settle(&mut lease, &settlement).await.expect_err("final is final");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(fixture.number("select position from postrider_lane").await, 1);
}

#[tokio::test]
async fn retention_takes_only_what_everybody_settled_long_enough_ago() {
    let fixture = Fixture::new().await;
    let prune = Sweep::Prune { older_than: MINUTE, limit: 2 };
    let archive = Sweep::Archive { older_than: MINUTE, limit: 10, archiving: ArchiveOptions::default() };
    for _ in 0..6 {
        fixture.record(event("a")).await;
    }
    assert_eq!(fixture.store.sweep(&prune).await.expect("swept").taken, 0, "no subscription, nothing goes");
    fixture.subscribe(Subscription::new("s").lanes(2).order(Order::None)).await;
    fixture.store.subscribe(&Subscription::new("slow")).await.expect("subscribed");
    let mut slow = fixture.store.claim("slow", "a", LEASE).await.expect("claim").expect("free");
    let (mut one, mut two) = (fixture.hold().await, fixture.hold().await);
    settle(&fixture, &mut one, vec![DeliveryChange::dead(the(2), 1, failure())]).await;
    settle(&fixture, &mut two, vec![]).await;
    fixture.clock.advance(MINUTE);
    assert_eq!(fixture.store.sweep(&prune).await.expect("swept").taken, 0, "one has not read");
    let batch = fixture.store.read(&slow, &slow.position, 5).await.expect("read");
    fixture.store.settle(&mut slow, &Settlement::of(&batch)).await.expect("settled");
    assert_eq!(fixture.store.sweep(&prune).await.expect("swept").taken, 0, "one has settled just now");
    fixture.clock.advance(MINUTE);
    let swept = fixture.store.sweep(&prune).await.expect("swept");
    assert_eq!((swept.taken, swept.more), (2, true));
    let swept = fixture.store.sweep(&archive).await.expect("swept");
    assert_eq!((swept.taken, swept.more), (2, false));
    let left: Vec<i64> =
        sqlx::query_scalar("select id from postrider_event").fetch_all(&fixture.pool).await.expect("ids");
    assert_eq!(left, [2, 6], "the dead one and the unread one stay");
    let kept: Vec<i64> =
        sqlx::query_scalar("select id from postrider_archive").fetch_all(&fixture.pool).await.expect("ids");
    assert_eq!(kept, [4, 5]);
    assert_eq!(fixture.number("select count(*) from postrider_guard").await, 0);
    fixture.record(event("a")).await;
    assert_eq!(fixture.number("select max(id) from postrider_event").await, 7, "ids are never used again");
}

#[tokio::test]
async fn an_inbox_row_stays_while_its_event_is_to_be_settled() {
    let fixture = Fixture::new().await;
    let id = fixture.record(event("a")).await;
    fixture.subscribe(Subscription::new("s")).await;
    let mut conn = fixture.pool.acquire().await.expect("a connection");
    for id in [id, uuid::Uuid::now_v7()] {
        fixture.outbox.inbox("c").first_time(&mut conn, id).await.expect("noted");
    }
    let sweep = Sweep::Inbox { older_than: MINUTE, limit: 10 };
    assert_eq!(fixture.store.sweep(&sweep).await.expect("swept").taken, 0, "too young");
    fixture.clock.advance(MINUTE);
    assert_eq!(
        fixture.store.sweep(&sweep).await.expect("swept").taken,
        1,
        "the one whose event is not there"
    );
    let mut lease = fixture.hold().await;
    fixture.drain(&mut lease).await;
    assert_eq!(fixture.store.sweep(&sweep).await.expect("swept").taken, 1);
}

/// A subscriber fills the table as well. Its rows stay as they are, and nothing else is skipped.
#[tokio::test]
async fn events_that_a_subscriber_has_stored_already_are_skipped() {
    let fixture = Fixture::new().await;
    let run = async |sql: String| {
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&fixture.pool).await.expect("done");
    };
    run("create table audit (id text, which text unique, body text)".to_owned()).await;
    let columns = [("id", Field::EventId), ("which", Field::AggregateId), ("body", Field::Payload)];
    let columns = columns.map(|(column, field)| (column.to_owned(), field));
    let fails = ArchiveTable::new("audit", columns).expect("a target");
    let archiving = |target| ArchiveOptions { target: Some(target), ..ArchiveOptions::default() };
    let skips = archiving(fails.clone().skip_existing());
    let error = fixture.store.check_archive(&skips).await.expect_err("two rows may have one id");
    assert!(error.message().contains("\"id\"") && error.message().contains("must be unique"), "{error}");
    run("create unique index one on audit (id)".to_owned()).await;
    fixture.store.check_archive(&skips).await.expect("it fits");
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    let first = fixture.record(event("a")).await;
    fixture.record(event("b")).await;
    settle(&fixture, &mut lease, vec![]).await;
    fixture.clock.advance(MINUTE);
    run(format!("insert into audit values ('{first}', 'by the subscriber', 'own')")).await;
    run("insert into audit values ('x', 'c', 'of something else')".to_owned()).await;
    let sweep = |archiving| Sweep::Archive { older_than: MINUTE, limit: 10, archiving };
    fixture.store.sweep(&sweep(archiving(fails))).await.expect_err("without the setting the batch fails");
    assert_eq!(fixture.store.sweep(&sweep(skips.clone())).await.expect("archive").taken, 2);
    let rows = sqlx::query_scalar("select which from audit order by 1");
    let rows: Vec<String> = rows.fetch_all(&fixture.pool).await.expect("rows");
    assert_eq!(rows, ["b", "by the subscriber", "c"]);
    fixture.record(event("c")).await;
    settle(&fixture, &mut lease, vec![]).await;
    fixture.clock.advance(MINUTE);
    fixture.store.sweep(&sweep(skips)).await.expect_err("another unique column is no reason to skip");
    assert_eq!(fixture.number("select count(*) from postrider_event").await, 1, "and nothing is gone");
}
