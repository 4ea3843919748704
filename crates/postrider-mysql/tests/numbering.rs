//! What only this store has to keep: numbers are given to what is committed, once, in the order of every key, by several at a
//! time, and without waiting for anybody.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postrider_conformance::TestLog;
use postrider_core::{Clock, EventLog, NewEvent, Subscription, Uuid};
use postrider_mysql::{MySqlStore, hash_of};
use support::{My, MyLog, until_within};

const LEASE: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(30);

fn event(key: &str) -> NewEvent {
    NewEvent::of("s", "Tested", "A", key, &1).expect("JSON")
}

async fn committed(log: &MyLog, key: &str) -> Uuid {
    let mut writer = log.begin().await;
    let id = writer.record(&event(key)).await.expect("record");
    writer.commit().await.expect("commit");
    id
}

/// What a new subscription reads, from the beginning to the end.
async fn all(store: &MySqlStore, name: &str) -> Vec<Uuid> {
    store.subscribe(&Subscription::new(name)).await.expect("subscribe");
    let lease = store.claim(name, "relay", LEASE).await.expect("claim").expect("a lane");
    let (mut at, mut read) = (lease.position.clone(), Vec::new());
    loop {
        let batch = store.read(&lease, &at, 500).await.expect("read");
        if batch.is_idle() {
            return read;
        }
        read.extend(batch.events.iter().map(|read| read.event.event_id));
        at = batch.next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_first_event_of_a_key_is_numbered_before_its_second() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let mut at = lease.position.clone();
    for round in 0..10 {
        let mut late = log.begin().await;
        let first = late.record(&event("k")).await.expect("record");
        committed(&log, "other").await;
        at = store.read(&lease, &at, 100).await.expect("read").next;
        late.commit().await.expect("commit");
        let second = committed(&log, "k").await;
        let batch = store.read(&lease, &at, 100).await.expect("read");
        let read: Vec<Uuid> = batch.events.iter().map(|read| read.event.event_id).collect();
        assert_eq!(read, [first, second], "round {round}");
        at = batch.next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_have_no_gaps_and_no_event_has_two_with_four_who_give_them() {
    let log = My::default().my_log(Clock::Database).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut numberers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (store, stop) = (log.second().await, stop.clone());
        numberers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let mut bell = store.bell();
                bell.wait(Duration::from_millis(1)).await.expect("wait");
            }
        });
    }
    let mut events = 0;
    for n in 0..60 {
        let mut writers = Vec::new();
        for w in 0..5 {
            let mut writer = log.begin().await;
            for _ in 0..4 {
                writer.record(&event(&format!("k{w}"))).await.expect("record");
            }
            writers.push(writer);
        }
        for (w, writer) in writers.into_iter().enumerate().rev() {
            if (n + w) % 4 == 0 {
                writer.rollback().await;
            } else {
                writer.commit().await.expect("commit");
                events += 4;
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    numberers.join_all().await;
    assert_eq!(all(&log.patched(), "s").await.len(), events);
    let dense: (i64, i64, i64, i64) = sqlx::query_as(
        "select min(seq - length + 1), max(seq), cast(sum(length) as signed), \
                (select count(*) from postrider_event e where postrider_run_of(e.id) is not null) from postrider_run",
    )
    .fetch_one(&log.pool)
    .await
    .expect("numbers");
    assert_eq!(dense, (1, events as i64, events as i64, events as i64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gap_of_an_open_transaction_is_kept_and_that_of_a_rollback_forgotten() {
    let log = My::default().my_log(Clock::Database).await;
    let mut open = log.begin().await;
    let held_back = open.record(&event("open")).await.expect("record");
    committed(&log, "a").await;
    let mut gone = log.begin().await;
    gone.record(&event("gone")).await.expect("record");
    gone.rollback().await;
    committed(&log, "b").await;
    assert_eq!(all(&log.patched(), "first").await.len(), 2);
    // The id that was looked at when the outbox was opened, the open one, and the one that was rolled back.
    let before = log.count("postrider_hole").await;
    assert!(before >= 2, "{before} gaps");
    log.run("update postrider_hole set since = 0").await;
    // Another process looks for old gaps when it begins.
    all(&log.second().await, "second").await;
    until_within("only the open one is left", PATIENCE, async || log.count("postrider_hole").await == 1)
        .await;
    open.commit().await.expect("commit");
    assert!(all(&log.patched(), "third").await.contains(&held_back));
    // The first id was taken when the outbox was opened, and lay in the same gap.
    all(&log.second().await, "fourth").await;
    until_within("none is left", PATIENCE, async || log.count("postrider_hole").await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_in_a_gap_that_was_forgotten_is_found_when_everything_is_looked_at() {
    let log = My::default().my_log(Clock::Database).await;
    let mut open = log.begin().await;
    let held_back = open.record(&event("open")).await.expect("record");
    committed(&log, "a").await;
    assert_eq!(all(&log.patched(), "first").await.len(), 1);
    log.run("delete from postrider_hole").await;
    open.commit().await.expect("commit");
    // Another process looks everywhere when it begins, while its first reader goes on.
    let second = log.second().await;
    let name = AtomicUsize::new(0);
    until_within("it is found", PATIENCE, async || {
        let name = name.fetch_add(1, Ordering::Relaxed);
        all(&second, &format!("again{name}")).await.contains(&held_back)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrivals_are_cleared_away_once_they_have_their_numbers_and_no_others() {
    let log = My::default().my_log(Clock::Database).await;
    let mut open = log.begin().await;
    open.record(&event("open")).await.expect("record");
    for round in 0..5 {
        let mut writer = log.begin().await;
        let more: Vec<NewEvent> = (0..900).map(|n| event(&format!("k{n}"))).collect();
        writer.record_all(&more).await.expect("record");
        if round == 2 {
            writer.rollback().await;
        } else {
            writer.commit().await.expect("commit");
        }
    }
    // Another process does so when it begins.
    let second = log.second().await;
    assert_eq!(all(&second, "s").await.len(), 3_600);
    until_within("they are cleared away", PATIENCE, async || log.count("postrider_arrival").await == 0).await;
    open.commit().await.expect("commit");
    assert_eq!(all(&second, "again").await.len(), 3_601);
    assert_eq!(log.count("postrider_event").await, 3_601);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_publishers_nor_numbers_wait_for_an_open_snapshot_or_an_open_insert() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    let mut open = log.begin().await;
    open.record(&event("open")).await.expect("record");
    let mut snapshot = log.pool.begin().await.expect("begin");
    sqlx::query("select count(*) from postrider_arrival").fetch_one(&mut *snapshot).await.expect("a look");
    let begun = Instant::now();
    for n in 0..50 {
        committed(&log, "a").await;
        assert_eq!(all(&store, &format!("s{n}")).await.len(), n + 1);
    }
    // A wait would last for the ten seconds that a session has patience.
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    snapshot.rollback().await.expect("rollback");
    open.rollback().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_that_was_ignored_stops_nobody() {
    let log = My::default().my_log(Clock::Database).await;
    let id = committed(&log, "a").await;
    let again = format!(
        "insert ignore into postrider_event (event_id, event_type, aggregate_type, aggregate_id, payload) \
         values (x'{}', 'T', 'A', 'a', '1')",
        id.simple()
    );
    log.run(&again).await;
    let store = log.patched();
    assert_eq!(all(&store, "early").await, [id]);
    log.run(&again).await;
    let second = committed(&log, "b").await;
    for (n, lanes) in [1, 3].into_iter().enumerate() {
        let name = format!("late{n}");
        store.subscribe(&Subscription::new(&name).lanes(lanes)).await.expect("subscribe");
        let mut read = Vec::new();
        while let Some(lease) = store.claim(&name, "relay", LEASE).await.expect("claim") {
            let batch = store.read(&lease, &lease.position, 500).await.expect("read");
            read.extend(batch.events.iter().map(|read| read.event.event_id));
        }
        read.sort_unstable();
        let mut expected = [id, second];
        expected.sort_unstable();
        assert_eq!(read, expected, "{lanes} lanes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_and_the_program_agree_about_lanes() {
    let log = My::default().my_log(Clock::Database).await;
    for key in ["", "a", "Order:1", "Ordnung:ä", "주문:7", "😀", " padded ", &"x".repeat(700)] {
        let sql = "select cast(crc32(convert(? using utf8mb4)) as signed)";
        let hash: i64 = sqlx::query_scalar(sql).bind(key).fetch_one(&log.pool).await.expect("a hash");
        assert_eq!(hash, hash_of(key), "{key:?}");
    }
}
