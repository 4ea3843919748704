//! A broker that is away, on a broker of these tests' own.

use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use commerce::application::likes;
use postrider_testkit::{until, until_true};
use tokio::sync::{Mutex, MutexGuard};
use xtask::kafka::{Broker, Options};

use crate::world::{World, liked};

static BROKER: LazyLock<Mutex<OnceLock<Broker>>> = LazyLock::new(Mutex::default);

/// For how long the broker is away after a relay has noticed: the document's 30 s with `POSTRIDER_SOAK`.
fn away() -> Duration {
    Duration::from_secs(if std::env::var_os("POSTRIDER_SOAK").is_some() { 30 } else { 0 })
}

/// The broker, for one test at a time.
async fn broker() -> MutexGuard<'static, OnceLock<Broker>> {
    let broker = BROKER.lock().await;
    broker.get_or_init(|| Broker::create(&Options::new()).expect("a broker starts"));
    broker
}

fn of(broker: &mut OnceLock<Broker>) -> &mut Broker {
    broker.get_mut().expect("it was made")
}

/// C17 (the broker is away for a while): the shop goes on, nothing is lost or failed, no attempt is counted, and order is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_away_for_a_while_costs_nothing() {
    let mut broker = broker().await;
    let world = World::on(&of(&mut broker).bootstrap()).await;
    world.create(&["like-events"]);
    let (units, product) = (world.units(), world.product(1).await);
    let relay = world.relay("one", &[]);
    likes::like(&units, 0, product).await.expect("liked");
    world.until_sent().await;
    of(&mut broker).kill().expect("killed");
    for user in 1..=30 {
        likes::like(&units, user, product).await.expect("the shop goes on");
    }
    until_true("the relay notices", || relay.log().contains("the destination is unavailable")).await;
    let gone = Instant::now();
    until("it was away as long", async || {
        assert_eq!(world.number("select count(*) from outbox_failed").await, 0, "none is lost");
        gone.elapsed() >= away()
    })
    .await;
    of(&mut broker).start().expect("started again");
    world.until_sent().await;
    assert_eq!(world.number("select count(*) from outbox_failed").await, 0);
    assert_eq!(
        world.number("select max(attempts)::bigint from postrider.event_state").await,
        1,
        "no attempt was lost"
    );
    let users: Vec<i64> = world
        .topic("like-events")
        .records()
        .iter()
        .filter_map(|record| record.json()["data"]["userId"].as_i64())
        .collect();
    let mut first_times = users.clone();
    first_times.dedup();
    assert_eq!(first_times, (0..=30).collect::<Vec<i64>>(), "in order, none missing");
}

/// C7, C17 (five minutes, outages included): what was recorded five minutes ago is failed although the broker is away; what is younger
/// waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_five_minutes_fails_what_is_older_and_keeps_what_is_younger() {
    let mut broker = broker().await;
    let world = World::on(&of(&mut broker).bootstrap()).await;
    world.create(&["like-events"]);
    let relay = world.relay("one", &[]);
    world.publish(liked(1, 0)).await;
    world.until_sent().await;
    of(&mut broker).kill().expect("killed");
    let old = world.publish_aged(liked(1, 1), "4 min 53 s").await;
    until_true("the relay notices", || relay.log().contains("the destination is unavailable")).await;
    assert_ne!(world.state(old).await, "dead", "it is not five minutes old");
    // A batch is settled as a whole: in the same one it would keep the older one from showing as dead.
    let young = world.publish(liked(1, 2)).await;
    until("it is failed", async || world.state(old).await == "dead").await;
    let message = world.texts("select error_message from outbox_failed").await;
    assert!(message.len() == 1 && message[0].contains("the destination was unavailable"), "{message:?}");
    assert_ne!(world.state(young).await, "dead", "its time has not come");
    of(&mut broker).start().expect("started again");
    until("the younger one is sent", async || world.state(young).await == "done").await;
    assert_eq!(world.topic("like-events").count(), 2);
}
