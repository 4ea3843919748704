//! How many events a relay takes at a time.

use ledger::story::stage::{Stage, TopicOption};

use crate::support::{deposit, stage};

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
