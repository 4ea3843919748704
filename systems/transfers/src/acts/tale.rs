//! The story: transfers, a broker and two processes killed, an event that dies, a night, and everything counted.

use std::process::ExitCode;

use story::testkit::{Logged, Program, until};
use story::{Options, Story, process};
use xtask::kafka::{self, Broker};

use super::client::Client;
use super::outages::{self, ACCOUNTS};
use super::refused;
use super::stage::Stage;

/// What an operator may look around with, once the story is told.
pub const COMMANDS: &[&str] = &["status", "events", "dead list", "alerts check"];

/// Tells it. The exit code is 1 if a promise broke.
pub async fn run(options: Options) -> ExitCode {
    let sentence = "transfers of money are recorded with their events, sent to Kafka by relays, and analysed by fraud detection";
    Story::begin("transfers", sentence, options).act_out(all).await
}

/// Everything, one part after the other. Returns what stays up.
async fn all(story: &mut Story) -> Kept {
    let created = tokio::task::spawn_blocking(|| Broker::create(&kafka::Options::new())).await;
    let mut broker = match created {
        Ok(Ok(broker)) => broker,
        other => panic!("no broker: {other:?}"),
    };
    let own = process::own().get_program().to_owned();
    let stage = Stage::new(own.as_ref(), broker.port()).await;
    let (service, client) = stage.api().await;
    let mut relays = vec![stage.relay("relay-0", &[]), stage.relay("relay-1", &[])];
    let mut fraud = vec![stage.fraud("fraud-0")];
    stage.until_shared_by(2).await;
    story.tell("the transaction service, two relays that share three lanes, and fraud detection are up");
    client.open_accounts(ACCOUNTS).await;
    let long = if story.options().long { 10 } else { 1 };

    ordinary(story, &stage, &client, 200 * long).await;
    broker_down(story, &stage, &client, &mut broker, 100 * long).await;
    let (service, client) = deploy(story, &stage, (service, client), &mut relays, 200 * long).await;
    let heir = fraud_killed(story, &stage, &client, &mut fraud[0], 200 * long).await;
    fraud.push(heir);
    dead(story, &stage, &client).await;
    night(story, &stage).await;
    if story.options().loss {
        stage
            .turn("delete from fds.risk_log where event_id in (select event_id from fds.risk_log limit 1)")
            .await;
    }
    count(story, &stage, &fraud).await;

    addresses(story, &stage, &client);
    Kept { _service: service, _logged: (relays, fraud), _stage: stage, _broker: broker }
}

/// What stays up, in the order in which it ends.
struct Kept {
    _service: Program,
    _logged: (Vec<Logged>, Vec<Logged>),
    _stage: Stage,
    _broker: Broker,
}

async fn ordinary(story: &mut Story, stage: &Stage, client: &Client, count: usize) {
    story.part("Ordinary business");
    let made = client.transfers(count, ACCOUNTS).await;
    story.tell(format!("{made} transfers of 1 won among {ACCOUNTS} accounts"));
    let refused = client.transfer("account-0", "account-1", 999_999_999).await;
    let status = refused.map(|answer| answer.status).unwrap_or_default();
    story.equal("a transfer that is not covered is refused", status, 422);
    let events = stage.number("select count(*) from transfer_events").await;
    story.equal("each transfer has its event, and the refused one has none", events, stage.transfers().await);
    outages::nothing_is_lost(story, stage).await;
}

async fn broker_down(story: &mut Story, stage: &Stage, client: &Client, broker: &mut Broker, count: usize) {
    story.part("Loss 1: Kafka is down");
    let made = outages::broker_killed(stage, client, broker, count).await;
    story.tell(format!("the broker was killed; {made} transfers were made all the same"));
    story.equal("no transfer waits for the broker", made, count);
    let told = outages::told_of_outage(stage).await;
    story.tell(format!("after a minute (the clock was turned) operations was told: {told}"));
    let failures = stage.number("select count(*) from transfer_events where attempt_count > 0").await;
    story.equal("the outage costs no event an attempt", failures, 0);
    broker.start().unwrap_or_else(|error| panic!("the broker does not come back: {error}"));
    story.tell("the broker is back");
    outages::nothing_is_lost(story, stage).await;
}

async fn deploy(
    story: &mut Story,
    stage: &Stage,
    service: (Program, Client),
    relays: &mut Vec<Logged>,
    count: usize,
) -> (Program, Client) {
    story.part("Loss 2: processes are killed while they send");
    let mut killed = relays.remove(0);
    let before = stage.transfers().await;
    let (asked, answered, service) = outages::processes_killed(stage, service, &mut killed, count).await;
    story.tell(
        "the service and relay-0 were killed in the middle of it; clients without an answer asked again",
    );
    story.equal("clients have an answer for each transfer", answered, asked);
    let made = usize::try_from(stage.transfers().await - before).unwrap_or_default();
    story.equal("no transfer was made twice, although they asked twice", made, asked);
    relays.push(stage.relay("relay-2", &[]));
    outages::nothing_is_lost(story, stage).await;
    stage.until_shared_by(2).await;
    story.tell("relay-2 shares the lanes now");
    service
}

async fn fraud_killed(
    story: &mut Story,
    stage: &Stage,
    client: &Client,
    fraud: &mut Logged,
    count: usize,
) -> Logged {
    let seen = stage.analysed().await.1;
    let sender = client.clone();
    let sending = tokio::spawn(async move { sender.transfers(count, ACCOUNTS).await });
    until("fraud detection is in the middle of it", async || stage.analysed().await.1 > seen).await;
    fraud.process.kill();
    story.tell("fraud detection was killed, between a risk log and the commit of its offset if need be");
    let heir = stage.fraud("fraud-1");
    let made = sending.await.unwrap_or_default();
    story.equal("a killed fraud detection slows no transfer down", made, count);
    outages::nothing_is_lost(story, stage).await;
    heir
}

async fn dead(story: &mut Story, stage: &Stage, client: &Client) {
    story.part("An event that the broker refuses");
    refused::watch(stage).await;
    refused::set_segments(stage, refused::SMALL_SEGMENTS).await;
    let event = refused::transfer_too_large(client, "account-0", "account-1").await;
    story.tell("a transfer with a memo of a megabyte; the segments of the topic are smaller");
    let pauses = refused::pauses_until_dead(stage, event).await;
    let seconds: Vec<f64> = pauses.iter().map(|pause| *pause as f64 / 1e6).collect();
    story.equal(
        "it waits 2, 4, 8 and 16 s (the clock was turned) and is dead then",
        seconds,
        vec![2.0, 4.0, 8.0, 16.0],
    );
    let told = refused::told_of_death(stage, event).await;
    story.holds("operations is told with its id", told.contains(&event.to_string()), told);
    refused::set_segments(stage, refused::USUAL_SEGMENTS).await;
    let id = event.to_string();
    let (code, _) =
        stage.postrider(&["dead", "requeue", &id, "--yes", "--why", "segments are larger now"]).await;
    story.equal("an operator requeues it", code, Some(0));
    outages::nothing_is_lost(story, stage).await;
}

async fn night(story: &mut Story, stage: &Stage) {
    story.part("A night, eight days later");
    story.figure("delivered by each relay until now", shares(stage).await);
    let published = stage.in_status("PUBLISHED").await;
    shift_days(stage, 8).await;
    let (code, said) = stage.postrider(&["prune", "--yes", "--why", "the story turns the clock"]).await;
    story.tell(said.lines().next().unwrap_or_default());
    story.equal("the cleanup runs", code, Some(0));
    let left = stage.in_status("PUBLISHED").await;
    story.holds(
        "what was published eight days ago is gone",
        published > 0 && left == 0,
        format!("{published}, then {left}"),
    );
}

/// Makes everything that was delivered so many days older than it is.
pub async fn shift_days(stage: &Stage, days: u32) {
    let by = format!("interval '{days} days'");
    stage
        .turn(&format!(
            "update postrider.event set recorded_at = recorded_at - {by}, occurred_at = occurred_at - {by};
             update postrider.settled_batch set settled_at = settled_at - {by};
             update postrider.delivery set first_failed_at = first_failed_at - {by}, last_attempt_at = last_attempt_at - {by},
                 delivered_at = delivered_at - {by}"
        ))
        .await;
}

async fn count(story: &mut Story, stage: &Stage, fraud: &[Logged]) {
    story.part("Counted");
    let transfers = stage.transfers().await;
    let total = stage.number("select sum(balance)::bigint from accounts").await;
    story.equal("no won was made or lost", total, ACCOUNTS as i64 * 1_000_000);
    story.equal("transfers = risk logs", stage.analysed().await, (transfers, transfers));
    let records = stage.records().await;
    story.holds("every transfer is in the topic", records >= transfers, format!("{records} records"));
    story.figure("repetitions in the topic, of batches that were open at a kill", records - transfers);
    let known: usize = fraud.iter().map(|each| each.log().matches("\"already processed\"").count()).sum();
    story.figure("events that fraud detection knew already, and ignored", known);
}

/// How many events each relay has delivered.
async fn shares(stage: &Stage) -> String {
    let sql = "select settled_by || ' ' || sum(count) from postrider.settled_batch where count > 0 group by settled_by order by 1";
    let shares: Vec<String> = sqlx::query_scalar(sql).fetch_all(&stage.db).await.unwrap_or_default();
    shares.join(", ")
}

fn addresses(story: &mut Story, stage: &Stage, client: &Client) {
    story.address("transaction service", client.url.clone());
    story.address("broker", stage.brokers.clone());
    story.address("topic", stage.topic.clone());
    for command in COMMANDS {
        story.address(*command, stage.shown(command));
    }
}
