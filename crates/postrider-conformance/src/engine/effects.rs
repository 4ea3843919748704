//! Handlers with the database's transaction.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::{Clock, Effect, OutboxSource, State, Subscription};
use postrider::testing::{recorded, recorded_of, until_quiet};
use postrider::{Context, ErrorKind, Failure, HandleWithin, Headers, NewEvent, Received, Retry, Tx};

use super::{Fixture, InvoiceSent, OrderChanged, Seen, record, relay, state};

const SOON: Duration = Duration::from_millis(10);

/// U16: through the outbox, in its own transaction; once, although it is tried twice.
pub async fn an_effect_and_its_follow_up_happen_once<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    for version in 1..=20 {
        record(&outbox, &format!("o{version}"), version).await;
    }
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>| {
        notes.note(&event);
        async move {
            tx.record(&InvoiceSent { order: event.order.clone() }).await?;
            if event.attempt() == 1 && event.version % 3 == 0 {
                return Err(Failure::retry("after it was recorded"));
            }
            Ok(())
        }
    };
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).retry(Retry::fixed(SOON)))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(seen.count(), 26, "six of twenty were tried twice");
    let mut invoices: Vec<String> =
        recorded_of::<InvoiceSent>(&outbox).await.expect("read").into_iter().map(|sent| sent.order).collect();
    invoices.sort();
    let mut wanted: Vec<String> = (1..=20).map(|version| format!("o{version}")).collect();
    wanted.sort();
    assert_eq!(invoices, wanted, "each once");
}

struct Invoices;

impl<S: OutboxSource> HandleWithin<S, OrderChanged> for Invoices {
    async fn handle(&self, event: Received<OrderChanged>, mut tx: Tx<S>, _: Context) -> Result<(), Failure> {
        Ok(tx.record(&InvoiceSent { order: event.order.clone() }).await?)
    }
}

/// With `anyhow` or without.
pub async fn a_struct_and_any_error_will_do<G: Fixture>(fixture: &G) {
    async fn by_anyhow(event: Received<OrderChanged>) -> anyhow::Result<()> {
        anyhow::ensure!(event.attempt() > 1, "not the first time");
        Ok(())
    }
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let running = relay(&outbox)
        .subscribe("structs", |s| s.on(Invoices))
        .subscribe("anyhow", |s| s.on(by_anyhow).retry(Retry::fixed(SOON)))
        .start()
        .await
        .expect("started");
    for subscription in ["structs", "anyhow"] {
        running.delivered(subscription, event, super::PATIENCE).await.expect("delivered");
    }
    let retried = state(&**running.store(), "anyhow", event).await;
    running.stop().await.expect("stopped");
    assert_eq!((retried.attempts, retried.error_message.as_deref()), (2, Some("not the first time")));
    assert_eq!(recorded_of::<InvoiceSent>(&outbox).await.expect("read").len(), 1);
}

/// Neither the mark nor the follow-up.
pub async fn a_failed_effect_leaves_nothing<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let handler = |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>| async move {
        tx.record(&InvoiceSent { order: event.order.clone() }).await?;
        Err::<(), _>(Failure::reject("on second thought"))
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    assert_eq!(state(&*store, "s", event).await.state, State::Dead);
    assert_eq!(recorded(&outbox).await.expect("read").len(), 1);
    assert_eq!(outbox.handled("s", &[event]).await.expect("inbox"), [false]);
}

/// And then one by one.
pub async fn effects_share_a_transaction_until_one_fails<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut events = Vec::new();
    for version in 1..=12 {
        events.push(record(&outbox, &format!("o{}", version % 4), version).await);
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let handler = move |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            tx.record(&InvoiceSent { order: format!("{}", event.version) }).await?;
            if event.version == 7 { Err(Failure::reject("seven is refused")) } else { Ok(()) }
        }
    };
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).max_tx_batch(6).types(["OrderChanged"]))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let mut invoices: Vec<i64> = recorded_of::<InvoiceSent>(&outbox)
        .await
        .expect("read")
        .into_iter()
        .map(|sent| sent.order.parse().expect("a number"))
        .collect();
    invoices.sort_unstable();
    assert_eq!(invoices, [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12], "each once, without the one that is dead");
    assert_eq!(state(&*store, "s", events[6]).await.state, State::Dead);
    assert!(calls.load(Ordering::SeqCst) > 12, "some were called twice: first together, then alone");
}

/// U16: correlation and causation, and the trace.
pub async fn follow_ups_carry_their_cause<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut first =
        NewEvent::of("orders", "OrderChanged", "Order", "a", &super::changed("a", 1)).expect("an event");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    first.headers = Headers::new();
    first.headers.set_traceparent(trace);
    let first = outbox.record_alone(&first).await.expect("recorded");
    let invoice = |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>, context: Context| async move {
        assert_eq!(context.trace(), event.event().headers.traceparent());
        tx.record(&InvoiceSent { order: event.order.clone() }).await
    };
    let thank = |event: Received<InvoiceSent>, context: Context| async move {
        context.record(&NewEvent::of("mail", "Thanked", "Order", &event.order, &1)?).await
    };
    // One that comes alone is the cause, also for a handler of several.
    let file = |events: Vec<Received<InvoiceSent>>, mut tx: Tx<G::Outbox>| async move {
        tx.record(&NewEvent::of("files", "Filed", "Order", &events[0].order, &1)?).await
    };
    let running = relay(&outbox)
        .subscribe("invoices", |s| s.on(invoice))
        .subscribe("thanks", |s| s.on(thank))
        .subscribe("files", |s| s.on(file))
        .start()
        .await
        .expect("started");
    super::until("all four", async || recorded(&outbox).await.expect("read").len() == 4).await;
    running.stop().await.expect("stopped");
    let events = recorded(&outbox).await.expect("read");
    let of = |name: &str| events.iter().find(|event| &*event.event_type == name).expect("recorded");
    let (second, third, fourth) = (of("InvoiceSent"), of("Thanked"), of("Filed"));
    assert_eq!(second.headers.causation_id(), Some(first));
    assert_eq!(third.headers.causation_id(), Some(second.event_id));
    assert_eq!(fourth.headers.causation_id(), Some(second.event_id));
    for event in [second, third, fourth] {
        assert_eq!(event.headers.correlation_id(), Some(first.to_string().as_str()));
        assert_eq!(event.headers.traceparent(), Some(trace));
    }
}

/// U5, C11: the second time it is found in the inbox.
pub async fn a_plain_handler_with_an_inbox_is_not_called_again<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let known = record(&outbox, "a", 1).await;
    let new = record(&outbox, "a", 2).await;
    let effect = Effect { lease: None, consumer: "s", events: &[known], timeout: Duration::from_secs(5) };
    let (tx, first) = OutboxSource::begin(&outbox, effect).await.expect("begun");
    assert_eq!(first, [true]);
    G::Outbox::commit(tx).await.expect("committed");
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async {}
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler).inbox()).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    assert_eq!(seen.versions("a"), [2]);
    assert_eq!(state(&*store, "s", known).await.state, State::Done);
    assert_eq!(outbox.handled("s", &[known, new]).await.expect("inbox"), [true, true]);
}

/// The lease's epoch is checked in the transaction.
pub async fn a_stale_holder_applies_nothing<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let store = outbox.open().await.expect("a store");
    store.subscribe(&Subscription::new("s")).await.expect("subscribed");
    let stale = store.claim("s", "one", Duration::from_millis(1)).await.expect("claim").expect("a lane");
    let next_holder = std::sync::OnceLock::new();
    super::until("the lease ran out", async || {
        match store.claim("s", "two", Duration::from_secs(60)).await.expect("claim") {
            Some(lease) => next_holder.set(lease).is_ok(),
            None => false,
        }
    })
    .await;
    let effect = |lease| Effect {
        lease,
        consumer: "s",
        events: std::slice::from_ref(&event),
        timeout: Duration::from_secs(5),
    };
    let refused = OutboxSource::begin(&outbox, effect(Some(&stale))).await.err().expect("refused");
    assert_eq!(refused.kind(), ErrorKind::LeaseLost, "{refused}");
    assert_eq!(outbox.handled("s", &[event]).await.expect("inbox"), [false]);
    let (tx, first) =
        OutboxSource::begin(&outbox, effect(next_holder.get())).await.expect("the next holder may");
    assert_eq!(first, [true]);
    G::Outbox::commit(tx).await.expect("committed");
}

/// A handler must be done with it when it returns.
pub async fn a_kept_transaction_is_a_failure<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let kept: Arc<Mutex<Vec<Tx<G::Outbox>>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let handler = move |_: Received<OrderChanged>, tx: Tx<G::Outbox>| {
        keep.lock().expect("kept").push(tx);
        async {}
    };
    let retry = Retry::fixed(SOON).max_attempts(1);
    let running =
        relay(&outbox).subscribe("s", |s| s.on(handler).retry(retry)).start().await.expect("started");
    super::until("it was called", async || !kept.lock().expect("kept").is_empty()).await;
    kept.lock().expect("kept").clear();
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let dead = state(&*store, "s", event).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("transaction")));
    assert_eq!(outbox.handled("s", &[event]).await.expect("inbox"), [false]);
}

/// L15: different events that are duplicates by a key of the business; one whose handler fails frees the key.
pub async fn events_with_one_text_key_have_one_effect_per_subscription<G: Fixture>(fixture: &G) {
    let outbox = fixture.outbox(Clock::Database).await;
    for (order, version) in [("a", 1), ("a", 1), ("b", 1), ("a", 2), ("b", 1)] {
        record(&outbox, order, version).await;
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = || {
        let count = Arc::clone(&calls);
        move |event: Received<OrderChanged>, mut tx: Tx<G::Outbox>| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                let key = format!("{}:{}", event.order, event.version);
                if tx.first_time_by_key(&key).await? {
                    tx.record(&InvoiceSent { order: key }).await?;
                }
                if event.attempt() == 1 { Err(Failure::retry("after its change")) } else { Ok(()) }
            }
        }
    };
    let running = relay(&outbox)
        .subscribe("ledger", |s| s.on(handler()).retry(Retry::fixed(SOON)))
        .subscribe("report", |s| s.on(handler()).retry(Retry::fixed(SOON)))
        .start()
        .await
        .expect("started");
    for subscription in ["ledger", "report"] {
        until_quiet(&running, subscription).await.expect("quiet");
    }
    running.stop().await.expect("stopped");
    assert_eq!(calls.load(Ordering::SeqCst), 20, "each event twice, in each subscription");
    let mut keys: Vec<String> =
        recorded_of::<InvoiceSent>(&outbox).await.expect("read").into_iter().map(|sent| sent.order).collect();
    keys.sort();
    assert_eq!(keys, ["a:1", "a:1", "a:2", "a:2", "b:1", "b:1"], "each key once in each subscription");
}
