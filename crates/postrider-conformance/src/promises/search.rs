//! Finding events: by what they are, page by page, and with their causes.

use std::time::Duration;

use postrider_core::{
    ArchiveOptions, ErrorKind, EventPage, EventQuery, ManualClock, NewEvent, Pattern, Store, Sweep, Uuid,
};

use crate::harness::{Harness, TestLog};
use crate::relay::{commit_one, drain, log, log_with_clock, subscribe};

const DAY: Duration = Duration::from_secs(86_400);

async fn record(log: &dyn TestLog, event: NewEvent) -> Uuid {
    let mut writer = log.begin().await;
    let id = writer.record(&event).await.expect("record");
    writer.commit().await.expect("commit");
    id
}

/// Records an event, delivers it, and has it archived.
async fn archived(log: &dyn TestLog, store: &dyn Store, clock: &ManualClock, event: NewEvent) -> Uuid {
    let id = record(log, event).await;
    drain(store, "s").await;
    clock.advance(DAY * 3);
    store
        .sweep(&Sweep::Archive { older_than: DAY, limit: 10, archiving: ArchiveOptions::default() })
        .await
        .expect("archive");
    id
}

async fn look(operator: &dyn Store, query: EventQuery) -> EventPage {
    operator.events(&query).await.expect("events")
}

fn found(found: &EventPage) -> Vec<Uuid> {
    found.events.iter().map(|logged| logged.event.event_id).collect()
}

/// Events are found by each of their traits, in the log and in the archive.
pub async fn events_are_found_by_what_they_are(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    let new = |stream: &str, event_type: &str, aggregate: &str, id: &str| {
        NewEvent::of(stream, event_type, aggregate, id, &1).expect("JSON")
    };
    let archived = archived(&*log, &*store, &clock, new("orders", "OrderPaid", "Order", "7")).await;
    let keyed = record(&*log, new("orders", "OrderPaid", "Order", "8").ordered_by("account 1")).await;
    let mut correlated = new("billing", "bill.Sent", "Bill", "7");
    correlated.headers.set_correlation_id("c-1");
    let correlated = record(&*log, correlated).await;
    let plain = record(&*log, new("orders", "OrderChanged", "Order", "7")).await;
    let query = EventQuery::default;

    let all = look(&*operator, query()).await;
    assert_eq!(found(&all), [plain, correlated, keyed, archived], "the newest first");
    assert_eq!(
        all.events.iter().map(|event| event.archived).collect::<Vec<_>>(),
        [false, false, false, true]
    );
    assert!(all.complete && all.looked == 4, "{all:?}");
    let oldest = look(&*operator, EventQuery { oldest_first: true, ..query() }).await;
    assert_eq!(found(&oldest), [archived, keyed, correlated, plain]);
    assert_eq!(oldest.events[0].event.payload.as_json(), Some("1"));

    for (wanted, query) in [
        (vec![keyed], EventQuery { event_id: Some(keyed), ..query() }),
        (vec![archived], EventQuery { event_id: Some(archived), ..query() }),
        (vec![], EventQuery { event_id: Some(Uuid::now_v7()), ..query() }),
        (
            vec![plain, archived],
            EventQuery { aggregate_type: Some("Order".into()), aggregate_id: Some("7".into()), ..query() },
        ),
        (vec![plain, correlated, archived], EventQuery { aggregate_id: Some("7".into()), ..query() }),
        (vec![keyed], EventQuery { key: Some("account 1".into()), ..query() }),
        (vec![plain, archived], EventQuery { key: Some("Order:7".into()), ..query() }),
        (vec![keyed, archived], EventQuery { event_type: Some(Pattern::new("*Paid")), ..query() }),
        (vec![correlated], EventQuery { stream: Some(Pattern::new("b*")), ..query() }),
        (vec![correlated], EventQuery { correlation_id: Some("c-1".into()), ..query() }),
        (vec![], EventQuery { correlation_id: Some("c".into()), ..query() }),
        (vec![], EventQuery { caused: true, ..query() }),
    ] {
        let answer = look(&*operator, query.clone()).await;
        assert_eq!(found(&answer), wanted, "{query:?}");
        assert!(answer.complete, "{query:?}");
    }
    let at = |place: usize| oldest.events[place].event.recorded_at;
    let id = |place: usize| oldest.events[place].event.id;
    let between = EventQuery { from: Some(at(1)), until: Some(at(3)), ..query() };
    let answer = look(&*operator, between).await;
    let expected = oldest.events.iter().rev().filter(|e| (at(1)..at(3)).contains(&e.event.recorded_at));
    assert_eq!(answer.events, expected.cloned().collect::<Vec<_>>());
    let ids = EventQuery { after: Some(id(0)), before: Some(id(3)), ..query() };
    assert_eq!(found(&look(&*operator, ids).await), [correlated, keyed]);
}

/// A look ends where it was told to, says how far it got, and goes on from there.
pub async fn a_look_at_events_is_bounded_and_goes_on(harness: &dyn Harness) {
    let log = log(harness).await;
    let operator = log.store();
    let mut recorded = Vec::new();
    for n in 0..12 {
        recorded.push(commit_one(&*log, if n == 1 { "rare" } else { "common" }).await);
    }
    let first = look(&*operator, EventQuery { limit: 5, ..EventQuery::default() }).await;
    assert_eq!(found(&first), recorded[7..].iter().rev().copied().collect::<Vec<_>>());
    assert!(!first.complete);
    let (reached, _) = first.reached.expect("somewhere");
    assert_eq!(reached, first.events[4].event.id);
    let rest = look(&*operator, EventQuery { before: Some(reached), ..EventQuery::default() }).await;
    assert_eq!(found(&rest), recorded[..7].iter().rev().copied().collect::<Vec<_>>());
    assert!(rest.complete);

    let rare = EventQuery { aggregate_id: Some("rare".into()), rows: 8, ..EventQuery::default() };
    let partial = look(&*operator, rare.clone()).await;
    assert_eq!((partial.events.len(), partial.looked, partial.complete), (0, 8, false));
    let (reached, back_to) = partial.reached.expect("somewhere");
    assert!(back_to <= first.events[4].event.recorded_at);
    let partial = look(&*operator, EventQuery { before: Some(reached), ..rare }).await;
    assert_eq!((found(&partial), partial.complete), (vec![recorded[1]], true));
}

/// An event with what caused it and what followed from it, however far.
pub async fn a_chain_shows_causes_and_what_followed(harness: &dyn Harness) {
    let log = log(harness).await;
    let operator = log.store();
    let caused = |aggregate: &str, cause: Option<Uuid>| {
        let mut event = crate::relay::event(aggregate, 1);
        if let Some(cause) = cause {
            event.headers.set_causation_id(cause);
        }
        event
    };
    let outside = Uuid::now_v7();
    let first = record(&*log, caused("first", Some(outside))).await;
    let second = record(&*log, caused("second", Some(first))).await;
    let aside = record(&*log, caused("aside", Some(first))).await;
    let third = record(&*log, caused("third", Some(second))).await;
    record(&*log, caused("stranger", None)).await;
    let fourth = record(&*log, caused("fourth", Some(third))).await;
    let chain = operator.chain(second).await.expect("chain");
    let ids = |events: &[postrider_core::LoggedEvent]| -> Vec<Uuid> {
        events.iter().map(|logged| logged.event.event_id).collect()
    };
    assert_eq!((ids(&chain.causes), ids(&chain.followed)), (vec![first], vec![third, fourth]));
    assert_eq!((chain.event.event.event_id, chain.lost_cause), (second, Some(outside)));
    assert!(chain.complete && chain.looked == 4, "{chain:?}");
    let chain = operator.chain(first).await.expect("chain");
    assert_eq!(ids(&chain.followed), [second, aside, third, fourth]);
    let own = Uuid::now_v7();
    record(&*log, caused("circle", Some(own)).with_id(own)).await;
    let chain = operator.chain(own).await.expect("a circle ends");
    assert!(chain.causes.is_empty() && chain.followed.is_empty());
    assert_eq!(operator.chain(outside).await.expect_err("unknown").kind(), ErrorKind::NotFound);
}
