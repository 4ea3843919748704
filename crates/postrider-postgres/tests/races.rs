//! Races that need a helping hand to be seen: a slow claim against a change of lanes, a relay whose LISTEN connection is cut.

mod support;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use postrider_conformance::relay::{LONG, claim, commit_one, read, settle, subscribe, until};
use postrider_core::{
    Clock, DeliveryChange, DeliveryFailure, EventLog, LeaseStatus, ManualClock, OffsetDateTime, OnDead,
    Operate, Order, Recorded, Relane, ResolveDead, Settlement, Subscription,
};
use postrider_postgres::{Outbox, PgStore};
use sqlx::Row;
use support::{Pg, PgLog};
use tokio::sync::mpsc;

/// A claim that began before a change of lanes and ends after its fence gets no lane, or one that knows where to stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_claim_does_not_slip_past_the_fence() {
    let slow: postrider_postgres::Patch = |name, text| {
        let from = "    from {schema}.lane l\n";
        assert!(name != "claim" || text.contains(from), "the statement has changed: slow it down anew");
        let late = "    from (select pg_sleep(1)) as slow cross join {schema}.lane l\n";
        (name == "claim").then(|| text.replace(from, late))
    };
    let log = Pg::default().pg_log(Clock::Database).await;
    log.store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    commit_one(&log, "a").await;
    let slow = Outbox::builder().schema(&log.schema).patch(slow).connect(&log.pool).await.expect("outbox");
    let slow = slow.store().await.expect("store");
    let claim = tokio::spawn(async move { slow.claim("s", "slow", LONG).await });
    let running = "select count(*) from pg_stat_activity where query like '%pg_sleep(1)%' and query like '%' || $1 || '%' \
                   and pid <> pg_backend_pid() and state = 'active'";
    until("the slow claim runs", || async {
        let row = sqlx::query(running).bind(&log.schema).fetch_one(&log.pool).await.expect("look");
        row.get::<i64, _>(0) > 0
    })
    .await;
    assert_eq!(
        log.store.relane("s", 2).await.expect("relane"),
        Relane::Draining,
        "fenced, and with a common position"
    );
    let lease = claim.await.expect("the claim").expect("claim");
    assert!(lease.is_none_or(|lease| lease.target.is_some()), "a holder that does not know where to stop");
}

/// An operator lets a dead delivery go in the very moment in which a settle writes another one behind it: whoever is first, the other
/// one is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_behind_a_delivery_that_is_let_go_is_found() {
    let discard = "update {schema}.delivery set state = 'discarded', holds = false where state = 'dead'";
    // Under skip the dead one comes back in front of a head that is delivered in the same moment.
    let requeue =
        "update {schema}.delivery set state = 'retrying', next_at = now(), holds = true where state = 'dead'";
    for (on_dead, operator) in [(OnDead::Hold, discard), (OnDead::Skip, requeue)] {
        let log = Pg::default().pg_log(Clock::Database).await;
        log.store.subscribe(&Subscription::new("s").on_dead(on_dead)).await.expect("subscribe");
        let mut lease = claim(&log.store, "s").await;
        let failure = || DeliveryFailure::new("refused", "never");
        for _ in 0..2 {
            commit_one(&log, "a").await;
        }
        let batch = read(&log.store, &lease, 10).await;
        let [first, second] = [0, 1].map(|n| batch.events[n].event.clone());
        let mut settlement = Settlement::of(&batch);
        settlement.deliveries = match on_dead {
            OnDead::Hold => {
                vec![DeliveryChange::dead(&first, 1, failure()), DeliveryChange::delivered(&second, 2)]
            }
            OnDead::Skip => {
                vec![DeliveryChange::waiting(&first), DeliveryChange::dead(&second, 1, failure())]
            }
        };
        assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
        let next = match on_dead {
            OnDead::Hold => {
                commit_one(&log, "a").await;
                let batch = read(&log.store, &lease, 10).await;
                assert!(batch.events[0].held);
                let mut settlement = Settlement::of(&batch);
                settlement.deliveries.push(DeliveryChange::waiting(&batch.events[0].event));
                settlement
            }
            OnDead::Skip => {
                let mut settlement = Settlement::at(lease.position.clone());
                settlement.deliveries.push(DeliveryChange::delivered(&first, 1));
                settlement
            }
        };
        let mut hand = log.pool.begin().await.expect("begin");
        sqlx::raw_sql(log.sql(operator)).execute(&mut *hand).await.expect("the operator's hand");
        let store = log.store.clone();
        let settling = tokio::spawn(async move {
            let status = store.settle(&mut lease, &next).await.expect("settle");
            (status, lease)
        });
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'";
        until("the settle waits, or is done", || async {
            let row = sqlx::query(waiting).bind(&log.schema).fetch_one(&log.pool).await.expect("look");
            settling.is_finished() || row.get::<i64, _>(0) > 0
        })
        .await;
        hand.commit().await.expect("commit");
        let (status, lease) = settling.await.expect("the settle");
        assert_eq!(status, LeaseStatus::Held);
        let due = log.store.due(&lease, 10).await.expect("due");
        assert_eq!(due.deliveries.len(), 1, "{on_dead:?}: {due:?}");
    }
}

/// A settle that had to wait for a new policy goes by that one: what it writes as open is found, and what it writes as dead holds its
/// key or does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_that_waits_for_a_new_policy_goes_by_it() {
    let failure = || DeliveryFailure::new("refused", "never");
    let held = Subscription::new("s").on_dead(OnDead::Hold);
    for (before, after) in [
        (Subscription::new("s").order(Order::None), Subscription::new("s")),
        (held.clone(), Subscription::new("s").on_dead(OnDead::Skip)),
    ] {
        let log = Pg::default().pg_log(Clock::Database).await;
        log.store.subscribe(&before).await.expect("subscribe");
        let mut lease = claim(&log.store, "s").await;
        let fails = |event: &Recorded| match before.order {
            Order::None => DeliveryChange::retrying(event, 1, Duration::ZERO, failure()),
            _ => DeliveryChange::dead(event, 1, failure()),
        };
        commit_one(&log, "a").await;
        let batch = read(&log.store, &lease, 10).await;
        let mut settlement = Settlement::of(&batch);
        settlement.deliveries.push(fails(&batch.events[0].event));
        assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
        for _ in 0..2 {
            commit_one(&log, "b").await;
        }
        let batch = read(&log.store, &lease, 10).await;
        let mut settlement = Settlement::of(&batch);
        settlement.deliveries.push(fails(&batch.events[0].event));
        settlement.deliveries.push(DeliveryChange::waiting(&batch.events[1].event));
        // Somebody has the first delivery: the new policy has its lanes, and waits; so the settle waits for the new policy.
        let mut hand = log.pool.begin().await.expect("begin");
        let lock = "select from {schema}.delivery for update";
        sqlx::raw_sql(log.sql(lock)).execute(&mut *hand).await.expect("a lock");
        let store = log.store.clone();
        let changing = tokio::spawn(async move { store.subscribe(&after).await });
        waiting(&log, 1).await;
        let store = log.store.clone();
        let settling = tokio::spawn(async move {
            let status = store.settle(&mut lease, &settlement).await.expect("settle");
            (status, lease)
        });
        waiting(&log, 2).await;
        hand.rollback().await.expect("rollback");
        changing.await.expect("the change").expect("subscribe");
        let (status, lease) = settling.await.expect("the settle");
        assert_eq!(status, LeaseStatus::Held, "a new policy costs nobody its lease");
        log.store.release(lease).await.expect("release");
        let lease = claim(&log.store, "s").await;
        let due = log.store.due(&lease, 10).await.expect("due").deliveries;
        let due: Vec<_> = due.iter().map(|due| &*due.event.aggregate_id).collect();
        let expected: &[&str] = if before == held { &["b"] } else { &["a", "b", "b"] };
        assert_eq!(due, expected, "{before:?}");
    }
}

/// An operator and a new policy take the lanes first and the deliveries then: neither has what the other one waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_and_a_new_policy_do_not_wait_for_each_other() {
    for requeue in [true, false] {
        let log = Pg::default().pg_log(Clock::Database).await;
        subscribe(&log.store, "s").await;
        let mut lease = claim(&log.store, "s").await;
        commit_one(&log, "a").await;
        let batch = read(&log.store, &lease, 10).await;
        let mut settlement = Settlement::of(&batch);
        let failure = DeliveryFailure::new("refused", "never");
        settlement.deliveries.push(DeliveryChange::dead(&batch.events[0].event, 1, failure));
        assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
        let mut hand = log.pool.begin().await.expect("begin");
        let lock = "select from {schema}.lane for update";
        sqlx::raw_sql(log.sql(lock)).execute(&mut *hand).await.expect("a lock");
        let store = log.store.clone();
        let held = Subscription::new("s").on_dead(OnDead::Hold);
        let changing = tokio::spawn(async move { store.subscribe(&held).await });
        waiting(&log, 1).await;
        let store = log.store.clone();
        let (subscription, events) = ("s".to_owned(), Vec::new());
        let action = match requeue {
            true => ResolveDead::Requeue { subscription, events },
            false => ResolveDead::Discard { subscription, events },
        };
        let amending = tokio::spawn(async move { store.resolve_dead(&action).await });
        waiting(&log, 2).await;
        hand.rollback().await.expect("rollback");
        changing.await.expect("the change").expect("subscribe");
        assert_eq!(amending.await.expect("the operator").expect("resolve"), 1);
    }
}

/// Waits until so many sessions wait for somebody's lock on this log.
async fn waiting(log: &PgLog, sessions: i64) {
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'";
    until("sessions wait for a lock", || async {
        let row = sqlx::query(waiting).bind(&log.schema).fetch_one(&log.pool).await.expect("look");
        row.get::<i64, _>(0) == sessions
    })
    .await;
}

/// Follows a subscription and tells when it saw an event.
async fn follow(store: PgStore, subscription: &str) -> mpsc::UnboundedReceiver<Instant> {
    subscribe(&store, subscription).await;
    let mut lease = claim(&store, subscription).await;
    let (tell, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut bell = store.bell();
        while !tell.is_closed() {
            let batch = read(&store, &lease, 100).await;
            if batch.is_idle() {
                bell.wait(Duration::from_secs(60)).await.expect("wait");
            } else {
                bell.worked();
                let _ = tell.send(Instant::now());
                settle(&store, &mut lease, &batch).await;
            }
        }
    });
    seen
}

/// The sessions that listen to a log's bell.
async fn listeners(log: &PgLog) -> HashSet<i32> {
    let query = sqlx::query("select pid from pg_stat_activity where query ilike 'listen%' || $1 || '%'");
    let rows = query.bind(&log.schema).fetch_all(&log.pool).await.expect("look");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Until when somebody sleeps, if anybody does.
async fn armed(log: &PgLog) -> Option<i64> {
    let sql = "select case when last_value > extract(epoch from clock_timestamp()) * 1000000 then last_value end from {schema}.bell";
    sqlx::query(log.sql(sql)).fetch_one(&log.pool).await.expect("look").get(0)
}

/// Waits until everybody who follows the log is asleep: the bell is armed, and nobody touches it for a while.
async fn asleep(log: &PgLog) {
    let began = Instant::now();
    let mut last = (None, Instant::now());
    while last.0.is_none() || last.1.elapsed() < Duration::from_millis(400) {
        assert!(began.elapsed() < Duration::from_secs(60), "waited a minute until everybody sleeps");
        let now = armed(log).await;
        if now != last.0 {
            last = (now, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A relay that loses its LISTEN connection wakes up, and silences nobody else's bell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_loses_its_listener_silences_no_other() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let before = listeners(&log).await;
    let mut first = follow(log.outbox.store().await.expect("store"), "first").await;
    asleep(&log).await;
    let with_first = listeners(&log).await;
    assert!(with_first.len() > before.len(), "the first listens");
    let mut second = follow(log.outbox.store().await.expect("store"), "second").await;
    asleep(&log).await;
    for round in 0..3 {
        let of_second: Vec<i32> = listeners(&log).await.difference(&with_first).copied().collect();
        assert!(!of_second.is_empty(), "the second listens");
        let before = armed(&log).await;
        for pid in of_second {
            let terminate = sqlx::query("select pg_terminate_backend($1)").bind(pid);
            terminate.execute(&log.pool).await.expect("terminate");
        }
        // The second, which armed the bell last, has woken up and silenced it; the first has to learn of it.
        until("the bell is silenced", || async { armed(&log).await != before }).await;
        commit_one(&log, "a").await;
        let since = Instant::now();
        for seen in [&mut first, &mut second] {
            let at = tokio::time::timeout(Duration::from_secs(5), seen.recv())
                .await
                .expect("it is seen")
                .expect("running");
            let after = at.saturating_duration_since(since);
            assert!(after < Duration::from_secs(1), "round {round}: seen after {after:?}");
        }
        asleep(&log).await;
    }
}

/// A relay that finds no lane free says so once and not at every poll; one that wants nothing says nothing.
#[tokio::test]
async fn a_relay_that_stands_by_writes_next_to_nothing() {
    let clock = ManualClock::at(OffsetDateTime::now_utc());
    let log = Pg::default().pg_log(Clock::Manual(clock.clone())).await;
    for (name, lanes, writes) in [("one", 1, false), ("three", 3, true)] {
        log.store.subscribe(&Subscription::new(name).lanes(lanes)).await.expect("subscribe");
        while log.store.claim(name, "busy", LONG).await.expect("claim").is_some() {}
        let version = async || -> (String, bool) {
            let query =
                "select ctid::text, wanted_until is not null from {schema}.subscription where name = $1";
            let row = sqlx::query(log.sql(query)).bind(name).fetch_one(&log.pool).await.expect("a row");
            (row.get(0), row.get(1))
        };
        let before = version().await;
        assert!(log.store.claim(name, "standby", LONG).await.expect("claim").is_none());
        let first = version().await;
        assert_eq!((first.1, first.0 != before.0), (writes, writes), "{name}");
        for _ in 0..20 {
            for owner in ["standby", "another", "busy"] {
                assert!(log.store.claim(name, owner, LONG).await.expect("claim").is_none());
            }
        }
        assert_eq!(version().await, first, "{name}");
        clock.advance(Duration::from_secs(6));
        assert!(log.store.claim(name, "standby", LONG).await.expect("claim").is_none());
        assert_eq!(version().await != first, writes, "{name}: said again before it lapses");
    }
}
