//! What goes wrong: the broker, the relays, an answer, an event.

use postrider::mysql::Outbox;
use serde_json::{Value, json};
use story::Story;
use story::testkit::{until, until_true};
use time::{Duration, OffsetDateTime};
use tokio::task::block_in_place;

use super::acts;
use super::scene::{LARGEST, Scene};
use super::topic::records;
use crate::adapters::outbox::event_id;
use crate::adapters::persistence::MySqlLedger;
use crate::adapters::schema;
use crate::application::service::DepositService;
use crate::application::service::deposit::DepositCommand;

/// How many deposits of six minutes ago wait for Kafka: as many as wake somebody.
const LATE: i64 = 100;
const FAILED: &str = "select count(*) from outbox_event where status = 'FAILED'";
const PENDING: &str = "select count(*) from outbox_event where status = 'PENDING'";

/// The broker is killed while writers go on, and both relays die; then all is caught up with.
pub async fn kafka_is_killed(story: &mut Story, scene: &mut Scene) {
    until("all is delivered", async || scene.stage.number(PENDING).await == 0).await;
    scene.broker.kill().expect("killed");
    story.tell("Kafka was killed");
    let before = scene.stage.number("select count(*) from outbox_event").await;
    acts::write(scene, 8).await;
    deposits_of_six_minutes_ago(scene).await;
    let stage = &scene.stage;
    let waiting = stage.number(PENDING).await;
    let recorded = stage.number("select count(*) from outbox_event").await - before;
    story.equal("the callers noticed nothing, and their events wait", waiting, recorded);
    story.eventually("PagerDuty is told", async || told(scene, "trigger")).await;
    story.tell(format!(
        "PagerDuty rang: {LATE} events have been waiting for over 5 minutes, by a turned clock"
    ));
    let tried = "select count(*) from outbox_event where status <> 'PROCESSED' and retry_count > 0";
    story.equal("no event lost a try by the outage", stage.number(tried).await, 0);
    scene.relays[0].process.kill();
    story.tell("relay-1 was killed");
    block_in_place(|| scene.broker.start()).expect("started");
    story.tell("Kafka is back");
    let done = "select count(*) from outbox_event where status = 'PROCESSED'";
    let stage = &scene.stage;
    until("relay-2 catches up", async || stage.number(done).await > before).await;
    scene.relays[1].process.kill();
    let left = stage.number("select count(*) from outbox_event where status = 'PENDING'").await;
    story.tell(format!("relay-2 was killed while it caught up; {left} events were still waiting"));
    scene.relays = vec![stage.relay("relay-3"), stage.relay("relay-4")];
    story.comes_to("relay-3 and relay-4 deliver the rest", async || stage.number(PENDING).await, 0).await;
    read_model_has_all(story, scene, "and the read model has it").await;
    story.eventually("PagerDuty is told that it is over", async || told(scene, "resolve")).await;
}

/// A promise: the read model comes to be what the ledger has.
async fn read_model_has_all(story: &mut Story, scene: &Scene, promise: &str) {
    let balances = scene.stage.balances().await;
    story.comes_to(promise, async || scene.stage.read_model().await, balances).await;
}

fn told(scene: &Scene, action: &str) -> bool {
    scene.stage.pagerduty.requests().iter().any(|request| request.body["event_action"] == action)
}

async fn deposits_of_six_minutes_ago(scene: &Scene) {
    let then = OffsetDateTime::now_utc() - Duration::minutes(6);
    let pool = schema::connect_at(&scene.stage.url, then).await.expect("a connection");
    let outbox = Outbox::connect(&pool).await.expect("an outbox");
    let ledger = MySqlLedger::new(pool, outbox);
    for number in 0..LATE {
        let account = number % acts::ACCOUNTS + 1;
        let command = DepositCommand { transaction: scene.bank.id(), account, amount: 7, memo: None };
        DepositService(&ledger).deposit(&command, then).await.expect("posted");
    }
}

/// The broker takes a record and its answer is lost: the record is there twice, its effect once.
pub async fn an_answer_is_lost(story: &mut Story, scene: &Scene) {
    let stage = &scene.stage;
    scene.proxy.lose_answers(true);
    let id = event_id(scene.bank.deposit(5, 11).await, 5).to_string();
    let copies = || {
        let records = block_in_place(|| records(&scene.broker.bootstrap(), &stage.topics()[0]));
        records.iter().filter(|record| record.event_id == id).count()
    };
    until_true("it is in the topic again", || scene.proxy.lost() > 0 && copies() > 1).await;
    scene.proxy.lose_answers(false);
    story.comes_to("events that wait", async || stage.number(PENDING).await, 0).await;
    story.tell(format!(
        "{} answers were lost; the record is in the topic {} times",
        scene.proxy.lost(),
        copies()
    ));
    read_model_has_all(story, scene, "and has its effect once").await;
}

/// A deposit whose memo makes its event larger than any that the broker takes. Its transaction.
async fn deposit_too_large(scene: &Scene) -> i64 {
    let memo = "x".repeat(LARGEST as usize + 1000);
    scene.bank.post("/deposits", json!({ "accountId": 6, "amount": 13, "memo": memo })).await
}

/// An event that no broker takes is dead at once; a person sends a corrected one.
pub async fn an_event_dies(story: &mut Story, scene: &Scene) {
    let stage = &scene.stage;
    let id = event_id(deposit_too_large(scene).await, 6).to_string();
    story.comes_to("events that are given up", async || stage.number(FAILED).await, 1).await;
    let text =
        || stage.slack.requests().iter().map(|request| request.body["text"].to_string()).collect::<Vec<_>>();
    until_true("Slack is told", || !text().is_empty()).await;
    story.holds(
        "Slack is told of the one event that died, with its id",
        text().len() == 1 && text()[0].contains(&id),
        &id,
    );
    let sql = "select payload from outbox_event where status = 'FAILED'";
    let payload: String = sqlx::query_scalar(sql).fetch_one(stage.ledger.pool()).await.expect("a payload");
    let mut payload: Value = serde_json::from_str(&payload).expect("JSON");
    payload.as_object_mut().expect("fields").remove("memo");
    let file = format!("@{}", stage.folder.file("corrected.json", &payload.to_string()).display());
    let why = "the memo is too long for Kafka";
    stage.operate(&["dead", "replace", &id, "--payload", &file, "--yes", "--why", why]);
    story.comes_to("events that wait", async || stage.number(PENDING).await, 0).await;
    read_model_has_all(story, scene, "`postrider dead replace` sent a corrected one").await;
}
