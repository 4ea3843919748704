//! Fraud detection: it pulls, 500 at a time, and analyses each event once.

use postrider_testkit::{Logged, until};
use serde_json::Value;

use crate::support::{record, settled, stage};

/// The log lines with this message.
fn lines(process: &Logged, message: &str) -> Vec<Value> {
    let log = process.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message).collect()
}

fn sum(lines: &[Value], field: &str) -> u64 {
    lines.iter().filter_map(|line| line[field].as_u64()).sum()
}

/// T9, T11: 2,000 events of one partition come 500 at a time. A second reading, as after a kill before the commit of the offsets, finds
/// each risk log by its event's id, says so in a line, and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_at_a_time_and_each_once() {
    let stage = stage().await;
    let relay = stage.relay("relay-0", &[]);
    record(&stage, 2000, 1).await;
    until("all are settled", async || settled(&stage).await == 2000).await;
    drop(relay);
    let first = stage.fraud("first");
    until("all are analysed", async || stage.analysed().await.1 == 2000).await;
    until("it says so", async || sum(&lines(&first, "analysed"), "new") == 2000).await;
    let calls = lines(&first, "analysed");
    let sizes: Vec<u64> = calls.iter().filter_map(|line| line["events"].as_u64()).collect();
    assert_eq!(sizes.iter().max(), Some(&500), "{sizes:?}");
    let kept = "select md5(string_agg(r::text, ',' order by event_id)) from fds.risk_log r";
    let before: String = sqlx::query_scalar(kept).fetch_one(&stage.db).await.expect("risk logs");

    let again = stage.fraud_of("again", "read-again");
    until("all are known", async || sum(&lines(&again, "analysed"), "known") == 2000).await;
    assert_eq!(sum(&lines(&again, "analysed"), "new"), 0);
    let known = lines(&again, "already processed");
    let ids: std::collections::HashSet<&str> =
        known.iter().filter_map(|line| line["event_id"].as_str()).collect();
    assert_eq!((known.len(), ids.len()), (2000, 2000), "one line for each");
    let after: String = sqlx::query_scalar(kept).fetch_one(&stage.db).await.expect("risk logs");
    assert_eq!(before, after);
}

/// T9: relays wait for the broker alone. Fraud detection that stands still delays nothing, and catches up by itself.
#[tokio::test(flavor = "multi_thread")]
async fn fraud_detection_that_stands_still_slows_no_relay_down() {
    let stage = stage().await;
    let _relay = stage.relay("relay-0", &[]);
    let fraud = stage.fraud("fraud");
    record(&stage, 10, 10).await;
    until("it works", async || stage.analysed().await.1 == 10).await;
    fraud.signal("STOP");
    record(&stage, 1000, 50).await;
    until("all are published", async || settled(&stage).await == 1010).await;
    assert_eq!(stage.analysed().await.1, 10, "nobody pushed anything");
    fraud.signal("CONT");
    until("it catches up", async || stage.analysed().await.1 == 1010).await;
}
