//! Leases, settling, and changing the number of lanes.

mod fixture;

use std::time::Duration;

use fixture::{Fixture, LEASE, event};
use postrider_core::{
    ErrorKind, EventLog, Inspect, LeaseStatus, Operate, Position, Relane, Settlement, Start, State,
    StateQuery, Subscription,
};

#[tokio::test]
async fn a_lane_has_one_holder_until_its_lease_runs_out() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    let mut first = fixture.claim("a").await.expect("free");
    assert!(fixture.claim("b").await.is_none());
    fixture.clock.advance(LEASE);
    let second = fixture.claim("b").await.expect("ran out");
    assert!(second.epoch > first.epoch);
    assert_eq!((first.claims, second.claims), (1, 2));
    assert_eq!(fixture.store.extend(&mut first, LEASE, None).await.expect("answered"), LeaseStatus::Lost);
    fixture.store.release(first).await.expect("a stale release changes nothing");
    assert!(fixture.claim("c").await.is_none());
    fixture.store.release(second).await.expect("released");
    assert_eq!(fixture.claim("c").await.expect("free").claims, 1);
}

#[tokio::test]
async fn a_lease_of_a_clock_that_went_back_is_void() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    fixture.hold().await;
    fixture.clock.set(fixture.clock.now() - time::Duration::hours(1));
    assert!(fixture.claim("b").await.is_some());
}

#[tokio::test]
async fn leases_go_by_the_databases_clock_unless_a_test_turns_one() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    let store = postrider_sqlite::Outbox::connect(&fixture.pool).await.expect("connected").store();
    let lease = store.claim("s", "a", LEASE).await.expect("claim").expect("free");
    let left = lease.until - time::OffsetDateTime::now_utc();
    assert!(left > time::Duration::seconds(20) && left <= time::Duration::seconds(31), "{left}");
    assert!(store.claim("s", "b", LEASE).await.expect("claim").is_none());
}

#[tokio::test]
async fn a_settle_is_taken_once_and_only_from_where_the_lane_stands() {
    let fixture = Fixture::new().await;
    for _ in 0..3 {
        fixture.record(event("1")).await;
    }
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    let batch = fixture.store.read(&lease, &lease.position, 2).await.expect("read");
    assert_eq!((batch.events.len(), batch.next.as_str()), (2, "2"));
    let settlement = Settlement::of(&batch);
    assert_eq!(fixture.store.settle(&mut lease, &settlement).await.expect("settled"), LeaseStatus::Held);
    assert_eq!(fixture.store.settle(&mut lease, &settlement).await.expect("answered"), LeaseStatus::Lost);
    assert_eq!(fixture.number("select count(*) from postrider_settled_batch where count = 2").await, 1);
    assert_eq!(fixture.drain(&mut lease).await, [3]);
    let idle = fixture.store.read(&lease, &lease.position, 2).await.expect("read");
    assert!(idle.is_idle() && idle.events.is_empty());
}

#[tokio::test]
async fn an_unknown_subscription_is_not_found() {
    let fixture = Fixture::new().await;
    let claim = fixture.store.claim("nobody", "a", LEASE).await.expect_err("not there");
    let relane = fixture.store.relane("nobody", 2).await.expect_err("not there");
    assert_eq!((claim.kind(), relane.kind()), (ErrorKind::NotFound, ErrorKind::NotFound));
    assert_eq!(fixture.store.relane("nobody", 0).await.expect_err("no lanes").kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_subscription_starts_where_it_was_told_to() {
    let fixture = Fixture::new().await;
    fixture.record(event("1")).await;
    let now = time::OffsetDateTime::now_utc();
    for (name, start, expected) in [
        ("beginning", Start::Beginning, vec![1, 2]),
        ("now", Start::Now, vec![2]),
        ("past", Start::At(now - time::Duration::hours(1)), vec![1, 2]),
        ("future", Start::At(now + time::Duration::hours(1)), vec![]),
    ] {
        fixture.store.subscribe(&Subscription::new(name).start(start)).await.expect("subscribed");
        fixture.store.subscribe(&Subscription::new(name)).await.expect("a second start does not count");
        if name == "beginning" {
            continue;
        }
        if name == "now" {
            fixture.record(event("2")).await;
        }
        let mut lease = fixture.store.claim(name, "a", LEASE).await.expect("claim").expect("free");
        let states = StateQuery { subscription: Some(name.into()), ..StateQuery::default() };
        let seen: Vec<i64> =
            fixture.store.states(&states).await.expect("states").iter().map(|state| state.id).collect();
        assert_eq!((fixture.drain(&mut lease).await, seen), (expected.clone(), expected), "{name}");
    }
}

#[tokio::test]
async fn a_batch_shows_as_processing_while_it_is_read() {
    let fixture = Fixture::new().await;
    for _ in 0..2 {
        fixture.record(event("1")).await;
    }
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    let states = || async {
        let states = fixture.store.states(&StateQuery::default()).await.expect("states");
        states.iter().map(|state| state.state).collect::<Vec<_>>()
    };
    assert_eq!(states().await, [State::Pending, State::Pending]);
    let reading = Position::new("1");
    fixture.store.extend(&mut lease, LEASE, Some(&reading)).await.expect("extended");
    assert_eq!(states().await, [State::Processing, State::Pending]);
    let batch = fixture.store.read(&lease, &lease.position, 1).await.expect("read");
    let settlement = Settlement { reading: Some(Position::new("2")), ..Settlement::of(&batch) };
    fixture.store.settle(&mut lease, &settlement).await.expect("settled");
    assert_eq!(states().await, [State::Done, State::Processing]);
    fixture.clock.advance(LEASE);
    assert_eq!(states().await, [State::Done, State::Pending]);
}

#[tokio::test]
async fn changing_lanes_recalls_drains_and_shares_out_anew() {
    let fixture = Fixture::new().await;
    for n in 0..20 {
        fixture.record(event(&n.to_string())).await;
    }
    fixture.subscribe(Subscription::new("s").lanes(2)).await;
    let (mut a, b) = (fixture.hold().await, fixture.hold().await);
    let mut seen = Vec::new();
    let batch = fixture.store.read(&a, &a.position, 7).await.expect("read");
    seen.extend(batch.events.iter().map(|read| read.event.id));

    fixture.subscribe(Subscription::new("s").lanes(3)).await;
    assert_eq!(fixture.store.relane("s", 3).await.expect("asked"), Relane::Recalling);
    assert!(fixture.claim("c").await.is_none(), "no lane is to be had while holders are recalled");
    assert!(fixture.store.read(&b, &b.position, 7).await.expect("read").recalled);
    let status = fixture.store.settle(&mut a, &Settlement::of(&batch)).await.expect("settled");
    assert_eq!(status, LeaseStatus::Recalled);
    let stale = b.clone();
    fixture.store.release(a).await.expect("released");
    fixture.store.release(b).await.expect("released");

    assert_eq!(fixture.store.relane("s", 3).await.expect("asked"), Relane::Draining);
    fixture.record(event("after")).await;
    for _ in 0..2 {
        let mut lease = fixture.hold().await;
        assert_eq!(lease.target, Some(Position::new("20")));
        seen.extend(fixture.drain(&mut lease).await);
        assert_eq!(lease.position.as_str(), "20");
        let status = fixture.store.extend(&mut lease, LEASE, None).await.expect("extended");
        assert_eq!(status, LeaseStatus::Recalled);
        fixture.store.release(lease).await.expect("released");
    }
    let mut epochs = Vec::new();
    for _ in 0..3 {
        let mut lease = fixture.hold().await;
        assert_eq!((lease.lanes, lease.target.as_ref()), (3, None));
        epochs.push(lease.epoch);
        seen.extend(fixture.drain(&mut lease).await);
    }
    assert!(epochs.iter().all(|epoch| *epoch > stale.epoch), "{epochs:?}");
    seen.sort_unstable();
    assert_eq!(seen, (1..=21).collect::<Vec<_>>(), "nothing lost, nothing repeated");
    assert_eq!(fixture.store.relane("s", 3).await.expect("asked"), Relane::Done);
    assert_eq!(
        fixture.number("select count(*) from postrider_settled_batch where first_id > last_id").await,
        5
    );
}

#[tokio::test]
async fn a_lane_with_events_to_drain_is_fenced_against_its_old_holder() {
    let fixture = Fixture::new().await;
    fixture.record(event("1")).await;
    fixture.subscribe(Subscription::new("s")).await;
    let mut zombie = fixture.hold().await;
    let batch = fixture.store.read(&zombie, &zombie.position, 10).await.expect("read");
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.store.relane("s", 2).await.expect("asked"), Relane::Draining);
    let status = fixture.store.settle(&mut zombie, &Settlement::of(&batch)).await.expect("answered");
    assert_eq!(status, LeaseStatus::Lost);
    assert_eq!(fixture.store.extend(&mut zombie, LEASE, None).await.expect("answered"), LeaseStatus::Lost);
}

#[tokio::test]
async fn a_planted_bug_is_noticed() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    let broken = fixture.store.clone().with_sql(|name, text| {
        (name == "extend.sql").then(|| text.replace(" and lease_epoch = ?3", " and ?3 = ?3"))
    });
    let mut first = fixture.hold().await;
    fixture.clock.advance(LEASE);
    fixture.claim("a").await.expect("the same owner, another epoch");
    assert_eq!(broken.extend(&mut first, Duration::ZERO, None).await.expect("answered"), LeaseStatus::Held);
    assert_eq!(fixture.store.extend(&mut first, LEASE, None).await.expect("answered"), LeaseStatus::Lost);
}
