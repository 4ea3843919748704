//! A relay that stands still with a batch in its producer, until long after another has taken its place.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use postrider::{Delivery, Relay, Sink, Unavailable};
use postrider_kafka::Kafka;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{Arrival, Topic, assert_ordered_by_partition};
use crate::ground::Ground;
use crate::relays::{deliverers, undelivered};
use crate::{PATIENCE, until};

/// What the relay is told: the address of PostgreSQL, the schema, the brokers, its name.
const RIDE: &str = "POSTRIDER_TEST_FREEZE";
const PARTITIONS: u16 = 4;
const BATCH: u32 = 500;

/// A sink that says which deliveries are not over at once: they wait in the producer.
struct Telling(Kafka);

#[async_trait::async_trait]
impl Sink for Telling {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let events = delivery.events.len();
        let mut delivering = self.0.deliver(delivery);
        tokio::select! {
            answer = &mut delivering => return answer,
            () = tokio::time::sleep(Duration::from_millis(100)) => println!("waiting {events}"),
        }
        let answer = delivering.await;
        println!("over {events}");
        answer
    }
}

/// Not a test: the relay that is frozen, and its heir.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the relay of another test, in a process of its own"]
async fn ride() {
    let Ok(ride) = std::env::var(RIDE) else { return };
    let [url, schema, brokers, name] = ride.split(' ').collect::<Vec<_>>()[..] else { panic!("{ride}") };
    let outbox = Ground::reach(url, schema).await;
    let sink = Kafka::builder(brokers)
        .send_timeout(Duration::from_secs(2))
        // Small, so that of a large batch little is in the hands of the system.
        .property("socket.send.buffer.bytes", "16384")
        .build()
        .expect("a sink");
    let _relay = Relay::new(&outbox)
        .owner(name)
        .lease(Duration::from_secs(5))
        .subscribe("kafka", |s| s.sink(Telling(sink)).batch(BATCH).longest_pause(Duration::from_millis(200)))
        .start()
        .await
        .expect("started");
    std::future::pending::<()>().await;
}

/// A relay in a process of its own. Dropped, it is killed.
struct Rider {
    process: Child,
    said: Receiver<String>,
}

impl Rider {
    fn start(ground: &Ground, broker: &Broker, name: &str) -> Self {
        let ride = [&ground.url, &ground.schema, &broker.bootstrap(), name].join(" ");
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "freezes::ride", "--ignored", "--nocapture"])
            .env(RIDE, ride)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (tell, said) = channel();
        let lines = BufReader::new(process.stdout.take().expect("what it says")).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { process, said }
    }

    /// Waits until several events of a batch wait in its producer.
    fn until_it_waits(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.said.recv_timeout(left).expect("a batch waits in the producer");
            let waiting = line.split("waiting ").nth(1).and_then(|count| count.trim().parse::<u32>().ok());
            if waiting.is_some_and(|count| count > 1) {
                return;
            }
        }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }
}

impl Drop for Rider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The broker is away when the relay is stopped, so nothing of its batch is on the wire. It is there again when the relay
/// wakes up: whatever it sent of that batch would be old, and behind what its heir has sent.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_frozen_relay_had_in_its_producer_is_never_sent() {
    let mut broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", PARTITIONS).expect("a topic");
    let topic = Topic::new(&broker.bootstrap(), "orders", PARTITIONS.into());
    let ground = Ground::new().await;
    let store = ground.outbox.store().await.expect("the log");
    let frozen = Rider::start(&ground, &broker, "frozen");
    ground.record_numbers(1..=200).await;
    until("the first are delivered", async || topic.count() >= 200 && undelivered(&store).await == 0).await;

    broker.kill().expect("killed");
    // What it said of the first is over.
    frozen.said.try_iter().for_each(drop);
    ground.record_numbers(201..=500).await;
    frozen.until_it_waits();
    frozen.signal("-STOP");
    let over = frozen.said.try_iter().find(|line| line.contains("over"));
    assert_eq!(over, None, "it was stopped in the middle of its batch");
    broker.start().expect("started again");
    let heir = Rider::start(&ground, &broker, "heir");
    until("its heir has delivered the batch", async || undelivered(&store).await == 0).await;
    ground.record_numbers(501..=600).await;
    until("its heir has delivered newer ones", async || undelivered(&store).await == 0).await;
    let before = topic.arrivals().len();

    frozen.signal("-CONT");
    drop(heir);
    // It is awake, knows that it lost its lane, and works again: what it held would have been sent by now.
    ground.record_numbers(601..=700).await;
    until("the one that was frozen works again", async || undelivered(&store).await == 0).await;
    assert_eq!(deliverers(&ground).await, ["frozen", "heir"]);
    assert_nothing_old(&topic.arrivals(), before);
}

/// All numbers are there, and nothing that was in the hands of the frozen one came after it woke up, or after what is newer:
/// up to 500 was, the heir has sent up to 600, and `before` records were there when the frozen one woke up.
fn assert_nothing_old(arrivals: &[Arrival], before: usize) {
    let again = assert_ordered_by_partition(arrivals);
    assert_eq!(arrivals.len() - again, 700, "nothing is lost");
    let old = arrivals.iter().filter(|arrival| arrival.number() <= 600).count();
    assert_eq!(old, before, "nothing old came after it woke up");
    let mut newest: HashMap<&str, i64> = HashMap::new();
    for arrival in arrivals {
        let newest = newest.entry(&arrival.key).or_default();
        let is_late = arrival.number() <= 500 && *newest > 500;
        assert!(!is_late, "{} of {} after {newest}", arrival.number(), arrival.key);
        *newest = arrival.number().max(*newest);
    }
}

/// The broker stands still when the relay is stopped, so part of its batch is on the wire, perhaps half a request. What was
/// there whole may come again, before anything of its heir; the rest never does.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_frozen_relay_had_half_written_is_not_sent_to_its_end() {
    let options = Options::new().property("socket.receive.buffer.bytes", "16384");
    let mut broker = Broker::create(&options).expect("a broker starts");
    broker.create_topic("orders", PARTITIONS).expect("a topic");
    let topic = Topic::new(&broker.bootstrap(), "orders", PARTITIONS.into());
    let ground = Ground::new().await;
    let store = ground.outbox.store().await.expect("the log");
    let frozen = Rider::start(&ground, &broker, "frozen");
    ground.record_numbers(1..=200).await;
    until("the first are delivered", async || topic.count() >= 200 && undelivered(&store).await == 0).await;
    broker.pause().expect("paused");
    frozen.said.try_iter().for_each(drop);
    ground.record_padded(201..=500, 4000).await;
    frozen.until_it_waits();
    frozen.signal("-STOP");
    let over = frozen.said.try_iter().find(|line| line.contains("over"));
    assert_eq!(over, None, "it was stopped in the middle of its batch");
    broker.resume().expect("resumed");
    let heir = Rider::start(&ground, &broker, "heir");
    until("its heir has delivered the batch", async || undelivered(&store).await == 0).await;
    ground.record_numbers(501..=600).await;
    until("its heir has delivered newer ones", async || undelivered(&store).await == 0).await;
    let before = topic.arrivals().len();
    frozen.signal("-CONT");
    drop(heir);
    ground.record_numbers(601..=700).await;
    until("the one that was frozen works again", async || undelivered(&store).await == 0).await;
    assert_nothing_old(&topic.arrivals(), before);
}
