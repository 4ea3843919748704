//! The two ways in which the document loses an event, acted out: the broker is down, and a process is killed while it sends.

use story::Story;
use story::testkit::{Logged, Program, until, until_true};
use xtask::kafka::Broker;

use super::client::{Client, new_ids};
use super::stage::Stage;

/// How many accounts there are.
pub const ACCOUNTS: usize = 40;

/// Loss 1: the broker is killed, transfers go on, the broker comes back. How many were made meanwhile.
pub async fn broker_killed(stage: &Stage, client: &Client, broker: &mut Broker, count: usize) -> usize {
    broker.kill().unwrap_or_else(|error| panic!("the broker can't be killed: {error}"));
    let made = client.transfers(count, ACCOUNTS).await;
    until("a relay knows that the broker is away", async || {
        stage.number("select count(*) from postrider.lane where away is not null").await > 0
    })
    .await;
    made
}

/// Turns the clock by 61 seconds for an outage that lasts, and waits until operations is told of it.
pub async fn told_of_outage(stage: &Stage) -> String {
    stage
        .turn("update postrider.lane set away_since = away_since - interval '61 s' where away is not null")
        .await;
    let condition = "unavailable_seconds > 60";
    let told = || {
        let requests = stage.operations.requests();
        let found = requests
            .iter()
            .find(|each| each.body["condition"] == condition && each.body["state"] == "firing");
        found.and_then(|request| request.body["text"].as_str()).map(str::to_owned)
    };
    until_true("operations is told of the outage", || told().is_some()).await;
    told().unwrap_or_default()
}

/// Loss 2: the service is killed while it makes transfers, as by a deploy, and started again; then a relay is killed while it sends.
/// Clients that had no answer ask again with the same ids. How many transfers were asked for, how many clients got an answer for in
/// the end, and the service that runs now.
pub async fn processes_killed(
    stage: &Stage,
    (mut service, client): (Program, Client),
    relay: &mut Logged,
    count: usize,
) -> (usize, usize, (Program, Client)) {
    let (before, ids) = (stage.transfers().await, new_ids(count));
    let asked = ids.clone();
    let sending = tokio::spawn(async move { client.transfers_as(&asked, ACCOUNTS).await });
    until("the service is in the middle of it", async || {
        stage.transfers().await > before + i64::try_from(count / 4).unwrap_or_default()
    })
    .await;
    service.process.kill();
    // How many had an answer before the kill says nothing of what was committed.
    drop(sending.await);
    let (service, client) = stage.api().await;
    let mut answered = client.transfers_as(&ids, ACCOUNTS).await;
    let (seen, sender) = (stage.analysed().await.1, client.clone());
    let sending = tokio::spawn(async move { sender.transfers(count, ACCOUNTS).await });
    until("events are on their way", async || stage.analysed().await.1 > seen).await;
    relay.process.kill();
    answered += sending.await.unwrap_or_default();
    (2 * count, answered, (service, client))
}

/// Checks that nothing was lost and nothing analysed twice.
pub async fn nothing_is_lost(story: &mut Story, stage: &Stage) {
    let transfers = stage.transfers().await;
    let analysed = async || stage.analysed().await;
    story.comes_to("each transfer is analysed, and once", analysed, (transfers, transfers)).await;
}
