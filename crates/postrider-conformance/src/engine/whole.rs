//! A handler's transaction is kept as a whole or not at all, whatever its handler does with it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::{Clock, EventState, OutboxSource, State};
use postrider::testing::{recorded, recorded_of, until_quiet};
use postrider::{Failure, Received, Retry, Tx, Uuid};
use postrider_core::{Attempt, Delivery, Outcome, Sink};
use postrider_relay::Dispatcher;

use super::{Fixture, InvoiceSent, OrderChanged, Statements, record, relay, state};

/// A statement that every database refuses.
const REFUSED: &str = "insert into postrider_no_such_table values (1)";

/// What a handler does on its first try, before it says that all is well.
type Mischief<G> =
    for<'a> fn(&'a mut Tx<<G as Fixture>::Outbox>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn retry() -> Retry {
    Retry::fixed(Duration::from_millis(10)).max_attempts(3)
}

/// Runs one event through a handler that records its invoice after its mischief: where the event stands then, and how many
/// invoices there are.
async fn after<G: Statements + 'static>(fixture: &G, mischief: Mischief<G>) -> (EventState, usize) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let handler = move |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>| async move {
        if event.attempt() == 1 {
            tx.record(&InvoiceSent { order: event.order.clone() }).await?;
            mischief(&mut tx).await;
            return Ok::<(), Failure>(());
        }
        Ok(tx.record(&InvoiceSent { order: event.order.clone() }).await?)
    };
    let running =
        relay(&outbox).subscribe("s", |s| s.on(handler).retry(retry())).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    assert_eq!(outbox.handled("s", &[event]).await.expect("inbox"), [true], "what is done is marked");
    let invoices = recorded_of::<InvoiceSent>(&outbox).await.expect("read").len();
    (state(&*store, "s", event).await, invoices)
}

/// PostgreSQL would turn the commit into a rollback without a word.
pub async fn an_error_that_a_handler_swallows_loses_no_effect<G: Statements + 'static>(fixture: &G) {
    let (done, invoices) = after(fixture, |tx| {
        Box::pin(async move {
            G::run(tx, REFUSED).await.expect_err("it is refused");
        })
    })
    .await;
    assert_eq!((done.state, invoices), (State::Done, 1));
}

/// What goes back to a savepoint has failed nothing.
pub async fn a_handlers_own_savepoints_are_its_own_business<G: Statements + 'static>(fixture: &G) {
    let (done, invoices) = after(fixture, |tx| {
        Box::pin(async move {
            let invoice = InvoiceSent { order: "within".into() };
            for step in ["savepoint one", "savepoint two"] {
                G::run(tx, step).await.expect(step);
            }
            tx.record(&invoice).await.expect("recorded");
            G::run(tx, REFUSED).await.expect_err("it is refused");
            G::run(tx, "rollback to savepoint two").await.expect("back");
            tx.record(&invoice).await.expect("recorded");
            for step in ["release savepoint two", "savepoint three", "release savepoint one"] {
                G::run(tx, step).await.expect(step);
            }
            tx.record(&invoice).await.expect("recorded");
        })
    })
    .await;
    assert_eq!((done.state, done.attempts, invoices), (State::Done, 1, 3));
}

/// The marks went with it.
pub async fn a_handler_that_rolls_back_is_not_done<G: Statements + 'static>(fixture: &G) {
    let (done, invoices) = after(fixture, |tx| {
        Box::pin(async move {
            G::run(tx, "rollback").await.expect("rolled back");
        })
    })
    .await;
    assert_eq!((done.state, done.attempts, invoices), (State::Done, 2, 1));
    let said = done.error_message.expect("what was wrong");
    assert!(said.contains("ended before the handler did") && said.contains("must"), "{said}");
}

/// The marks must not stand for what came after them.
pub async fn a_handler_that_ends_its_transaction_and_begins_another_is_not_done<G: Statements + 'static>(
    fixture: &G,
) {
    let (done, invoices) = after(fixture, |tx| {
        Box::pin(async move {
            G::run(tx, "rollback").await.expect("rolled back");
            G::run(tx, "begin").await.expect("begun");
            tx.record(&InvoiceSent { order: "in another".into() }).await.expect("recorded");
        })
    })
    .await;
    assert_eq!((done.state, done.attempts, invoices), (State::Done, 2, 1));
}

/// A commit of its own keeps the first half at most: the event comes again, and its second half happens.
pub async fn a_handler_that_commits_by_itself_comes_again<G: Statements + 'static>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let handler = move |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>| async move {
        if event.attempt() == 1 {
            let _ = G::run(&mut tx, "commit").await;
            let _ = G::run(&mut tx, "begin").await;
        }
        Ok::<(), Failure>(tx.record(&InvoiceSent { order: event.order.clone() }).await?)
    };
    let running =
        relay(&outbox).subscribe("s", |s| s.on(handler).retry(retry())).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let done = state(&*store, "s", event).await;
    assert_eq!((done.state, done.attempts), (State::Done, 2));
    assert_eq!(recorded_of::<InvoiceSent>(&outbox).await.expect("read").len(), 1, "once, and not lost");
    assert_eq!(outbox.handled("s", &[event]).await.expect("inbox"), [true]);
}

/// Behind a broker there is no lease, and the same holds.
pub async fn without_a_lease_a_transaction_is_whole_as_well<G: Statements + 'static>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut events: Vec<Uuid> = Vec::new();
    for mischief in 1..=3 {
        events.push(record(&outbox, &format!("o{mischief}"), mischief).await);
    }
    let handler = move |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>| async move {
        tx.record(&InvoiceSent { order: event.order.clone() }).await?;
        if event.attempt() == 1 {
            let steps: &[&'static str] = match event.version {
                1 => &["rollback"],
                2 => &["rollback", "begin"],
                _ => &["commit", "begin"],
            };
            for step in steps {
                let _ = G::run(&mut tx, step).await;
            }
        }
        Ok::<(), Failure>(())
    };
    let mut dispatcher = Dispatcher::builder();
    dispatcher.on(handler);
    let dispatcher = dispatcher.build(&outbox).expect("a dispatcher");
    for attempt in 1..=2 {
        let read = recorded(&outbox).await.expect("read").into_iter();
        let attempts = read
            .filter(|event| events.contains(&event.event_id))
            .map(|event| Attempt { event: Arc::new(event), attempt });
        let delivery = Arc::new(Delivery::new("group", attempts.collect()));
        dispatcher.deliver(Arc::clone(&delivery)).await.expect("available");
        for outcome in delivery.take_outcomes() {
            match (attempt, outcome) {
                (1, Some(Outcome::Retry { failure, .. })) => assert_eq!(failure.code, "database"),
                (2, Some(Outcome::Delivered)) => {}
                (_, other) => panic!("attempt {attempt} became {other:?}"),
            }
        }
        let marked = outbox.handled("group", &events).await.expect("inbox");
        assert_eq!(marked, [attempt == 2; 3], "after attempt {attempt}");
    }
}

/// A batch with any outcome but delivered rolls back as a whole, and then goes one by one.
pub async fn several_of_which_one_is_not_delivered_commit_nothing_together<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    for version in 1..=5 {
        record(&outbox, &format!("o{version}"), version).await;
    }
    let calls = Arc::new(Mutex::new(Vec::<Vec<_>>::new()));
    let noted = Arc::clone(&calls);
    let handler = move |events: Vec<Received<OrderChanged>>, mut tx: Tx<G::Outbox>| {
        let versions: Vec<_> = events.iter().map(|event| event.version).collect();
        let mut calls = noted.lock().expect("calls");
        let is_away = !calls.iter().flatten().any(|version| *version == 3);
        calls.push(versions);
        drop(calls);
        async move {
            let mut answers = Vec::new();
            for event in &events {
                if event.version == 3 && is_away {
                    answers.push(Err(Failure::unavailable("the ledger is away")));
                    continue;
                }
                tx.record_after(event.event(), &InvoiceSent { order: event.order.clone() }).await?;
                answers.push(Ok(()));
            }
            Ok::<_, Failure>(answers)
        }
    };
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).types(["OrderChanged"]))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let mut invoices: Vec<String> =
        recorded_of::<InvoiceSent>(&outbox).await.expect("read").into_iter().map(|sent| sent.order).collect();
    invoices.sort();
    assert_eq!(invoices, ["o1", "o2", "o3", "o4", "o5"], "each once");
    let calls = calls.lock().expect("calls").clone();
    let first = calls.iter().position(|call| call.contains(&3)).expect("a call");
    assert!(calls[first].len() > 1, "first together: {calls:?}");
    for version in &calls[first] {
        let again: Vec<_> = calls[first + 1..].iter().filter(|call| call.contains(version)).collect();
        assert_eq!(again, [&[*version]], "then one by one: {calls:?}");
    }
}
