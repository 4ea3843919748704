//! A database that keeps its connections and answers nothing, or takes its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use postrider::store::{Clock, OutboxSource, Pause, State};
use postrider::testing::until_quiet;
use postrider::{Failure, Received, Retry};
use tokio::sync::Semaphore;

use super::{Fixture, LEASE, OrderChanged, Seen, record, relay, state, until};
use crate::silent::{Call, Silence, Silent};

/// How long a call may wait for an answer that does not come: what is left of a lease, and once more as much for the call itself.
const GIVEN_UP: Duration = LEASE.saturating_mul(2);

/// A call that is not answered is given up within the lease, whichever it is, and the lane goes on as soon as calls are answered
/// again; those that were not stay so.
pub async fn a_call_that_is_never_answered_holds_no_lane_for_ever(fixture: &impl Fixture) {
    let each = Call::ALL.iter().map(std::slice::from_ref).chain([&Call::ALL[..]]);
    // At once, because each takes a few leases.
    join_all(each.map(|calls| fall_silent(fixture, calls))).await;
}

async fn fall_silent(fixture: &impl Fixture, calls: &[Call]) {
    let silent = Silent::new(fixture.outbox(Clock::Database).await);
    let (seen, fails) = (Seen::default(), Arc::new(AtomicBool::new(true)));
    let (noted, failing) = (seen.clone(), Arc::clone(&fails));
    let running = relay(&silent)
        .subscribe("s", |s| {
            s.retry(Retry::fixed(Duration::from_millis(200)).max_attempts(1000)).on(
                move |event: Received<OrderChanged>| {
                    let (noted, failing) = (noted.clone(), Arc::clone(&failing));
                    async move {
                        if event.order == "fails" && failing.load(Ordering::SeqCst) {
                            return Err(Failure::retry("not yet"));
                        }
                        noted.note(&event);
                        Ok(())
                    }
                },
            )
        })
        .start()
        .await
        .expect("started");
    // There is always something open, so that what is due is looked for.
    record(&silent, "fails", 1).await;
    record(&silent, "a", 1).await;
    until("it works", async || seen.versions("a") == [1]).await;
    silent.falls(calls, Silence::Unheard);
    for version in 2..=5 {
        record(&silent, "a", version).await;
    }
    let what = format!("{calls:?}");
    // A lane is given back, and claimed, only when it has been idle or lost.
    if let [Call::Claim | Call::Release] = calls {
        silent.falls(&[Call::Read], Silence::Unheard);
    }
    until(&format!("{what}: a call waits"), async || silent.waiting() > 0).await;
    let began = Instant::now();
    until(&format!("{what}: a call is given up"), async || silent.given_up() > 0).await;
    assert!(began.elapsed() < GIVEN_UP, "{what}: {:?}", began.elapsed());
    if let [call @ (Call::Claim | Call::Release)] = calls {
        let before = silent.given_up();
        until(&format!("{what}: {call:?} is given up, too"), async || silent.given_up() > before).await;
    }
    silent.speaks();
    fails.store(false, Ordering::SeqCst);
    let spoke = Instant::now();
    until(&format!("{what}: all is handled"), async || {
        seen.versions("a").contains(&5) && seen.versions("fails") == [1]
    })
    .await;
    assert!(spoke.elapsed() < GIVEN_UP + LEASE, "{what}: it took {:?}", spoke.elapsed());
    let mut first: Vec<i64> = Vec::new();
    for version in seen.versions("a") {
        if !first.contains(&version) {
            first.push(version);
        }
    }
    assert_eq!(first, [1, 2, 3, 4, 5], "{what}: for the first time each, in order");
    running.stop().await.expect("stopped");
}

/// A settle that was written and not answered is in doubt, like any answer that was lost: what it settled is not repeated.
pub async fn a_settle_that_is_written_and_never_answered_repeats_nothing(fixture: &impl Fixture) {
    let silent = Silent::new(fixture.outbox(Clock::Database).await);
    let seen = Seen::default();
    let noted = seen.clone();
    let running = relay(&silent)
        .subscribe("s", |s| {
            s.on(move |event: Received<OrderChanged>| {
                noted.note(&event);
                async { Ok::<_, Failure>(()) }
            })
        })
        .start()
        .await
        .expect("started");
    record(&silent, "a", 1).await;
    until("it works", async || seen.count() == 1).await;
    silent.falls(&[Call::Settle], Silence::Unanswered);
    record(&silent, "a", 2).await;
    until("a settle waits", async || silent.waiting() > 0).await;
    record(&silent, "a", 3).await;
    until("it is given up", async || silent.given_up() > 0).await;
    silent.speaks();
    let last = record(&silent, "a", 4).await;
    running.delivered("s", last, super::PATIENCE).await.expect("delivered");
    running.stop().await.expect("stopped");
    assert_eq!(seen.versions("a"), [1, 2, 3, 4]);
}

/// A lane whose release is refused, as by a standby that is not promoted yet, is given back once the database takes it: it does not
/// stay leased, with nobody at work, for the rest of the lease.
pub async fn a_lane_that_could_not_be_given_back_is_given_back_later(fixture: &impl Fixture) {
    let silent = Silent::new(fixture.outbox(Clock::Database).await);
    let seen = Seen::default();
    let noted = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        noted.note(&event);
        async { Ok::<_, Failure>(()) }
    };
    // Longer than anything is waited for.
    let running = relay(&silent).lease(Duration::from_secs(600)).subscribe("s", |s| s.on(handler)).start();
    let running = running.await.expect("started");
    record(&silent, "a", 1).await;
    until("it works", async || seen.count() == 1).await;
    silent.falls(&[Call::Release], Silence::Refused);
    let store = Arc::clone(running.store());
    store.pause("s", Some(&Pause::by("ada"))).await.expect("paused");
    until("a release is refused", async || silent.asked(Call::Release) > 0).await;
    silent.speaks();
    store.pause("s", None).await.expect("resumed");
    let last = record(&silent, "a", 2).await;
    running.delivered("s", last, super::PATIENCE).await.expect("delivered");
    running.stop().await.expect("stopped");
    assert_eq!(seen.versions("a"), [1, 2]);
}

/// Longer than usual, so that what is left of it is enough on a busy machine.
const LONG_LEASE: Duration = LEASE.saturating_mul(2);

/// Reads and looks that take nearly as long as a lease cost nobody the lane: it is extended beside them.
pub async fn what_takes_long_is_no_reason_to_lose_the_lane(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let slow = Silent::new(outbox.clone());
    let (seen, taken) = (Seen::default(), Seen::default());
    let subscribed = |seen: &Seen| {
        let seen = seen.clone();
        move |event: Received<OrderChanged>| {
            let seen = seen.clone();
            async move {
                if event.order == "fails" {
                    // Not so long that the lease is extended meanwhile: it is no longer fresh when the read begins.
                    tokio::time::sleep(LONG_LEASE * 3 / 10).await;
                    return Err(Failure::retry("never"));
                }
                seen.note(&event);
                Ok(())
            }
        }
    };
    let retry = || Retry::fixed(Duration::from_millis(1)).max_attempts(1_000_000);
    let first = relay(&slow)
        .lease(LONG_LEASE)
        .owner("first")
        .subscribe("s", |s| s.retry(retry()).on(subscribed(&seen)));
    let first = first.start().await.expect("started");
    // There is always something due.
    let fails = record(&slow, "fails", 1).await;
    let store = outbox.open().await.expect("a store");
    until("it fails", async || state(&*store, "s", fails).await.state == State::Retrying).await;
    slow.falls(&[Call::Read, Call::Due], Silence::Slow(LONG_LEASE * 9 / 10));
    let standby = relay(&outbox)
        .lease(LONG_LEASE)
        .owner("second")
        .subscribe("s", |s| s.retry(retry()).on(subscribed(&taken)));
    let standby = standby.start().await.expect("started");
    for version in 1..=2 {
        record(&slow, "a", version).await;
        until("it is handled", async || seen.count() + taken.count() >= version as usize).await;
    }
    assert_eq!((seen.versions("a"), taken.count()), (vec![1, 2], 0), "the standby got nothing");
    slow.speaks();
    first.stop().await.expect("stopped");
    standby.stop().await.expect("stopped");
}

/// A batch is settled while one of its events runs on, and the connection breaks before the answer is there: the lane is still in the
/// same hand, and nothing that runs is cut off or begun again.
pub async fn a_settle_whose_answer_is_lost_cuts_off_nothing_that_runs(fixture: &impl Fixture) {
    let silent = Silent::new(fixture.outbox(Clock::Database).await);
    let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let (noted, hold) = (seen.clone(), Arc::clone(&gate));
    let handler = move |event: Received<OrderChanged>| {
        noted.note(&event);
        let (slow, hold) = (event.order == "slow", Arc::clone(&hold));
        async move {
            if slow {
                hold.acquire().await.expect("open").forget();
            }
        }
    };
    record(&silent, "slow", 1).await;
    record(&silent, "b", 1).await;
    silent.falls(&[Call::Settle], Silence::Broken);
    let running = relay(&silent)
        .subscribe("s", |s| s.on(handler).patience(Duration::from_millis(20)))
        .start()
        .await
        .expect("started");
    until("the batch is settled", async || silent.asked(Call::Settle) > 0).await;
    silent.speaks();
    record(&silent, "b", 2).await;
    until("the lane goes on", async || seen.versions("b") == [1, 2]).await;
    gate.add_permits(1);
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(seen.versions("slow"), [1], "once");
}
