//! Fraud detection: it pulls, 500 at a time, and analyses each event once.

use std::collections::{BTreeMap, HashMap};

use postrider_testkit::{Logged, http, until, until_true};
use serde_json::Value;
use sqlx::postgres::PgPoolOptions;
use transfers::acts::stage::Stage;
use transfers::adapters::risk_logs::PgRiskLogs;
use transfers::application::fraud::FraudService;
use transfers::application::ports::{Fault, RiskLogs};
use transfers::domain::risk::Observed;
use transfers::domain::{RiskLog, TransferCompleteEvent};
use transfers::processes::fraud::GROUP;
use uuid::Uuid;

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

/// T9: fraud detection is killed when the risk logs of its batches are written and nothing is committed to Kafka. Whoever comes after it
/// gets all of them again, and each has one risk log.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_insert_and_commit_leaves_one_risk_log_each() {
    let stage = stage().await;
    let _relay = stage.relay("relay-0", &[]);
    record(&stage, 100, 1).await;
    until("all are settled", async || settled(&stage).await == 100).await;
    let mut killed = stage.fraud_with("killed", GROUP, &[("TRANSFERS_HALT_AT", "Logged")]);
    until_true("it stands between the two", || killed.out().contains("halted at Logged")).await;
    killed.process.kill();
    assert_eq!(stage.analysed().await.1, 100, "the logs are written");
    let heir = stage.fraud("heir");
    until("all came again", async || sum(&lines(&heir, "analysed"), "known") == 100).await;
    assert_eq!(sum(&lines(&heir, "analysed"), "new"), 0);
    assert_eq!(stage.analysed().await.1, 100, "one for each");
}

/// The figures of fraud detection that the dashboard shows are there once it has worked.
#[tokio::test(flavor = "multi_thread")]
async fn fraud_detection_serves_its_figures() {
    let stage = stage().await;
    let _relay = stage.relay("relay-0", &[]);
    let fraud = stage.fraud_with("fraud", GROUP, &[("METRICS", "127.0.0.1:0")]);
    record(&stage, 10, 10).await;
    until("all are analysed", async || stage.analysed().await.1 == 10).await;
    let out = fraud.out();
    let address = out.lines().find_map(|line| line.strip_prefix("metrics on ")).expect("an address");
    until_true("its figures are there", || {
        let text = http::get(address, "/metrics").unwrap_or_default();
        let value = |name: &str| -> Option<f64> {
            let of_group = |line: &&str| line.starts_with(name) && line.contains("group=\"fraud-detection\"");
            let lines = text.lines().filter(of_group);
            lines.map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
        };
        value("postrider_consumer_handled_total") == Some(10.0)
            && text.contains("postrider_consumer_lag{")
            && text.contains("postrider_handler_seconds_bucket{")
    })
    .await;
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

/// A transfer of 1 won at a time in milliseconds, as fraud detection gets it.
fn observed(sender: &str, at: i64) -> Observed {
    let transfer = TransferCompleteEvent {
        transaction_id: Uuid::now_v7(),
        from_account: sender.to_owned(),
        to_account: "receiver".to_owned(),
        amount: 1,
        memo: String::new(),
        completed_at: at,
    };
    Observed { event_id: Uuid::now_v7(), transfer, headers: BTreeMap::new() }
}

/// The scores of a sender's transfers, in the order of their times.
async fn scores(stage: &Stage, sender: &str) -> Vec<i32> {
    let sql = "select score from fds.risk_log where from_account = $1 order by completed_at, event_id";
    sqlx::query_scalar(sql).bind(sender).fetch_all(&stage.db).await.expect("scores")
}

/// T9: a backlog comes in one batch. What counts is how many transfers the sender made in the minute before each, and not how many came
/// together; what is in the logs counts as what is in the batch.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_scored_by_the_minute_before_each_transfer() {
    let stage = stage().await;
    let service = FraudService::new(PgRiskLogs::new(stage.db.clone()));
    // Twelve within four minutes: three in the minute before each.
    let slow = (0..12).map(|number| observed("slow", number * 20_000));
    // Six within a minute, and one a minute after the first of them.
    let fast = [0, 1, 2, 3, 4, 59_000, 60_001].map(|at| observed("fast", at));
    service.analyse(slow.chain(fast).collect()).await.expect("analysed");
    assert_eq!(scores(&stage, "slow").await, [0; 12], "a backlog is not fast");
    assert_eq!(scores(&stage, "fast").await, [0, 0, 0, 0, 0, 40, 40]);

    // The same in several batches: the logs remember. What was an hour ago does not count, nor does what came later.
    for batch in [vec![0, 1, 2], vec![3, 4], vec![59_000, 3_600_000], vec![3_600_001]] {
        let batch = batch.into_iter().map(|at| observed("split", at)).collect();
        service.analyse(batch).await.expect("analysed");
    }
    service.analyse(vec![observed("split", -1)]).await.expect("analysed");
    assert_eq!(scores(&stage, "split").await, [0, 0, 0, 0, 0, 0, 40, 0, 0]);
}

/// T9: an event that comes twice in one batch is new once, and known the second time; it does not make its sender fast.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_comes_twice_in_a_batch_is_analysed_once() {
    let stage = stage().await;
    let service = FraudService::new(PgRiskLogs::new(stage.db.clone()));
    let (first, second) = (observed("sender", 0), observed("sender", 1));
    let mut batch = vec![first.clone(); 6];
    batch.push(second.clone());
    let analysed = service.analyse(batch).await.expect("analysed");
    assert_eq!((analysed.new, analysed.known), (2, vec![first.event_id; 5]));
    assert_eq!(scores(&stage, "sender").await, [0, 0]);
    let again = service.analyse(vec![second.clone(), second.clone()]).await.expect("analysed");
    assert_eq!((again.new, again.known), (0, vec![second.event_id; 2]));
}

/// Risk logs that another process writes to as well: what is to be looked up here, it has analysed right before or right after.
struct Shared {
    logs: PgRiskLogs,
    batch: Vec<Observed>,
    is_faster_after_the_lookup: bool,
}

impl Shared {
    async fn analysed_by_the_other(&self) -> Result<(), Fault> {
        FraudService::new(self.logs.clone()).analyse(self.batch.clone()).await.map(drop)
    }
}

impl RiskLogs for Shared {
    async fn known(&self, events: &[Uuid]) -> Result<Vec<Uuid>, Fault> {
        if !self.is_faster_after_the_lookup {
            self.analysed_by_the_other().await?;
        }
        let known = self.logs.known(events).await?;
        if self.is_faster_after_the_lookup {
            self.analysed_by_the_other().await?;
        }
        Ok(known)
    }

    async fn recent(&self, events: &[Observed]) -> Result<HashMap<Uuid, u32>, Fault> {
        assert!(self.is_faster_after_the_lookup, "nobody looks again at what is known");
        self.logs.recent(events).await
    }

    async fn keep(&self, logs: &[RiskLog]) -> Result<Vec<Uuid>, Fault> {
        self.logs.keep(logs).await
    }
}

/// T9: two processes have the same partition for a moment. What the other one analysed before is known and not looked at again; what it
/// analysed in between is kept as the other one wrote it.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_has_analysed_is_known() {
    let stage = stage().await;
    for (sender, is_faster_after_the_lookup) in [("before", false), ("between", true)] {
        let batch: Vec<Observed> = (0..3).map(|at| observed(sender, at)).collect();
        let ids: Vec<Uuid> = batch.iter().map(|event| event.event_id).collect();
        let logs = PgRiskLogs::new(stage.db.clone());
        let service = FraudService::new(Shared { logs, batch: batch.clone(), is_faster_after_the_lookup });
        let analysed = service.analyse(batch).await.expect("analysed");
        assert_eq!((analysed.new, analysed.known), (0, ids), "{sender}");
        assert_eq!(scores(&stage, sender).await, [0, 0, 0], "one log each");
    }
}

/// T9, T10: what is known is found by its key from the first batch on, and not by reading all risk logs until somebody has analysed the table.
#[tokio::test(flavor = "multi_thread")]
async fn a_growing_table_of_risk_logs_is_not_read_for_every_batch() {
    const LOGS: i32 = 5_000;
    let stage = stage().await;
    // Nobody else makes PostgreSQL plan anew.
    stage.turn("alter table fds.risk_log set (autovacuum_enabled = off)").await;
    let one = PgPoolOptions::new().max_connections(1).connect(&stage.url).await.expect("a connection");
    let logs = PgRiskLogs::new(one.clone());
    // The plan is made while there is hardly anything: the first transfer of a service.
    FraudService::new(logs.clone()).analyse(vec![observed("first", 0)]).await.expect("analysed");
    let batch: Vec<Uuid> = (0..100).map(|_| Uuid::now_v7()).collect();
    for _ in 0..10 {
        assert!(logs.known(&batch).await.expect("an answer").is_empty());
    }
    let fill =
        "insert into fds.risk_log select gen_random_uuid(), gen_random_uuid(), 'a', 'b', 1, 0, false, '{}', 0
        from generate_series(1, $1)";
    sqlx::query(fill).bind(LOGS).execute(&stage.db).await.expect("filled");
    // The counters of a transaction are seen in it alone.
    sqlx::raw_sql("begin").execute(&one).await.expect("begun");
    logs.known(&batch).await.expect("an answer");
    let read = "select coalesce(seq_tup_read, 0) from pg_stat_xact_user_tables where relid = 'fds.risk_log'::regclass";
    let read: i64 = sqlx::query_scalar(read).fetch_one(&one).await.expect("a count");
    sqlx::raw_sql("rollback").execute(&one).await.expect("ended");
    assert_eq!(read, 0, "rows were read one after the other");
}
