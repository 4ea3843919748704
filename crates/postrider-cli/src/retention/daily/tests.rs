//! The day's retention, with a clock that is turned.

use std::sync::Arc;

use postrider::NewEvent;
use postrider::store::{
    Clock, EventLog as _, ManualClock, OutboxSource as _, Pacing, Settlement, Subscription,
};
use postrider::testing::Outbox;
use time::macros::datetime;

use super::*;

mod postgres;

const DAY: Duration = Duration::from_secs(86_400);

struct Fixture {
    clock: ManualClock,
    outbox: Outbox,
    log: SharedStore,
    ended: watch::Receiver<bool>,
    end: watch::Sender<bool>,
}

impl Fixture {
    /// A log in memory on a January morning, with a subscription.
    async fn new() -> Self {
        let clock = ManualClock::at(datetime!(2026-01-01 01:00 UTC));
        let outbox = Outbox::builder().clock(Clock::Manual(clock.clone())).build();
        outbox.store().subscribe(&Subscription::new("s")).await.expect("subscribed");
        let log = database::bounded(outbox.store());
        let (end, ended) = watch::channel(false);
        Self { clock, outbox, log, ended, end }
    }

    /// Records events, and settles them.
    async fn deliver(&self, events: usize) {
        for _ in 0..events {
            let event = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("an event");
            self.outbox.record_alone(&event).await.expect("recorded");
        }
        let store = self.outbox.store();
        let mut lease = store.claim("s", "relay", DAY).await.expect("claim").expect("a free lane");
        let batch = store.read(&lease, &lease.position.clone(), 100_000).await.expect("read");
        store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settled");
        store.release(lease).await.expect("released");
    }

    fn relay(&self, name: &str) -> Daily {
        let retention = Retention {
            delivered: DAY * 7,
            archive: true,
            archived: Some(DAY * 60),
            inbox: DAY * 30,
            at: 2 * 60,
            zone: TimeZone::UTC,
            pacing: Pacing { batch: 1, pause: Duration::ZERO, share: 1.0 },
            archiving: postrider::store::ArchiveOptions::default(),
        };
        let store = Store { url: None, ..store() };
        Daily { store, retention, owner: name.to_owned(), lease: DAY / 2, longest_sleep: DAY }
    }

    async fn look(&self, relay: &Daily) -> Look {
        relay.look(&mut Some(self.log.clone()), &self.ended).await.expect("it looks")
    }

    async fn note(&self) -> Option<String> {
        let leader = self
            .log
            .acquire_leader_lease(LEASE_NAME, "test", DAY)
            .await
            .expect("a lease")
            .expect("nobody has it");
        self.log.release_leader_lease(LEASE_NAME, "test").await.expect("left");
        leader.note
    }

    fn left(&self) -> (usize, usize) {
        (self.outbox.recorded().len(), self.outbox.archived().len())
    }
}

fn store() -> Store {
    let origins = crate::config::Origins::default();
    Config::load(&origins, std::collections::BTreeMap::new()).expect("no settings are settings").store
}

#[test]
fn a_day_begins_at_its_time() {
    let due = |now, at| due(now, at, &TimeZone::UTC).expect("a day");
    let (day, next) = due(datetime!(2026-01-01 01:59 UTC), 120);
    assert_eq!((day.to_string().as_str(), next), ("2025-12-31", Duration::from_secs(60)));
    let (day, next) = due(datetime!(2026-01-01 02:00 UTC), 120);
    assert_eq!((day.to_string().as_str(), next), ("2026-01-01", DAY));
    let (day, _) = due(datetime!(2026-01-01 01:30 +02), 0);
    assert_eq!(day.to_string(), "2025-12-31", "days are UTC's");
}

/// X2, T7: 02:00 in Seoul is 17:00 UTC of the day before.
#[test]
fn a_day_begins_at_its_time_in_its_zone() {
    let seoul = TimeZone::get("Asia/Seoul").expect("a zone");
    let (day, next) = due(datetime!(2026-01-01 16:59 UTC), 120, &seoul).expect("a day");
    assert_eq!((day.to_string().as_str(), next), ("2026-01-01", Duration::from_secs(60)));
    let (day, next) = due(datetime!(2026-01-01 17:00 UTC), 120, &seoul).expect("a day");
    assert_eq!((day.to_string().as_str(), next), ("2026-01-02", DAY));
}

/// X2: each day of a year is done once, whatever the clocks do: in Berlin 02:30 is left out on 29 March 2026, and comes twice on
/// 25 October.
#[test]
fn each_day_begins_once_also_when_clocks_change() {
    let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
    let mut now = datetime!(2026-01-01 00:00 UTC);
    let mut days = std::collections::BTreeMap::new();
    while now < datetime!(2027-01-01 00:00 UTC) {
        let (day, next) = due(now, 150, &berlin).expect("a day");
        assert!(next > Duration::ZERO && next <= DAY + DAY / 24, "{next:?} after {now}");
        days.entry(day.to_string()).or_insert(now);
        now += DAY / 96;
    }
    assert_eq!(days.len(), 366, "each day of the year, and the one before");
    assert_eq!(days["2026-03-28"], datetime!(2026-03-28 01:30 UTC));
    assert_eq!(days["2026-03-29"], datetime!(2026-03-29 01:30 UTC), "03:30, since 02:30 is left out");
    assert_eq!(days["2026-03-30"], datetime!(2026-03-30 00:30 UTC));
    assert_eq!(days["2026-10-25"], datetime!(2026-10-25 00:30 UTC), "the first of the two");
    assert_eq!(days["2026-10-26"], datetime!(2026-10-26 01:30 UTC));
}

/// X2: the zone of the settings is the one that the relay keeps.
#[tokio::test]
async fn retention_runs_at_its_time_in_the_zone_of_the_settings() {
    let fixture = Fixture::new().await;
    let mut relay = fixture.relay("one");
    relay.retention.zone = TimeZone::get("Asia/Seoul").expect("a zone");
    fixture.look(&relay).await;
    fixture.deliver(5).await;
    // It is 16:59 UTC of the eighth day: 01:59 in Seoul.
    fixture.clock.advance(DAY * 7 + Duration::from_secs(15 * 3600 + 59 * 60));
    fixture.look(&relay).await;
    let before = fixture.note().await;
    fixture.deliver(1).await;
    fixture.clock.advance(Duration::from_secs(60));
    assert!(matches!(fixture.look(&relay).await, Look::Waiting(wait) if wait == DAY));
    assert_eq!(
        (before.as_deref(), fixture.note().await.as_deref()),
        (Some("2026-01-08"), Some("2026-01-09"))
    );
}

/// T7, L13: a season of nights in batches of one: ten thousand of them, as ten million events take in batches of a thousand.
#[tokio::test]
async fn every_night_takes_what_has_become_old_and_once() {
    let fixture = Fixture::new().await;
    let relays = [fixture.relay("one"), fixture.relay("two")];
    let (mut nights, mut most_archived) = (0, 0);
    for day in 0..100 {
        fixture.deliver(100).await;
        // Before its time nothing happens, but for the first night: nobody knows whether it was done.
        if day > 0 {
            let before = fixture.outbox.recorded().len();
            assert!(matches!(fixture.look(&relays[0]).await, Look::Waiting(wait) if wait <= DAY / 24));
            assert_eq!(fixture.outbox.recorded().len(), before, "it is not time yet");
        }
        fixture.clock.advance(DAY / 12);
        let note = fixture.note().await;
        assert!(matches!(fixture.look(&relays[day % 2]).await, Look::Waiting(wait) if wait <= DAY));
        assert_ne!(fixture.note().await, note, "it is noted that it was done");
        nights += 1;
        let after = fixture.left();
        fixture.clock.advance(DAY / 4);
        for relay in &relays {
            assert!(matches!(fixture.look(relay).await, Look::Waiting(_)));
        }
        assert_eq!(fixture.outbox.recorded().len(), after.0, "it is done once");
        assert!(after.0 <= 900, "a week stays in the log: {after:?}");
        most_archived = most_archived.max(after.1);
        fixture.clock.advance(DAY - DAY / 12 - DAY / 4);
    }
    assert_eq!(nights, 100);
    assert!((6000..=10_000).contains(&most_archived), "{most_archived} were in the archive");
    let (log, archive) = fixture.left();
    assert!(log + archive < 10_000, "old months are gone: {log} and {archive} are left");
    let first = fixture.outbox.archived().iter().map(|event| event.recorded_at).min().expect("an archive");
    assert_eq!((first.day(), first.hour()), (1, 1), "whole months are gone: the first is of {first}");
}

#[tokio::test]
async fn a_relay_that_was_away_at_its_time_does_it_when_it_is_back() {
    let fixture = Fixture::new().await;
    let relay = fixture.relay("one");
    fixture.look(&relay).await;
    fixture.deliver(5).await;
    fixture.clock.advance(DAY * 8 + DAY / 2);
    assert!(matches!(fixture.look(&relay).await, Look::Waiting(_)));
    assert_eq!(fixture.left(), (0, 5));
    assert_eq!(fixture.note().await.as_deref(), Some("2026-01-09"));
}

#[tokio::test]
async fn while_one_is_at_it_another_leaves_it_alone() {
    let fixture = Fixture::new().await;
    fixture.deliver(5).await;
    fixture.clock.advance(DAY * 8);
    let log: Arc<dyn postrider::store::Store> = fixture.log.clone();
    log.acquire_leader_lease(LEASE_NAME, "somebody", DAY).await.expect("a lease").expect("nobody has it");
    assert_eq!(fixture.look(&fixture.relay("one")).await, Look::Elsewhere);
    assert_eq!(fixture.left(), (5, 0));
    fixture.clock.advance(DAY);
    assert!(matches!(fixture.look(&fixture.relay("one")).await, Look::Waiting(_)), "there is a next holder");
    assert_eq!(fixture.left(), (0, 5));
}

#[tokio::test]
async fn a_stop_ends_it_between_two_batches_and_the_next_one_goes_on() {
    let fixture = Fixture::new().await;
    fixture.deliver(50).await;
    fixture.clock.advance(DAY * 8);
    let mut relay = fixture.relay("one");
    relay.retention.pacing.pause = Duration::from_millis(5);
    let end = async {
        let patience = Instant::now() + Duration::from_secs(60);
        while fixture.left().1 < 5 {
            assert!(Instant::now() < patience, "it does not begin");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        fixture.end.send_replace(true);
    };
    let (look, ()) = tokio::join!(fixture.look(&relay), end);
    assert_eq!(look, Look::Stopped);
    let (left, archived) = fixture.left();
    assert!(left > 0 && left + archived == 50, "{left} and {archived}");
    assert_eq!(fixture.note().await, None, "the night is not done");
    fixture.end.send_replace(false);
    assert!(matches!(fixture.look(&fixture.relay("two")).await, Look::Waiting(_)));
    assert_eq!(fixture.left(), (0, 50));
}
