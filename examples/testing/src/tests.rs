//! The tests of the application. Each has a database in memory, so they need no server and no clean-up.

use std::time::Duration;

use postrider::store::{DeliveryFailure, Outcome};
use postrider::testing::{Clock, Destination, ManualClock, recorded, recorded_of, until_quiet};
use postrider::{OffsetDateTime, assert_recorded};
use sqlx::sqlite::SqlitePoolOptions;

use super::*;

/// A database in memory. One connection: each connection would have a database of its own.
async fn database() -> SqlitePool {
    let pool = SqlitePoolOptions::new().max_connections(1).min_connections(1);
    let db = pool.connect("sqlite::memory:").await.expect("a database");
    create_tables(&db).await.expect("tables");
    db
}

#[tokio::test]
async fn a_payment_is_recorded() {
    let outbox = Outbox::migrated(&database().await).await.expect("an outbox");
    pay(&outbox, 7, 25).await.expect("paid");
    assert_recorded!(outbox, OrderPaid, |event| event.order == 7 && event.amount == 25);
}

#[tokio::test]
async fn a_payment_that_fails_leaves_no_event() {
    let outbox = Outbox::migrated(&database().await).await.expect("an outbox");
    pay(&outbox, 7, -25).await.expect_err("refused");
    assert!(recorded(&outbox).await.expect("the log").is_empty());
}

#[tokio::test]
async fn a_paid_order_is_packed_and_announced() {
    let outbox = Outbox::migrated(&database().await).await.expect("an outbox");
    let carrier = Destination::new();
    let relay = relay(&outbox, carrier.clone()).start().await.expect("a relay");
    pay(&outbox, 7, 25).await.expect("paid");

    // Wait for what happened, never for time.
    until_quiet(&relay, "packing").await.expect("packed");
    until_quiet(&relay, "carrier").await.expect("announced");
    let packed: Vec<ParcelPacked> = recorded_of(&outbox).await.expect("the log");
    assert_eq!(packed.len(), 1);
    assert_eq!(carrier.delivered()[0].aggregate_id, "7");
    relay.stop().await.expect("stopped");
}

#[tokio::test]
async fn parcels_wait_for_a_carrier_that_is_away() {
    let outbox = Outbox::migrated(&database().await).await.expect("an outbox");
    let carrier = Destination::new();
    carrier.unavailable(Some("connection refused"));
    let relay = relay(&outbox, carrier.clone()).start().await.expect("a relay");
    pay(&outbox, 7, 25).await.expect("paid");
    until_quiet(&relay, "packing").await.expect("packed");
    assert!(carrier.delivered().is_empty());

    carrier.unavailable(None); // it is back
    until_quiet(&relay, "carrier").await.expect("announced");
    // The outage cost no attempt.
    assert_eq!(carrier.tried().iter().map(|(attempt, _)| attempt.attempt).collect::<Vec<_>>(), [1]);
    relay.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_parcel_that_the_carrier_refuses_is_announced_again_later() {
    // Time stands still until the test moves it: no test waits for a pause between attempts.
    let clock = ManualClock::at(OffsetDateTime::now_utc());
    let builder = Outbox::builder().clock(Clock::Manual(clock.clone()));
    let outbox = builder.migrated(&database().await).await.expect("an outbox");
    let carrier = Destination::new();
    carrier.decide(|attempt| match attempt.attempt {
        1 => Outcome::retry(DeliveryFailure::new("503", "too many parcels today")),
        _ => Outcome::Delivered,
    });
    let relay = relay(&outbox, carrier.clone()).start().await.expect("a relay");
    pay(&outbox, 7, 25).await.expect("paid");
    // The failure is written down: the event is retrying, and not due yet.
    while relay.store().figures("carrier").await.expect("figures").iter().all(|figures| figures.retrying == 0)
    {
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_secs(60));
    until_quiet(&relay, "carrier").await.expect("announced");
    assert_eq!(carrier.tried().len(), 2);
    relay.stop().await.expect("stopped");
}
