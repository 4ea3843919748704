//! What people are shown.

use std::time::Duration;

use postrider_core::{
    DeliveryChange, DeliveryFailure, EventState, Settlement, Standing, Start, State, StateQuery, Subscription,
};

use crate::harness::Harness;
use crate::relay::{LONG, claim, commit_one, log, read, subscribe};

/// E2, E3, U7: every event's state per subscription, with its details, also for what is done.
pub async fn every_state_is_shown_with_its_details(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut events = Vec::new();
    for aggregate in ["done", "retrying", "waiting", "dead"] {
        events.push(commit_one(&*log, aggregate).await);
    }
    let now = Subscription::new("from now on").start(Start::Now);
    store.subscribe(&now).await.expect("subscribe");
    store.subscribe(&Subscription::new("narrow").types(["Nothing"])).await.expect("subscribe");
    let states = async || -> Vec<EventState> {
        let query = StateQuery { subscription: Some("s".into()), ..StateQuery::default() };
        store.states(&query).await.expect("states")
    };
    let all = states().await;
    assert_eq!(all.iter().map(|state| state.event_id).collect::<Vec<_>>(), events);
    assert!(
        all.iter()
            .all(|state| state.state == State::Pending && state.attempts == 0 && state.lease_owner.is_none())
    );

    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 10).await;
    assert_eq!(store.extend(&mut lease, LONG, Some(&batch.next)).await.expect("extend"), Standing::Held);
    let all = states().await;
    assert!(
        all.iter().all(|state| state.state == State::Processing),
        "read by a holder, not settled: {all:?}"
    );
    assert!(
        all.iter()
            .all(|state| state.lease_owner.as_deref() == Some("relay")
                && state.lease_until == Some(lease.until))
    );

    let id = |n: usize| batch.events[n].event.id;
    let failure = DeliveryFailure::new("refused", "the destination said no");
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::retrying(
        id(1),
        1,
        Duration::from_secs(3600),
        failure.clone(),
    ));
    settlement.deliveries.push(DeliveryChange::waiting(id(2)));
    settlement.deliveries.push(DeliveryChange::dead(id(3), 1, failure));
    store.settle(&mut lease, &settlement).await.expect("settle");
    let all = states().await;
    let shown: Vec<_> = all.iter().map(|state| (state.state, state.attempts)).collect();
    assert_eq!(shown, [(State::Done, 1), (State::Retrying, 1), (State::Retrying, 0), (State::Dead, 1)]);
    assert!(all[0].delivered_at.is_some() && all[0].last_attempt_at == all[0].delivered_at);
    assert_eq!(all[0].delivered_by.as_deref(), Some("relay"));
    assert!(all[1].next_retry_at > all[1].last_attempt_at && all[1].delivered_at.is_none());
    assert_eq!(all[1].error_code.as_deref(), Some("refused"));
    assert_eq!(all[3].error_message.as_deref(), Some("the destination said no"));
    assert!(all[2].error_code.is_none() && all[2].next_retry_at.is_none());

    let later = commit_one(&*log, "later").await;
    let by = async |query: StateQuery| store.states(&query).await.expect("states");
    let one = by(StateQuery { event_id: Some(later), ..StateQuery::default() }).await;
    let named: Vec<_> = one.iter().map(|state| (state.subscription.as_str(), state.state)).collect();
    assert_eq!(
        named,
        [("from now on", State::Pending), ("s", State::Pending)],
        "one row a subscription that wants it"
    );
    assert_eq!(
        by(StateQuery { event_id: Some(events[0]), ..StateQuery::default() }).await.len(),
        1,
        "not from now on"
    );
    let dead = by(StateQuery { state: Some(State::Dead), ..StateQuery::default() }).await;
    assert_eq!((dead.len(), dead[0].event_id), (1, events[3]));
    let page = by(StateQuery {
        subscription: Some("s".into()),
        after: all[1].id,
        limit: 2,
        ..StateQuery::default()
    })
    .await;
    assert_eq!(page.iter().map(|state| state.event_id).collect::<Vec<_>>(), events[2..4]);
}
