//! The two losses of the document, and an alarm while nothing fails.

use std::time::{Duration, Instant};

use postrider_testkit::until;
use transfers::acts::outages::{ACCOUNTS, broker_killed, processes_killed, told_of_outage};
use transfers::acts::stage::Stage;
use xtask::kafka::{Broker, Options};

use crate::support::program;

/// For how long the broker is away each time, and how often; longer and more often with `POSTRIDER_SOAK`.
fn outages() -> (Duration, i64) {
    match std::env::var_os("POSTRIDER_SOAK") {
        Some(_) => (Duration::from_secs(30), 5),
        None => (Duration::ZERO, 1),
    }
}

/// Waits out an outage, in which nothing fails.
async fn lasts(stage: &Stage, away: Duration) {
    let began = Instant::now();
    until("the outage has lasted as long", async || {
        let failed = "select count(*) from transfer_events where status in ('FAILED', 'DEAD_LETTER')";
        assert_eq!(stage.number(failed).await, 0, "T12: nothing fails");
        began.elapsed() >= away
    })
    .await;
}

/// T1, T2, T12: the broker is killed, and transfers go on; operations is told of the outage although no event has failed; the service
/// and a relay are killed, and clients ask again; in the end every transfer is made and analysed, and once.
#[tokio::test(flavor = "multi_thread")]
async fn neither_an_outage_nor_a_kill_loses_a_transfer() {
    let mut broker = tokio::task::spawn_blocking(|| Broker::create(&Options::new()).expect("a broker"))
        .await
        .expect("a broker");
    let stage = Stage::new(program(), broker.port()).await;
    let (service, client) = stage.api().await;
    client.open_accounts(ACCOUNTS).await;
    let mut relays = [stage.relay("relay-0", &[]), stage.relay("relay-1", &[])];
    let mut fraud = stage.fraud("fraud-0");
    stage.until_shared_by(2).await;
    assert_eq!(client.transfers(10, ACCOUNTS).await, 10);
    stage.until_analysed().await;

    let (away, rounds) = outages();
    for _ in 1..rounds {
        assert_eq!(broker_killed(&stage, &client, &mut broker, 60).await, 60);
        lasts(&stage, away).await;
        broker.start().expect("the broker is back");
        stage.until_analysed().await;
    }
    let made = broker_killed(&stage, &client, &mut broker, 60).await;
    assert_eq!(made, 60, "no transfer waits for the broker");
    lasts(&stage, away).await;
    let told = told_of_outage(&stage).await;
    assert!(told.contains("unavailable_seconds > 60 for transfers-to-kafka"), "{told}");
    let failed =
        "select count(*) from transfer_events where attempt_count > 0 or status in ('FAILED', 'DEAD_LETTER')";
    assert_eq!(stage.number(failed).await, 0, "T12: nothing fails");
    assert!(stage.in_status("SENDING").await > 0, "T2: a relay has them in hand");
    // Fraud detection is deployed anew meanwhile.
    fraud.process.kill();
    let fraud = stage.fraud("fraud-1");
    until("it waits", async || fraud.log().contains("the brokers are away")).await;
    broker.start().expect("the broker is back");
    stage.until_analysed().await;

    let (asked, answered, service) = processes_killed(&stage, (service, client), &mut relays[0], 100).await;
    assert_eq!((asked, answered), (200, 200), "whoever had no answer has asked again");
    stage.until_analysed().await;
    let transfers = stage.transfers().await;
    assert_eq!(transfers, 10 + 60 * rounds + 200, "nothing was done twice, although it was asked for twice");
    until("it is counted", async || stage.analysed().await == (transfers, transfers)).await;
    let over = stage.number("select sum(balance)::bigint from accounts").await;
    assert_eq!(over, i64::try_from(ACCOUNTS).expect("a number") * 1_000_000);
    drop(service);
}
