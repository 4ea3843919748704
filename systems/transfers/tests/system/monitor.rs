//! What operations is told every minute.

use postrider_testkit::{until, until_true};
use transfers::acts::stage::Stage;

use crate::support::{pause, record, settled, stage};

/// Makes the first `count` events, which a relay has read, wait for their next attempt.
async fn retrying(stage: &Stage, count: u32) {
    stage
        .turn(&format!(
            "insert into postrider.delivery (subscription, id, event_id, key, lane_hash, lane, state, holds, attempts, next_at)
             select 'transfers-to-kafka', id, event_id, event_id::text, 0, 0, 'retrying', true, 1, now() + interval '1 day'
             from postrider.event order by id limit {count} on conflict do nothing"
        ))
        .await;
}

async fn fires(stage: &Stage) -> Option<i32> {
    stage.postrider(&["alerts", "check"]).await.0
}

/// The text of the message with this condition, if there was one.
fn told(stage: &Stage, condition: &str) -> Option<String> {
    let requests = stage.operations.requests();
    let found = requests.iter().find(|request| request.body["condition"] == condition)?;
    found.body["text"].as_str().map(str::to_owned)
}

/// T8: quiet at 10,000 undelivered and 100 retrying; at one more of each operations is told, with the count. The file says every minute.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_undelivered_and_a_hundred_retrying_are_quiet_and_one_more_is_told() {
    let stage = stage().await;
    let mut relay = stage.relay("relay-0", &[]);
    record(&stage, 101, 101).await;
    until("they are settled", async || settled(&stage).await == 101).await;
    pause(&stage).await;
    relay.signal("TERM");
    assert_eq!(relay.exit_code(), Some(0), "{}", relay.log());
    record(&stage, 9900, 300).await;
    retrying(&stage, 100).await;
    assert_eq!(fires(&stage).await, Some(0), "at the limits");
    retrying(&stage, 101).await;
    assert_eq!(fires(&stage).await, Some(1));
    let _relay = stage.relay("relay-1", &[]);
    for (condition, count) in [("undelivered > 10000", "10,001"), ("retrying > 100", "101")] {
        until_true("operations is told", || told(&stage, condition).is_some()).await;
        let text = told(&stage, condition).unwrap_or_default();
        assert!(text.contains(&format!("it is {count}")), "{text}");
    }
    let (_, settings) = stage.postrider(&["config", "check"]).await;
    assert!(settings.contains("alerts every 1m"), "{settings}");
}
