//! The cleanup at 02:00 in Seoul.

use postrider_testkit::until;
use transfers::acts::stage::Stage;
use transfers::acts::tale::shift_days;

use crate::support::{pause, record, settled, stage};

/// A time of the day in Seoul, so many minutes from now.
async fn in_seoul(stage: &Stage, minutes: i32) -> String {
    let sql = "select 'retention.at=' || to_char(clock_timestamp() at time zone 'Asia/Seoul' + $1 * interval '1 minute', 'HH24:MI')";
    sqlx::query_scalar(sql).bind(minutes).fetch_one(&stage.db).await.expect("a time")
}

/// Notes that the last night was the one before the day that a minute ago was in, in Seoul. In UTC no later night has come since.
async fn last_night_was_yesterday(stage: &Stage) {
    let sql = "update postrider.duty set note = to_char((clock_timestamp() at time zone 'Asia/Seoul' - interval '1 minute')::date - 1,
        'YYYY-MM-DD') where name = 'retention'";
    let noted = sqlx::query(sql).execute(&stage.db).await.expect("noted");
    assert_eq!(noted.rows_affected(), 1, "the first relay did the first night");
}

async fn left(stage: &Stage) -> i64 {
    stage.number("select count(*) from transfer_events").await
}

/// T7, X2: once a day, at its time in Seoul, what was published more than 7 days ago is deleted; what was published 6 days ago and
/// what is dead, failed or pending stays, however old it is.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_published_a_week_ago_is_deleted_at_night_in_seoul() {
    let stage = stage().await;
    let mut relay = stage.relay("relay-0", &[]);
    record(&stage, 7, 3).await;
    until("seven are settled", async || settled(&stage).await == 7).await;
    shift_days(&stage, 2).await;
    record(&stage, 4, 3).await;
    until("four more are settled", async || settled(&stage).await == 11).await;
    relay.signal("TERM");
    assert_eq!(relay.exit_code(), Some(0), "{}", relay.log());
    shift_days(&stage, 6).await;
    pause(&stage).await;
    record(&stage, 3, 3).await;
    // Of the seven, one is dead and one waits for its next attempt.
    stage
        .turn(
            "insert into postrider.delivery (subscription, id, event_id, key, lane_hash, lane, state, holds, attempts, next_at, last_attempt_at)
             select 'transfers-to-kafka', id, event_id, ordering_key, 0, 0, case when n = 1 then 'dead' else 'retrying' end, n = 2, 5,
                    case when n = 2 then now() + interval '1 day' end, now() - interval '8 days'
             from (select e.*, row_number() over (order by id) as n from postrider.event e) as numbered where n <= 2",
        )
        .await;
    let states = "select string_agg(status || ' ' || count, ', ' order by status)
        from (select status, count(*) from transfer_events group by status) as counted";
    let told: String = sqlx::query_scalar(states).fetch_one(&stage.db).await.expect("states");
    assert_eq!(told, "DEAD_LETTER 1, FAILED 1, PENDING 3, PUBLISHED 9");

    // Ten minutes before its time nothing is done.
    last_night_was_yesterday(&stage).await;
    let looked = "select (extract(epoch from lease_until) * 1000000)::bigint from postrider.duty where name = 'retention'";
    let before = stage.number(looked).await;
    let early = stage.relay("relay-1", &[&in_seoul(&stage, 10).await]);
    until("it has looked", async || stage.number(looked).await > before).await;
    let free = "select count(*) from postrider.duty where name = 'retention' and owner is null";
    until("it is done with looking", async || stage.number(free).await == 1).await;
    assert_eq!(left(&stage).await, 14);
    drop(early);

    let night = stage.relay("relay-2", &[&in_seoul(&stage, -1).await]);
    until("the night is over", async || night.log().contains("retention finished")).await;
    let told: String = sqlx::query_scalar(states).fetch_one(&stage.db).await.expect("states");
    assert_eq!(told, "DEAD_LETTER 1, FAILED 1, PENDING 3, PUBLISHED 4", "{}", night.log());
    assert_eq!(stage.number("select count(*) from postrider.archive").await, 0, "deleted, not archived");
    let (_, settings) = stage.postrider(&["config", "check"]).await;
    let line = "daily at 02:00 Asia/Seoul: settled events after 7d deleted";
    assert!(settings.contains(line), "{settings}");
}
