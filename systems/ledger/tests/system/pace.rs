//! How many events a relay takes at a time, and how often it looks.

use std::time::Duration;

use ledger::story::stage::{Stage, TopicOption};
use postrider_testkit::Logged;
use rdkafka::mocking::MockCluster;

use crate::support::{deposit, program, stage};

/// The sizes of the batches that were delivered by a relay, in order.
async fn batches(stage: &Stage, relay: &str) -> Vec<i64> {
    let sql = "select cast(count as signed) from postrider_settled_batch where count > 0 and settled_by = ? order by settled_at";
    sqlx::query_scalar(sql).bind(relay).fetch_all(stage.ledger.pool()).await.expect("batches")
}

/// L4: 250 events that wait are taken a hundred at a time, by the ledger's file; another number in it is kept as well.
#[tokio::test(flavor = "multi_thread")]
async fn events_are_taken_a_hundred_at_a_time_or_as_the_file_says() {
    let stage = stage(TopicOption::A).await;
    for transaction in 1..=250 {
        deposit(&stage.ledger, transaction, transaction % 7 + 1, 1).await.expect("posted");
    }
    let one_lane = ("lanes = 2", "lanes = 1");
    let relay = stage.relay_with("hundred", &[one_lane]);
    stage.all_processed().await;
    assert_eq!(batches(&stage, "hundred").await, [100, 100, 50]);
    drop(relay);
    for transaction in 251..=270 {
        deposit(&stage.ledger, transaction, transaction % 7 + 1, 1).await.expect("posted");
    }
    let _relay = stage.relay_with("seven", &[one_lane, ("batch = 100\n", "batch = 7\n")]);
    stage.all_processed().await;
    assert_eq!(batches(&stage, "seven").await, [7, 7, 6]);
}

/// L4: without its bell, as the document has it, a relay looks every two seconds. What is posted right after a look waits for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn without_its_bell_a_relay_looks_every_two_seconds() {
    const ROUNDS: usize = 7;
    let mock = MockCluster::new(1).expect("a mock");
    let stage = Stage::without_topics(program(), &mock.bootstrap_servers(), TopicOption::A).await;
    mock.create_topic(&stage.topics()[0], 6, 1).expect("a topic");
    let settings =
        stage.settings("silent", &[("lanes = 2", "lanes = 1"), ("[store]\n", "[store]\nbell = false\n")]);
    let mut relay = stage.postrider(&settings, &["relay"]);
    // A lease so long that nothing else has the relay look: it does so when it extends one.
    relay.args(["--set", "relay.lease=60s"]);
    let _relay = Logged::start(&mut relay, stage.folder.path(), "silent");
    deposit(&stage.ledger, 1, 1, 1).await.expect("posted");
    stage.all_processed().await;
    for transaction in 2..2 + ROUNDS as i64 {
        deposit(&stage.ledger, transaction, 1, 1).await.expect("posted");
        stage.all_processed().await;
    }
    let sql = "select settled_at from postrider_settled_batch where count > 0 order by settled_at";
    let settled: Vec<i64> = sqlx::query_scalar(sql).fetch_all(stage.ledger.pool()).await.expect("batches");
    assert_eq!(settled.len(), 1 + ROUNDS, "each of its own: {settled:?}");
    let mut pauses: Vec<_> =
        settled.windows(2).map(|pair| Duration::from_micros((pair[1] - pair[0]) as u64)).collect();
    pauses.sort_unstable();
    // The one in the middle: a machine may be slow once.
    let usual = pauses[ROUNDS / 2];
    assert!((Duration::from_millis(1800)..Duration::from_secs(5)).contains(&usual), "{pauses:?}");
}
