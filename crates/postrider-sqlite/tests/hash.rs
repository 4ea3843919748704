//! The lane of a key is the same in Rust and in SQL.

mod fixture;

use fixture::{Fixture, event};
use postrider_core::{EventLog, Inspect, StateQuery, Subscription};
use postrider_sqlite::hash_of;

#[tokio::test]
async fn the_view_and_the_reader_agree_on_lanes() {
    let fixture = Fixture::new().await;
    let long = "長い鍵".repeat(50);
    let keys = [
        "a",
        "Order:1",
        "Straße",
        "日本語",
        "😀😀",
        "e\u{301}",
        "\u{fffd}",
        " ",
        "Z\u{10ffff}",
        long.as_str(),
    ];
    for key in keys {
        fixture.record(event("1").ordered_by(key)).await;
    }
    fixture.subscribe(Subscription::new("s").lanes(5)).await;
    let lanes: Vec<(String, i64)> =
        sqlx::query_as("select ordering_key, lane from postrider_event_state order by id")
            .fetch_all(&fixture.pool)
            .await
            .expect("the view");
    let expected: Vec<(String, i64)> = keys.iter().map(|key| ((*key).to_owned(), hash_of(key) % 5)).collect();
    assert_eq!(lanes, expected);

    let mut read = Vec::new();
    for _ in 0..5 {
        let mut lease = fixture.hold().await;
        read.extend(fixture.drain(&mut lease).await);
    }
    read.sort_unstable();
    assert_eq!(read, (1..=10).collect::<Vec<_>>(), "every event is in exactly one lane");
    let states = fixture.store.states(&StateQuery::default()).await.expect("states");
    assert!(states.iter().all(|state| state.delivered_by.as_deref() == Some("a")), "{states:?}");
}

#[tokio::test]
async fn the_view_and_the_filter_agree_on_patterns() {
    let fixture = Fixture::new().await;
    let names = ["orders", "Orders", "orders.eu", "or?ers", "[o]rders", "o", "a*b", "orders]", "ORDERS.EU"];
    for name in names {
        fixture.record(postrider_core::NewEvent { stream: name.into(), ..event("1") }).await;
    }
    for pattern in ["orders", "Orders", "orders*", "or?ers", "[o]rders", "[o]*", "*", "a*b", "*]", "*.eu"] {
        fixture.subscribe(Subscription::new(pattern).streams([pattern])).await;
        let lease = fixture.store.claim(pattern, "a", fixture::LEASE).await.expect("claim").expect("free");
        let batch = fixture.store.read(&lease, &lease.position, 100).await.expect("read");
        assert_eq!(batch.scanned, 9, "a narrow filter advances");
        let read: Vec<i64> = batch.events.iter().map(|read| read.event.id).collect();
        let query = StateQuery { subscription: Some(pattern.into()), ..StateQuery::default() };
        let seen: Vec<i64> =
            fixture.store.states(&query).await.expect("states").iter().map(|state| state.id).collect();
        assert_eq!(read, seen, "{pattern}");
    }
}
