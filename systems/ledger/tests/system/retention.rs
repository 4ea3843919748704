//! What leaves the log, and what the archive keeps for five years; the clock is turned.

use ledger::adapters::inbox::KEPT_DAYS;
use ledger::adapters::outbox::event_id;
use ledger::story::stage::{SETTINGS, Stage, TopicOption};
use postrider::Uuid;
use postrider_testkit::{until, until_true};
use serde_json::Value;
use time::{Date, Month, OffsetDateTime, Time};

use crate::support::{deposit, ledger_at, now, stage};

const DAY: i64 = 86_400;

/// The middle of the month that was so many months ago.
fn months_ago(months: i32) -> OffsetDateTime {
    let now = now();
    let month = now.year() * 12 + i32::from(u8::from(now.month())) - 1 - months;
    let name = Month::try_from(u8::try_from(month % 12 + 1).expect("a month")).expect("a month");
    Date::from_calendar_date(month / 12, name, 15).expect("a day").with_time(Time::MIDNIGHT).assume_utc()
}

/// How many events `postrider events` finds.
fn found(stage: &Stage, id: Uuid) -> usize {
    let answer = stage.operate(&["events", "--id", &id.to_string(), "--json"]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    answer["events"].as_array().map_or(0, Vec::len)
}

async fn left(stage: &Stage) -> (i64, i64) {
    let archived = stage.number("select count(*) from postrider_archive").await;
    (stage.number("select count(*) from outbox_event").await, archived)
}

/// From here on it is noted which events one statement deletes: a statement has one `now`, however many rows it deletes.
async fn note_deletions(stage: &Stage) {
    let sql = "create table deletions (at datetime(6) not null);
               create trigger note_deletion after delete on postrider_event for each row insert into deletions values (now(6))";
    sqlx::raw_sql(sql).execute(stage.ledger.pool()).await.expect("a trigger");
}

/// How many events were deleted, and how many by one statement at most.
async fn deletions(stage: &Stage) -> (i64, i64) {
    let all = stage.number("select count(*) from deletions").await;
    let most = "select max(n) from (select count(*) as n from deletions group by at) as statements";
    (all, stage.number(most).await)
}

/// The inbox of consumers that have a database of their own is kept as long as the ledger's, and no longer; no relay is there to see to it.
#[tokio::test(flavor = "multi_thread")]
async fn the_consumers_own_inbox_forgets_after_thirty_days() {
    let stage = &stage(TopicOption::A).await;
    for days in [29, 31] {
        let sql = "insert into postrider_inbox (consumer, event_id, handled_at)
                   values ('some', unhex(md5(?)), timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - ? * 86400000000)";
        sqlx::query(sql).bind(days).bind(days).execute(&stage.reading).await.expect("a mark");
    }
    let marks = "select count(*) from postrider_inbox";
    assert_eq!(stage.read_number(marks).await, 2);
    let consumer = stage.consumer("audit", &[]).await;
    until("the older is forgotten", async || stage.read_number(marks).await == 1).await;
    let younger = "select count(*) from postrider_inbox
                   where handled_at > timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 30 * 86400000000";
    assert_eq!(stage.read_number(younger).await, 1);
    until_true("it says so", || consumer.log().contains("old marks of the inbox were forgotten marks=1"))
        .await;
    assert!(SETTINGS.contains(&format!("inbox = \"{KEPT_DAYS}d\"")), "as in the relay's file");
}

/// L7, L13, L14: delivered events leave the log after 7 days, in batches, for an archive by month that keeps five years and loses
/// whole months; what is not delivered stays, however old it is.
#[tokio::test(flavor = "multi_thread")]
async fn seven_days_in_the_log_and_five_years_in_the_archive() {
    const MONTHS: [i32; 6] = [64, 62, 58, 30, 12, 1];
    let stage = &stage(TopicOption::A).await;
    for (number, months) in MONTHS.into_iter().enumerate() {
        let then = ledger_at(&stage.url, months_ago(months)).await;
        deposit(&then, number as i64 + 1, 10, 5).await.expect("posted");
    }
    deposit(&stage.ledger, 100, 10, 5).await.expect("posted");
    // The first day's retention is at its start: it makes the months, and must not drop those that are still to be filled.
    let mut relay = stage.relay_with("relay", &[("archived = \"5y\"", "archived = \"20y\"")]);
    stage.all_processed().await;
    until_true("the months are made", || relay.log().contains("retention finished")).await;
    relay.signal("TERM");
    assert_eq!(relay.exit_code(), Some(0));
    let old = ledger_at(&stage.url, months_ago(2)).await;
    deposit(&old, 200, 10, 5).await.expect("posted");
    let settings = stage.settings("batches", &[("batch = 1000", "batch = 2")]);
    let sweep = || {
        let output = stage.postrider(&settings, &["archive", "--yes", "--json"]).output().expect("it runs");
        let answer: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        answer["taken"][0]["rows"].as_i64().expect("a count")
    };
    stage.turn_back(7 * DAY - 600).await;
    assert_eq!(sweep(), 0, "delivered less than 7 days ago");
    stage.turn_back(1200).await;
    note_deletions(stage).await;
    assert_eq!(sweep(), 7);
    assert_eq!(deletions(stage).await, (7, 2), "all of them, and two at once");
    assert_eq!(left(stage).await, (1, 7), "what is not delivered stays");
    assert_eq!(found(stage, event_id(200, 10)), 1);

    let partition = "select cast(count(distinct p.partition_name) as signed) from information_schema.partitions p
        where p.table_schema = database() and p.table_name = 'postrider_archive' and p.partition_name like 'm2%'";
    let months = stage.number(partition).await;
    assert!(months >= 65, "a partition for every month since the first event, not {months}: {}", relay.log());
    let ids: Vec<Uuid> = (1..=6).map(|transaction| event_id(transaction, 10)).collect();
    assert!(ids.iter().all(|id| found(stage, *id) == 1), "all are traceable in the archive");
    let before = stage.number(partition).await;
    stage.operate(&["prune", "--yes"]);
    let after: Vec<usize> = ids.iter().map(|id| found(stage, *id)).collect();
    assert_eq!(after, [0, 0, 1, 1, 1, 1], "five years are kept");
    let dropped = before - stage.number(partition).await;
    assert!((3..=4).contains(&dropped), "{dropped} whole months were dropped, with what was between them");
    assert_eq!(left(stage).await, (1, 5));
    let refused = stage.postrider(&settings, &["replay", "ledger-to-kafka", "--from", "2020-01-01", "--yes"]);
    assert!(!{ refused }.output().expect("it runs").status.success(), "what is archived can't be replayed");
}
