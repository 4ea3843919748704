//! An event that the broker refuses, by the settings of the file.

use postrider_testkit::until;
use transfers::acts::refused::{
    SMALL_SEGMENTS, USUAL_SEGMENTS, pauses_until_dead, row, set_segments, told_of_death, transfer_too_large,
    watch,
};

use crate::support::stage;

/// T2, T4: it fails, waits exactly 2, 4, 8 and 16 s, is dead at the fifth failure, operations is told with its id, and what was sent
/// with it is published. No other step is possible, and an operator requeues it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_event_waits_2_4_8_and_16_seconds_and_is_dead_at_the_fifth_failure() {
    let stage = stage().await;
    let (_service, client) = stage.api().await;
    client.open_accounts(10).await;
    set_segments(&stage, SMALL_SEGMENTS).await;
    // One batch: the relay starts when all of it is there.
    assert_eq!(client.transfers(20, 8).await, 20);
    let event = transfer_too_large(&client, "account-8", "account-9").await;
    let behind = client.transfer("account-8", "account-9", 1).await.and_then(|answer| answer.event());
    let behind = behind.expect("a second transfer of the same sender");
    assert_eq!(stage.in_status("PENDING").await, 22);
    watch(&stage).await;
    let relay = stage.relay("relay-0", &[]);
    until("it has failed", async || row(&stage, event).await.0 == "FAILED").await;
    assert_eq!(row(&stage, behind).await.0, "FAILED", "what its sender did later waits behind it");

    let pauses = pauses_until_dead(&stage, event).await;
    assert_eq!(pauses, [2_000_000, 4_000_000, 8_000_000, 16_000_000]);
    assert_eq!(row(&stage, event).await, ("DEAD_LETTER".to_owned(), 5));
    let error = "select last_error from transfer_events where event_id = $1";
    let error: String = sqlx::query_scalar(error).bind(event).fetch_one(&stage.db).await.expect("an error");
    assert!(error.contains("segment size"), "{error}");
    let told = told_of_death(&stage, event).await;
    assert!(
        told.contains(&event.to_string()) && told.contains("5 attempts") && !told.contains("xxx"),
        "{told}"
    );

    until("the others are published", async || stage.in_status("PUBLISHED").await == 21).await;
    assert_eq!(row(&stage, behind).await.0, "PUBLISHED", "its key goes on without the dead one");
    for state in ["delivered", "running", "waiting"] {
        let sql = format!("update postrider.delivery set state = '{state}' where event_id = '{event}'");
        let step = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&stage.db).await;
        let refusal = step.expect_err("no such step").to_string();
        assert!(refusal.contains(&format!("a delivery that is dead can't become {state}")), "{refusal}");
    }

    // Another relay finds it with its five failures, and leaves it to people.
    drop(relay);
    let _heir = stage.relay("relay-1", &[]);
    assert_eq!(client.transfers(5, 8).await, 5);
    until("the heir works", async || stage.in_status("PUBLISHED").await == 26).await;
    assert_eq!(row(&stage, event).await, ("DEAD_LETTER".to_owned(), 5));
    set_segments(&stage, USUAL_SEGMENTS).await;
    let id = event.to_string();
    let (code, said) = stage.postrider(&["dead", "requeue", &id, "--yes", "--why", "larger segments"]).await;
    assert_eq!(code, Some(0), "{said}");
    until("it is published", async || row(&stage, event).await.0 == "PUBLISHED").await;
    let (code, settings) = stage.postrider(&["config", "check"]).await;
    let capped = "retries after 2s, then 2 times as long each time, up to 600s, 5 attempts";
    assert!(code == Some(0) && settings.contains(capped), "T4: ten minutes at most: {settings}");
}
