//! A broker that is killed, relays that are killed, and answers that are lost, on a broker of the test's own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ledger::adapters::outbox::event_id;
use ledger::application::port::{LedgerPort, UnitOfWork};
use ledger::application::service::outbox_event_recorder::OutboxEventRecorder;
use ledger::domain::transaction::Transaction;
use ledger::story::proxy::Proxy;
use ledger::story::stage::{Stage, TopicOption};
use ledger::story::topic::records;
use postrider_testkit::{Logged, PATIENCE, until, until_true, until_within};
use xtask::kafka::{Broker, Options};

use crate::support::{deposit, now, program, transfer};

/// For how long the broker is away, and how often; longer and more often with `POSTRIDER_SOAK`.
fn outages() -> (Duration, i64) {
    match std::env::var_os("POSTRIDER_SOAK") {
        Some(_) => (Duration::from_secs(30), 6),
        None => (Duration::from_secs(6), 1),
    }
}

/// A broker of the test's own, and the system on it.
struct World {
    broker: Broker,
    proxy: Proxy,
    stage: Stage,
}

impl World {
    async fn new() -> Self {
        let broker = Broker::create(&Options::new()).expect("a broker");
        let proxy = Proxy::to(broker.port()).await;
        let mut stage = Stage::new(program(), &broker.bootstrap(), TopicOption::A).await;
        stage.relay_brokers = proxy.bootstrap();
        Self { broker, proxy, stage }
    }

    /// How often each event is in the topic.
    fn copies(&self) -> BTreeMap<String, usize> {
        let mut copies = BTreeMap::new();
        for record in records(&self.broker.bootstrap(), &self.stage.topics()[0]) {
            *copies.entry(record.event_id).or_default() += 1;
        }
        copies
    }
}

/// L3, L15, L17 and the three cases of a dual write: the broker is away and nothing is lost, nor is a caller refused; two relays are
/// killed; an answer is lost and becomes a duplicate with one effect; what was not committed is in no topic.
#[tokio::test(flavor = "multi_thread")]
async fn outages_kills_and_lost_answers_lose_nothing_and_repeat_no_effect() {
    let mut world = World::new().await;
    let (_positions, url) = world.stage.serving("stub-positions").await;
    let _consumers = [
        world.stage.consumer("read-model", &[]).await,
        world.stage.consumer("positions", &[("POSITIONS_URL", &url)]).await,
    ];
    let (away, rounds) = outages();
    let mut last = None;
    for round in 0..rounds {
        // The relay of the round before.
        drop(last.take());
        last = Some(an_outage_and_two_kills(&mut world, round, away).await);
    }
    let relay = last.expect("a round");
    let stage = &world.stage;
    let before = world.copies();
    assert_eq!(before.len() as i64, stage.number("select count(*) from postrider_event").await);
    assert_eq!(before.len() as i64, 160 * rounds, "{}", relay.log());
    a_lost_answer(&world).await;
    a_commit_that_fails(stage).await;
    let after = world.copies();
    assert!(after.contains_key(&event_id(9_301, 1).to_string()));
    assert!(!after.contains_key(&event_id(9_300, 1).to_string()), "what was not committed is in no topic");
    let legs = 160 * rounds + 2;
    assert_eq!(after.len() as i64, legs);
    let told = async || {
        let answer = story::process::client().get(format!("{url}/count")).send().await.expect("an answer");
        let answer: serde_json::Value = answer.json().await.expect("JSON");
        (answer["triggered"].as_i64(), answer["told"].as_i64())
    };
    until("the position system knows all", async || told().await.0 == Some(legs)).await;
    assert_eq!(told().await, (Some(legs), Some(legs)), "it was told of each leg once");
    let sum = "select cast(sum(amount) as signed) from balances";
    assert_eq!(stage.number(sum).await, rounds * 40 * 100 + 200);
}

/// 40 deposits, then 60 transfers while the broker is away; one relay dies in the outage, one while it catches up.
async fn an_outage_and_two_kills(world: &mut World, round: i64, away: Duration) -> Logged {
    let World { broker, stage, .. } = world;
    let soon = "[[alert]]\nwhen = \"unavailable_seconds > 2\"\nto = [\"pagerduty\"]\n\n[notify.slack]";
    let outage = [("[notify.slack]", soon)];
    let mut first = stage.relay_with(&format!("first-{round}"), &outage);
    let mut second = stage.relay_with(&format!("second-{round}"), &outage);
    let ids = 100 * round;
    for transaction in ids + 1..=ids + 40 {
        deposit(&stage.ledger, transaction, transaction % 8 + 1, 100).await.expect("posted");
    }
    stage.read_model_is_level().await;
    broker.kill().expect("killed");
    let gone = Instant::now();
    for transaction in ids + 41..=ids + 100 {
        let (from, to) = (transaction % 8 + 1, (transaction + 3) % 8 + 1);
        transfer(&stage.ledger, transaction, from, to, 1).await.expect("the caller notices nothing");
    }
    until_within("everybody waited as long", away + PATIENCE, async || {
        let waiting = "select count(*) from outbox_event where status = 'PENDING' and retry_count = 0";
        assert_eq!(stage.number(waiting).await, 120, "none is lost, none has lost a try");
        gone.elapsed() > away
    })
    .await;
    until_true("the outage is told", || !stage.pagerduty.requests().is_empty()).await;
    first.process.kill();
    broker.start().expect("started");
    let processed = "select count(*) from outbox_event where status = 'PROCESSED'";
    until("the second delivers", async || stage.number(processed).await > 160 * round + 40).await;
    second.process.kill();
    let third = stage.relay(&format!("third-{round}"));
    stage.all_processed().await;
    stage.read_model_is_level().await;
    third
}

/// The broker takes a record and its answer is lost: the record is there again, and its effect is not.
async fn a_lost_answer(world: &World) {
    let World { proxy, stage, .. } = world;
    proxy.lose_answers(true);
    deposit(&stage.ledger, 9_200, 1, 100).await.expect("posted");
    until_true("the answer is lost", || proxy.lost() > 0).await;
    let late = event_id(9_200, 1).to_string();
    until_true("the broker has it twice", || world.copies().get(&late).is_some_and(|many| *many > 1)).await;
    assert_eq!(stage.number("select count(*) from outbox_event where status = 'PENDING'").await, 1);
    proxy.lose_answers(false);
    stage.all_processed().await;
}

/// An event of a transaction that is rolled back, and one that is not.
async fn a_commit_that_fails(stage: &Stage) {
    let mut unit = stage.ledger.begin().await.expect("begun");
    let posting = Transaction::deposit(9_300, 1, 100, now()).expect("a deposit");
    unit.save_transaction(&posting).await.expect("written");
    OutboxEventRecorder::record(&mut unit, &posting).await.expect("recorded");
    drop(unit);
    deposit(&stage.ledger, 9_301, 1, 100).await.expect("posted");
    stage.all_processed().await;
    stage.read_model_is_level().await;
}
