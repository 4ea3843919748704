//! What holds with many writers and relays at once.

use std::time::Duration;

use postrider_core::{Relane, Subscription};

use crate::crew::{Crew, Manner};
use crate::harness::Harness;
use crate::relay::{LONG, log, subscribe, until};

/// U6: the events of an aggregate arrive in the order of its changes.
pub async fn order_per_aggregate_holds_with_sixteen_writers(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut crew = Crew::new(&log);
    crew.relay("s", 1, Manner { lease: LONG, walks_away: u64::MAX, batch: 50 }).await;
    let committed = crew.write(16, 40, 6).await;
    crew.finish(committed.len()).await.assert_exactly(&committed);
}

/// T1, T6, E10: whatever writers commit or roll back and relays claim, lose and change, each event once and in order.
pub async fn what_was_committed_is_delivered_exactly_once_while_lanes_are_claimed_lost_and_changed(
    harness: &dyn Harness,
) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut crew = Crew::new(&log);
    for number in 0..3 {
        let manner = Manner { lease: Duration::from_millis(300), walks_away: 25, batch: 10 };
        crew.relay("s", number, manner).await;
    }
    let change = async {
        for lanes in [4, 1, 3] {
            until(&format!("there are {lanes} lanes"), || async {
                store.relane("s", lanes).await.expect("relane") == Relane::Done
            })
            .await;
        }
    };
    let (committed, ()) = tokio::join!(crew.write(8, 50, 10), change);
    assert!(crew.losses() > 0, "no relay walked away: the test tests nothing");
    crew.finish(committed.len()).await.assert_exactly(&committed);
}
