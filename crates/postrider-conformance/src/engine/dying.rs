//! When an event is given up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::{Clock, DeliveryFailure, OutboxSource, Outcome, Recordable, ResolveDead, State};
use postrider::testing::{Destination, until_quiet};
use postrider::{Failure, Received, Retry, WhileUnavailable};

use super::{Fixture, OrderChanged, Seen, changed, clock, record, relay, state, until};

const MINUTE: Duration = Duration::from_secs(60);

fn refuse() -> Outcome {
    Outcome::retry(DeliveryFailure::new("refused", "not now"))
}

/// E6, E8.
pub async fn a_reject_is_dead_at_once_and_stays_dead_until_requeued(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let shop = Destination::new();
    shop.decide(|_| Outcome::reject(DeliveryFailure::new("rejected", "never")));
    let (sink, retry) = (shop.clone(), Retry::fixed(Duration::from_millis(1)));
    let running =
        relay(&outbox).subscribe("s", |s| s.sink(sink).retry(retry)).start().await.expect("started");
    let store = Arc::clone(running.store());
    until("it is dead", async || state(&*store, "s", event).await.state == State::Dead).await;
    shop.take_all();
    // Others are delivered, at once and later; the dead one is left alone.
    for version in 2..=4 {
        record(&outbox, "a", version).await;
        until_quiet(&running, "s").await.expect("quiet");
    }
    assert_eq!(shop.tried().iter().filter(|(attempt, _)| attempt.event.event_id == event).count(), 1);
    let dead = state(&*store, "s", event).await;
    assert_eq!((dead.state, dead.attempts, dead.error_message.as_deref()), (State::Dead, 1, Some("never")));
    let requeue = ResolveDead::Requeue { subscription: "s".into(), events: vec![event] };
    assert_eq!(store.resolve_dead(&requeue).await.expect("requeued"), 1);
    running.delivered("s", event, super::PATIENCE).await.expect("delivered after all");
    running.stop().await.expect("stopped");
}

/// U11: after 1 min, 5 min, 15 min, 1 h, then 1 h; dead after 10.
pub async fn a_schedule_is_kept_and_ends_in_death(fixture: &impl Fixture) {
    let clock = clock();
    let outbox = fixture.outbox(Clock::Manual(clock.clone())).await;
    let event = record(&outbox, "a", 1).await;
    let shop = Destination::new();
    shop.decide(|_| refuse());
    let (sink, schedule) = (shop.clone(), [MINUTE, 5 * MINUTE, 15 * MINUTE, 60 * MINUTE]);
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).retry(Retry::schedule(schedule).max_attempts(10)))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    for attempt in 1..=9_u32 {
        until("the next try", async || state(&*store, "s", event).await.attempts == attempt).await;
        let retrying = state(&*store, "s", event).await;
        assert_eq!(retrying.state, State::Retrying);
        let pause = retrying.next_retry_at.expect("a time") - retrying.last_attempt_at.expect("a time");
        let wanted = schedule[(attempt as usize - 1).min(3)];
        assert_eq!(pause, wanted, "after try {attempt}");
        clock.advance(wanted);
    }
    until("it is dead", async || state(&*store, "s", event).await.state == State::Dead).await;
    assert_eq!(shop.tried().len(), 10);
    clock.advance(24 * 60 * MINUTE);
    record(&outbox, "b", 1).await;
    until("the other was tried", async || shop.tried().len() == 11).await;
    running.stop().await.expect("stopped");
    assert_eq!(state(&*store, "s", event).await.attempts, 10);
}

/// E7.
pub async fn an_event_has_the_last_word_on_its_attempts(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut event = changed("a", 1).to_new_event().expect("an event").into_owned();
    event.max_attempts = Some(2);
    let event = outbox.record_alone(&event).await.expect("recorded");
    let shop = Destination::new();
    shop.decide(|_| refuse());
    let (sink, retry) = (shop.clone(), Retry::fixed(Duration::from_millis(1)).max_attempts(7));
    let running =
        relay(&outbox).subscribe("s", |s| s.sink(sink).retry(retry)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let dead = state(&*store, "s", event).await;
    assert_eq!((dead.state, dead.attempts), (State::Dead, 2));
}

/// `Failure::retry_after`.
pub async fn a_stated_time_is_waited_for(fixture: &impl Fixture) {
    let clock = clock();
    let outbox = fixture.outbox(Clock::Manual(clock.clone())).await;
    let event = record(&outbox, "a", 1).await;
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async move {
            match event.attempt() {
                1 => Err(Failure::retry_after(7 * MINUTE, "come again later")),
                _ => Ok(()),
            }
        }
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    let store = Arc::clone(running.store());
    until("it failed", async || state(&*store, "s", event).await.attempts == 1).await;
    let retrying = state(&*store, "s", event).await;
    let pause = retrying.next_retry_at.expect("a time") - retrying.last_attempt_at.expect("a time");
    assert_eq!(pause, 7 * MINUTE);
    clock.advance(7 * MINUTE);
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(seen.count(), 2);
}

/// C7, for an event that fails by itself.
pub async fn age_ends_it_where_that_is_set(fixture: &impl Fixture) {
    let clock = clock();
    let outbox = fixture.outbox(Clock::Manual(clock.clone())).await;
    let event = record(&outbox, "a", 1).await;
    let shop = Destination::new();
    shop.decide(|_| refuse());
    let (sink, retry) = (shop.clone(), Retry::fixed(2 * MINUTE).max_age(5 * MINUTE));
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).retry(retry).while_unavailable(WhileUnavailable::Wait))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    // At 0, 2 and 4 minutes, and a last time when 5 are over.
    for (attempt, minutes) in [(1, 2), (2, 2), (3, 1)] {
        until("a try", async || state(&*store, "s", event).await.attempts == attempt).await;
        let now = state(&*store, "s", event).await;
        let pause = now.next_retry_at.expect("a time") - now.last_attempt_at.expect("a time");
        assert_eq!(pause, minutes * MINUTE, "after try {attempt}");
        clock.advance(minutes * MINUTE);
    }
    until("it is dead", async || state(&*store, "s", event).await.state == State::Dead).await;
    running.stop().await.expect("stopped");
    assert_eq!(shop.tried().len(), 4);
}

/// L8, T4: with its id, its error and its attempts.
pub async fn a_death_is_told(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    record(&outbox, "b", 2).await;
    let handler = |event: Received<OrderChanged>| async move {
        if event.order == "a" { Err(Failure::retry("the mail server said no").code("smtp")) } else { Ok(()) }
    };
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&told);
    let retry = Retry::fixed(Duration::from_millis(1)).max_attempts(2);
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).retry(retry))
        .on_death(move |death| {
            let line = format!(
                "{} {} {} {} {}",
                death.subscription,
                death.event.event_id,
                death.failure.code,
                death.failure.message,
                death.attempts
            );
            let notes = Arc::clone(&notes);
            async move { notes.lock().expect("notes").push(line) }
        })
        .start()
        .await
        .expect("started");
    until("it was told", async || !told.lock().expect("notes").is_empty()).await;
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(*told.lock().expect("notes"), [format!("s {event} smtp the mail server said no 2")]);
}

/// U2.
pub async fn one_of_four_subscriptions_failing_leaves_the_others_alone(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shops: Vec<Destination> = (0..4).map(|_| Destination::new()).collect();
    shops[0].decide(|_| refuse());
    let names = ["licensing", "billing", "notification", "audit"];
    let retry = Retry::fixed(Duration::from_millis(5)).max_attempts(6);
    let mut relay = relay(&outbox);
    for (name, shop) in names.iter().zip(&shops) {
        let (shop, retry) = (shop.clone(), retry.clone());
        relay = relay.subscribe(name, |s| s.sink(shop).retry(retry));
    }
    for version in 1..=5 {
        record(&outbox, "a", version).await;
    }
    let running = relay.start().await.expect("started");
    for name in names {
        until_quiet(&running, name).await.expect("quiet");
    }
    running.stop().await.expect("stopped");
    for (name, shop) in names.iter().zip(&shops).skip(1) {
        assert_eq!(shop.tried().len(), 5, "{name}: each event once");
        assert!(shop.tried().iter().all(|(attempt, _)| attempt.attempt == 1), "{name}");
    }
    assert_eq!(shops[0].tried().len(), 30, "the failing one: five events, six tries each");
}
