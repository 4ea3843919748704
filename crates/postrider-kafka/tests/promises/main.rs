//! The sink's promises, on real brokers that are killed, cut off and locked, and on a real PostgreSQL.

mod arrivals;
mod cloudevents;
mod cluster;
mod drain;
#[path = "../support/events.rs"]
mod events;
mod expiry;
mod fixture;
mod freezes;
#[path = "../support/logs.rs"]
mod logs;
mod outage;
mod proxy;
mod relays;
mod secure;
mod times;
mod topics;

use postrider::Uuid;
use postrider::store::{EventState, StateQuery, Store};
use postrider_testkit::{PATIENCE, until_within};

/// Whether the long forms are asked for.
fn is_soak() -> bool {
    std::env::var_os("POSTRIDER_SOAK").is_some()
}

/// Waits until a condition holds; fails the test when that takes too long.
async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    let patience = PATIENCE * if is_soak() { 5 } else { 1 };
    until_within(what, patience, condition).await;
}

/// Where an event stands for the subscription of these tests.
async fn state(store: &dyn Store, event_id: Uuid) -> EventState {
    let query =
        StateQuery { subscription: Some("kafka".into()), event_id: Some(event_id), ..StateQuery::default() };
    store.states(&query).await.expect("states").pop().expect("a state")
}
