//! Who works on the log waits for no publisher, and leaves nothing half done when the server ends it.

mod support;

use std::time::{Duration, Instant};

use postrider_conformance::TestLog;
use postrider_core::{
    Clock, DeliveryChange, DeliveryState, EventLog, NewEvent, OnDead, Operate, Recorded, ResolveDead,
    Settlement, Store, Subscription, Sweep, Uuid,
};
use postrider_mysql::{Outbox, StoreOptions};
use support::{My, MyLog, run, until_within};

const LEASE: Duration = Duration::from_secs(600);
/// Sessions have patience for ten seconds: who waits takes longer than this.
const AT_ONCE: Duration = Duration::from_secs(5);

async fn recorded(log: &MyLog, events: usize) {
    let events: Vec<NewEvent> =
        (0..events).map(|n| NewEvent::of("s", "Tested", "A", format!("k{n}"), &1).expect("JSON")).collect();
    let mut writer = log.begin().await;
    writer.record_all(&events).await.expect("record");
    writer.commit().await.expect("commit");
}

/// Reads and settles all there is.
async fn settled(store: &impl Store, name: &str) {
    store.subscribe(&Subscription::new(name)).await.expect("subscribe");
    let mut lease = store.claim(name, "relay", LEASE).await.expect("claim").expect("a lane");
    loop {
        let batch = store.read(&lease, &lease.position.clone(), 500).await.expect("read");
        if batch.is_idle() {
            break;
        }
        store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settle");
    }
    store.release(lease).await.expect("release");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_clearing_nor_looking_everywhere_waits_for_the_publisher_behind_the_last_number() {
    let log = My::default().my_log(Clock::Database).await;
    recorded(&log, 20).await;
    settled(&log.patched(), "first").await;
    until_within("what is numbered is cleared away", LEASE, async || {
        log.count("postrider_arrival").await == 0
    })
    .await;
    recorded(&log, 20).await;
    let mut open = log.begin().await;
    open.record(&NewEvent::of("s", "Tested", "A", "open", &1).expect("JSON")).await.expect("record");
    settled(&log.patched(), "second").await;
    assert_eq!(log.count("postrider_arrival").await, 20, "numbered, and not cleared away");

    let mut conn = log.pool.acquire().await.expect("a connection");
    let begun = Instant::now();
    run(&mut conn, "call postrider_number(10000, true)").await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    let begun = Instant::now();
    run(&mut conn, "call postrider_clear()").await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(log.count("postrider_arrival").await, 0);
    open.commit().await.expect("commit");
    settled(&log.patched(), "third").await;
    assert_eq!(log.count("postrider_arrival").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_does_not_wait_for_the_publisher_behind_what_it_takes() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    recorded(&log, 20).await;
    settled(&store, "s").await;
    let mut open = log.begin().await;
    open.record(&NewEvent::of("s", "Tested", "A", "open", &1).expect("JSON")).await.expect("record");
    let begun = Instant::now();
    let swept = store.sweep(&Sweep::Prune { older_than: Duration::ZERO, limit: 1_000 }).await.expect("sweep");
    assert_eq!(swept.taken, 20);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(log.count("postrider_run").await, 0);
    open.commit().await.expect("commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_that_the_server_ends_leaves_nothing_half_done() {
    let log = My::default().my_log(Clock::Database).await;
    let options =
        StoreOptions { connections: 2, patience: Duration::from_secs(60), ..StoreOptions::default() };
    let outbox = Outbox::builder().store_options(options).connect(&log.pool).await.expect("connect");
    let store = outbox.store();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let retrying = |event: &Recorded| DeliveryChange {
        id: event.id,
        event_id: event.event_id,
        state: DeliveryState::Retrying,
        attempts: 1,
        retry_in: Duration::ZERO,
        failure: None,
        past: None,
    };
    recorded(&log, 1).await;
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    let first = retrying(&batch.events[0].event);
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(first.clone());
    store.settle(&mut lease, &settlement).await.expect("settle");
    let stood = lease.position.clone();

    recorded(&log, 1).await;
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.extend([first, retrying(&batch.events[0].event)]);
    let mut holder = log.pool.begin().await.expect("begin");
    run(&mut holder, "select id from postrider_delivery for update").await;
    let (killed, outcome) = tokio::join!(end_waiting_settle(&log), store.settle(&mut lease, &settlement));
    outcome.expect_err("it was ended");
    until_within("its transaction is over", AT_ONCE, async || {
        let open = "select count(*) from information_schema.innodb_trx where trx_mysql_thread_id = ?";
        let open = sqlx::query_scalar::<_, i64>(open).bind(killed);
        open.fetch_one(&log.pool).await.expect("transactions") == 0
    })
    .await;
    holder.rollback().await.expect("rollback");
    // Whoever gets that connection begins a transaction.
    for _ in 0..4 {
        let nothing = Sweep::Prune { older_than: LEASE, limit: 10 };
        store.sweep(&nothing).await.expect("sweep");
    }
    let position: i64 = sqlx::query_scalar("select position from postrider_lane")
        .fetch_one(&log.pool)
        .await
        .expect("a position");
    assert_eq!(position.to_string(), stood.as_str(), "the lane stands where it stood");
    store.settle(&mut lease, &settlement).await.expect("it is tried again");
    assert_eq!(log.count("postrider_delivery").await, 2);
}

/// Ends the statement of a settle as soon as it waits. Returns its session.
async fn end_waiting_settle(log: &MyLog) -> i64 {
    let waiting = "select cast(id as signed) from information_schema.processlist \
                   where db = database() and info like '%insert into postrider_delivery%' and info not like '%processlist%'";
    let mut session = None;
    until_within("the settle waits", LEASE, async || {
        session = sqlx::query_scalar::<_, i64>(waiting).fetch_optional(&log.pool).await.expect("sessions");
        session.is_some()
    })
    .await;
    let session = session.expect("a session");
    log.run(&format!("kill query {session}")).await;
    session
}

/// An operator who names many dead deliveries has all lanes meanwhile: each is looked for once, and not among all the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requeueing_many_named_deliveries_costs_what_is_named() {
    const DEAD: usize = 4000;
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s").on_dead(OnDead::Hold)).await.expect("subscribe");
    recorded(&log, DEAD + 1).await;
    let named = log.event_ids().await;
    // One by one: MariaDB 11.4.5 refuses the second row of an `insert … select` into a table with triggers.
    let dead = named.iter().map(|event_id| {
        format!(
            "insert into postrider_delivery (subscription, id, event_id, ordering_key, lane_hash, state, holds, attempts) \
             select 's', e.id, e.event_id, concat('A:', e.aggregate_id), crc32(concat('A:', e.aggregate_id)), 'dead', true, 1 \
             from postrider_event e where e.event_id = x'{}';",
            event_id.simple()
        )
    });
    log.run(&dead.collect::<String>()).await;
    let requeue =
        |events: &[Uuid]| ResolveDead::Requeue { subscription: "s".into(), events: events.to_vec() };
    let began = Instant::now();
    assert_eq!(store.resolve_dead(&requeue(&named[..DEAD])).await.expect("resolve"), DEAD as u64);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(
        store.resolve_dead(&requeue(&named[..DEAD])).await.expect("resolve"),
        0,
        "they are dead no longer"
    );
    let lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    assert_eq!(store.due(&lease, u32::MAX).await.expect("due").deliveries.len(), DEAD);
    let discard = ResolveDead::Discard { subscription: "s".into(), events: named[DEAD..].to_vec() };
    assert_eq!(store.resolve_dead(&discard).await.expect("resolve"), 1);
}

/// A server whose cache of tables is too small asks for statements to be prepared again (error 1615): publishers don't notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_go_on_while_tables_leave_the_cache() {
    let log = My::default().my_log(Clock::Database).await;
    let pool = log.pool.clone();
    let flushing = tokio::spawn(async move {
        let mut conn = pool.acquire().await.expect("a connection");
        loop {
            run(&mut conn, "flush tables postrider_event, postrider_arrival").await;
        }
    });
    for _ in 0..100 {
        recorded(&log, 1).await;
        recorded(&log, 3).await;
    }
    flushing.abort();
    assert_eq!(log.count("postrider_event").await, 400);
}

/// With a bell the first wait ends at once, and so does one after a commit.
#[tokio::test]
async fn without_the_bell_a_wait_lasts_as_long_as_it_may() {
    const INTERVAL: Duration = Duration::from_millis(300);
    let log = My::default().my_log(Clock::Database).await;
    let options = StoreOptions { bell: false, ..StoreOptions::default() };
    let quiet = Outbox::builder().store_options(options).connect(&log.pool).await.expect("connect");
    let mut bell = quiet.store().bell();
    for _ in 0..2 {
        recorded(&log, 1).await;
        bell.worked();
        let begun = Instant::now();
        bell.wait(INTERVAL).await.expect("wait");
        assert!(begun.elapsed() >= INTERVAL, "{:?}", begun.elapsed());
    }
}
