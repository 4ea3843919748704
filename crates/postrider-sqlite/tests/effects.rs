//! The transactions that handlers are given: their marks and their lane; and the outbox as a bus.

mod fixture;

use std::sync::Arc;
use std::time::Duration;

use fixture::{Fixture, LEASE, event};
use postrider_core::{Effect, ErrorKind, EventBus, Lease, OutboxSource, Subscription};
use postrider_sqlite::Outbox;
use sqlx::SqliteConnection;
use uuid::Uuid;

fn effect<'a>(lease: Option<&'a Lease>, events: &'a [Uuid]) -> Effect<'a> {
    Effect { lease, consumer: "licences", events, timeout: Duration::from_secs(30) }
}

/// Begins a handler's transaction, which must work, and says which of its events are handled for the first time.
async fn begin(
    fixture: &Fixture,
    lease: Option<&Lease>,
    events: &[Uuid],
) -> (<Outbox as OutboxSource>::Transaction, Vec<bool>) {
    OutboxSource::begin(&fixture.outbox, effect(lease, events)).await.expect("begun")
}

#[tokio::test]
async fn marks_stand_if_and_only_if_their_transaction_commits() {
    let fixture = Fixture::new().await;
    let events: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let handled = async || fixture.outbox.handled("licences", &events).await.expect("handled");
    for end in ["rolled back", "dropped", "committed"] {
        let (mut tx, first) = begin(&fixture, None, &events[..2]).await;
        assert_eq!(first, [true, true], "before it is {end}");
        fixture.outbox.record_in(&mut tx, &event(end)).await.expect("recorded");
        match end {
            "rolled back" => Outbox::rollback(tx).await.expect("rolled back"),
            "committed" => {
                assert_eq!(handled().await, [false, false, false], "not yet");
                Outbox::commit(tx).await.expect("committed");
            }
            _ => drop(tx),
        }
    }
    assert_eq!(handled().await, [true, true, false]);
    assert_eq!(fixture.outbox.handled("another", &events).await.expect("handled"), [false; 3]);
    let (tx, first) = begin(&fixture, None, &events).await;
    assert_eq!(first, [false, false, true], "each is handled for the first time once");
    Outbox::rollback(tx).await.expect("rolled back");
    fixture.outbox.record_alone(&event("alone")).await.expect("recorded");
    assert_eq!(
        fixture.number("select count(*) from postrider_event").await,
        2,
        "what it recorded goes with it"
    );
    for consumer in ["", "a\0b", &"x".repeat(201)] {
        let nameless = Effect { consumer, ..effect(None, &events) };
        let refused = OutboxSource::begin(&fixture.outbox, nameless).await.err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::Invalid), "{consumer:?}");
    }
}

#[tokio::test]
async fn marks_have_the_time_of_the_clock() {
    let fixture = Fixture::new().await;
    let (tx, _) = begin(&fixture, None, &[Uuid::now_v7()]).await;
    Outbox::commit(tx).await.expect("committed");
    let now = i64::try_from(fixture.clock.now().unix_timestamp_nanos() / 1_000).expect("microseconds");
    assert_eq!(fixture.number("select handled_at from postrider_inbox").await, now);
    assert_eq!(OutboxSource::clock(&fixture.outbox).now(), Some(fixture.clock.now()));
}

#[tokio::test]
async fn a_stale_lease_gets_no_transaction_and_marks_nothing() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    let events = [Uuid::now_v7()];
    let stale = fixture.hold().await;
    let (tx, _) = begin(&fixture, Some(&stale), &[]).await;
    Outbox::rollback(tx).await.expect("rolled back");
    fixture.clock.advance(LEASE);
    let next_holder = fixture.hold().await;
    let lost = OutboxSource::begin(&fixture.outbox, effect(Some(&stale), &events)).await;
    let error = lost.expect_err("the lease is stale");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::LeaseLost, "begin"), "{error}");
    assert_eq!(fixture.outbox.handled("licences", &events).await.expect("handled"), [false]);
    let (tx, first) = begin(&fixture, Some(&next_holder), &events).await;
    assert_eq!(first, [true]);
    Outbox::commit(tx).await.expect("committed");
}

/// There is one writer: who would claim the lane waits for the handler's transaction, or for its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_is_not_claimed_while_a_handlers_transaction_is_open() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    let lease = fixture.hold().await;
    let events = [Uuid::now_v7()];
    let (tx, _) = begin(&fixture, Some(&lease), &events).await;
    fixture.clock.advance(LEASE);
    let store = fixture.outbox.open().await.expect("opened");
    let mut claim = tokio::spawn(async move { store.claim("s", "next", LEASE).await });
    let early = tokio::time::timeout(Duration::from_millis(200), &mut claim).await;
    assert!(early.is_err(), "the lease has run out, but its transaction is open");
    Outbox::commit(tx).await.expect("committed");
    assert!(claim.await.expect("the claim").expect("claim").is_some(), "now it is free");
    assert_eq!(fixture.outbox.handled("licences", &events).await.expect("handled"), [true]);
}

/// What an application publishes through a bus is published if its transaction commits.
#[tokio::test]
async fn an_outbox_is_a_bus() {
    let fixture = Fixture::new().await;
    let bus: Arc<dyn EventBus<SqliteConnection>> = Arc::new(fixture.outbox.clone());
    let mut published = Vec::new();
    for commits in [true, false] {
        let mut tx = fixture.outbox.begin().await.expect("begun");
        let id = bus.publish(&mut tx, &event("a")).await.expect("published");
        if commits {
            tx.commit().await.expect("committed");
            published.push(id);
        } else {
            tx.rollback().await.expect("rolled back");
        }
    }
    let recorded: Vec<Uuid> = sqlx::query_scalar("select event_id from postrider_event")
        .fetch_all(&fixture.pool)
        .await
        .expect("ids");
    assert_eq!(recorded, published);
}
