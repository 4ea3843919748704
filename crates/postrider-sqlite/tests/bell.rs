//! Waking up, and two processes on one file.

mod fixture;

use std::process::{Command, Stdio};
use std::time::Duration;

use fixture::{Database, Fixture, LEASE, event};
use postrider_core::{EventLog, Settlement, Subscription};
use postrider_sqlite::{Outbox, StoreOptions};
use tokio::time::{Instant, timeout};

const LONG: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(10);
const DATABASE: &str = "POSTRIDER_TEST_SQLITE_CHILD";
const EACH: usize = 200;

#[tokio::test]
async fn a_commit_between_a_read_and_the_wait_ends_the_wait() {
    let fixture = Fixture::new().await;
    let mut bell = fixture.store.bell();
    timeout(SOON, bell.wait(LONG)).await.expect("the first wait returns at once").expect("waited");
    let elsewhere = Outbox::connect(&fixture.database.pool().await).await.expect("connected");
    for _ in 0..3 {
        elsewhere.record_outside_transaction(&event("1")).await.expect("recorded");
        timeout(SOON, bell.wait(LONG)).await.expect("it was missed").expect("waited");
    }
    bell.wait(Duration::from_millis(1)).await.expect("nothing new: it ends by itself");
    let started = Instant::now();
    bell.wait(Duration::from_millis(5)).await.expect("waited");
    assert!(started.elapsed() >= Duration::from_millis(5), "a quiet database wakes nobody");
}

#[tokio::test]
async fn a_commit_during_the_wait_ends_it() {
    let fixture = Fixture::new().await;
    let mut bell = fixture.store.bell();
    bell.wait(LONG).await.expect("waited");
    let mut tx = fixture.outbox.begin().await.expect("begun");
    fixture.outbox.record(&mut tx, &event("1")).await.expect("recorded");
    assert!(timeout(Duration::from_millis(20), bell.wait(LONG)).await.is_err(), "not committed yet");
    let (waited, committed) = tokio::join!(timeout(SOON, bell.wait(LONG)), tx.commit());
    committed.expect("committed");
    waited.expect("it was missed").expect("waited");
}

#[tokio::test]
#[ignore = "no test of its own: what the other processes of the next one run"]
async fn child_writer() {
    let path = std::env::var(DATABASE).expect("the database of who started this");
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{path}")).await.expect("a pool");
    let outbox = Outbox::migrated(&pool).await.expect("migrated");
    for n in 0..EACH {
        let mut tx = outbox.begin().await.expect("begun");
        outbox.record(&mut tx, &event(&format!("{}", n % 7)).sequenced()).await.expect("recorded");
        tx.commit().await.expect("committed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_write_while_a_third_reads_and_nothing_is_missed() {
    let database = Database::new();
    let outbox = Outbox::migrated(&database.pool().await).await.expect("migrated");
    let store = outbox.store();
    store.subscribe(&Subscription::new("s")).await.expect("subscribed");
    let mut lease = store.claim("s", "a", LEASE).await.expect("claim").expect("free");
    let mut children: Vec<_> = (0..2)
        .map(|_| {
            Command::new(std::env::current_exe().expect("this test"))
                .args(["child_writer", "--exact", "--ignored"])
                .env(DATABASE, &database.path)
                .stdout(Stdio::null())
                .spawn()
                .expect("a child")
        })
        .collect();

    let (mut bell, mut seen) = (store.bell(), Vec::new());
    while seen.len() < 2 * EACH {
        let batch = store.read(&lease, &lease.position, 50).await.expect("read");
        if batch.is_idle() {
            timeout(LONG, bell.wait(SOON)).await.expect("the writers stopped").expect("waited");
        } else {
            bell.worked();
            seen.extend(batch.events.iter().map(|read| (read.event.key().into_owned(), read.event.sequence)));
            store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settled");
        }
    }
    for child in &mut children {
        assert!(child.wait().expect("ended").success());
    }
    let mut keys = std::collections::HashMap::new();
    for (key, sequence) in seen {
        let last = keys.entry(key).or_insert(0);
        *last += 1;
        assert_eq!(sequence, Some(*last), "events of a key come in their order, none twice, none missing");
    }
}

/// With a bell the first wait ends at once, and so does one after a commit.
#[tokio::test]
async fn without_the_bell_a_wait_lasts_as_long_as_it_may() {
    const INTERVAL: Duration = Duration::from_millis(300);
    let fixture = Fixture::new().await;
    let quiet = Outbox::builder().store_options(StoreOptions { bell: false });
    let quiet = quiet.connect(&fixture.pool).await.expect("connected");
    let mut bell = quiet.store().bell();
    for _ in 0..2 {
        quiet.record_outside_transaction(&event("1")).await.expect("recorded");
        bell.worked();
        let started = Instant::now();
        bell.wait(INTERVAL).await.expect("waited");
        assert!(started.elapsed() >= INTERVAL, "{:?}", started.elapsed());
    }
}
