//! The destinations: away, without topics, with too few replicas.

use std::time::{Duration, Instant};

use xtask::kafka::{Broker, Options};

use crate::fixture::Fixture;

fn kafka(brokers: &str, more: &str) -> String {
    format!(
        "[[subscription]]\nname = \"out\"\nsink = \"kafka\"\nstreams = [\"orders\", \"payments\", \"odd stream\"]\n\
         [sink.kafka]\ntype = \"kafka\"\nbrokers = \"{brokers}\"\n{more}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_is_away_is_bad_and_says_why() {
    let fixture = Fixture::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let open = listener.local_addr().expect("an address");
    let free = postrider_testkit::address::nobody();
    let hook = |name: &str, url: String| format!("[sink.{name}]\ntype = \"http\"\nurl = \"{url}\"\n");
    let settings = [
        kafka(&free.to_string(), ""),
        hook("open", format!("http://{open}/events?token=hush")),
        hook("closed", format!("http://user:planted@{free}/events?token=hush")),
        hook("unknown", "http://hook.invalid/hush".to_owned()),
    ];
    let found = fixture.doctor(&settings.concat());
    found.assert(
        "sink kafka",
        "bad",
        &[&free.to_string(), "no broker answers at this address", "none is lost"],
    );
    found.assert("sink open", "ok", &["accepts connections"]);
    found.assert("sink closed", "bad", &["can't reach 127.0.0.1", "connection refused"]);
    found.assert("sink unknown", "bad", &["can't reach hook.invalid", "the host name does not exist"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_that_events_go_to_are_looked_for() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", 3).expect("a topic");
    broker.create_topics_with(&[("ledger", 1)], &[("min.insync.replicas", "2")]).expect("a topic");
    let fixture = Fixture::new().await;
    for (stream, event_type) in [
        ("orders", "OrderPaid"),
        ("payments", "PaymentFailed"),
        ("odd stream", "OddThing"),
        ("nobody wants", "Ignored"),
    ] {
        fixture.record(stream, event_type).await;
    }
    let settings =
        kafka(&broker.bootstrap(), "topics = { LEDGER_POSTED = \"ledger\", LEDGER_REVERSED = \"gone\" }\n");
    let found = fixture.doctor(&settings);
    found.assert("sink kafka", "ok", &[&broker.bootstrap()]);
    // One broker keeps what it can.
    let few = ["3 partitions, 1 replica, 1 in sync", "min.insync.replicas = 1", "use 3 replicas"];
    found.assert("topic orders", "warn", &few);
    found.assert(
        "topic ledger",
        "bad",
        &["min.insync.replicas = 2", "nothing can be written until 2 replicas are in sync"],
    );
    found.assert("topic payments", "bad", &["it does not exist", "PaymentFailed", "create it"]);
    found.assert("topic gone", "bad", &["it does not exist", "LEDGER_REVERSED", "create it"]);
    found.assert(
        "topic of OddThing",
        "bad",
        &["\"odd stream\" is not a valid topic name", "sink.kafka.topics"],
    );
    assert!(!found.has("topic of Ignored") && !found.has("topic nobody wants"));

    broker.create_topics(&[("payments", 1), ("gone", 1)]).expect("topics");
    let found = fixture.doctor(&settings);
    found.assert("topic payments", "warn", &["1 replica"]);
    found.assert("topic gone", "warn", &["1 replica"]);
    // One topic for all, by its name: it is missed before anything was recorded.
    let found = fixture.doctor(&kafka(&broker.bootstrap(), "topic = \"everything\"\n"));
    found.assert("topic everything", "bad", &["it does not exist", "sink.kafka.topic"]);
    assert!(!found.has("topic orders"));
}

/// C13.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_on_three_brokers_is_well_until_one_of_them_is_gone() {
    let mut cluster = Broker::cluster(3).expect("three brokers start");
    cluster.create_topics(&[("orders", 3)]).expect("a topic");
    let fixture = Fixture::new().await;
    fixture.record("orders", "OrderPaid").await;
    let settings = kafka(&cluster.bootstrap(), "");
    let found = fixture.doctor(&settings);
    found.assert("topic orders", "ok", &["3 partitions, 3 replicas, 3 in sync, min.insync.replicas = 2"]);
    cluster.broker(2).kill().expect("killed");
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let found = fixture.doctor(&settings);
        let (verdict, text) = found.about("topic orders");
        // Until the others have noticed, the one that is gone may be asked in vain.
        if text.contains("a replica is not in sync") {
            assert!(verdict == "warn" && text.contains("2 in sync"), "{text}");
            assert_eq!(found.verdict(), "warn", "all goes on");
            break;
        }
        assert!(Instant::now() < end, "{text}");
    }
}
