//! Brokers that ask who we are, and that show who they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use postrider::store::OutboxSource;
use postrider::testing::{Outbox, until_quiet};
use postrider::{EventBus, Failure, NewEvent, Received, Relay};
use postrider_kafka::{Consumer, DeadLetters, Kafka, KafkaBuilder, KafkaBus, Mechanism};
use xtask::kafka::{Broker, Listener, Options};

use crate::arrivals::Topic;
use crate::logs::Logs;
use crate::{PATIENCE, until};

const SECRET: &str = "planted4secret";
const WRONG: &str = "planted5wrong";

fn broker(options: &Options) -> Broker {
    let broker = Broker::create(options).expect("a broker starts");
    broker.create_topic("orders", 1).expect("a topic");
    broker
}

fn at(broker: &Broker, listener: Listener) -> KafkaBuilder {
    Kafka::builder(&broker.address(listener).expect("such a listener"))
}

/// An event goes through this sink, and arrives.
async fn goes_through(broker: &Broker, builder: KafkaBuilder, way: &str) {
    let topic = Topic::new(&broker.bootstrap(), "orders", 1);
    let before = topic.count();
    let sink = builder.connect().await.unwrap_or_else(|error| panic!("{way}: {error}"));
    let outbox = Outbox::new();
    let event = NewEvent::of("orders", "OrderPaid", "Order", way, &7).expect("an event");
    outbox.record_alone(&event).await.expect("recorded");
    let relay = Relay::new(&outbox).subscribe("kafka", |s| s.sink(sink)).start().await.expect("started");
    until_quiet(&relay, "kafka").await.unwrap_or_else(|error| panic!("{way}: {error}"));
    relay.stop().await.expect("stopped");
    let arrivals = topic.arrivals();
    assert_eq!(arrivals.len() as i64, before + 1, "{way}");
    assert_eq!(arrivals.last().map(|arrival| arrival.key.as_str()), Some(way));
}

/// Why nobody can work with this sink: one sentence, without a secret.
async fn refusal(builder: KafkaBuilder) -> String {
    let shown = format!("{builder:?}");
    let sentence = builder.connect().await.err().expect("refused").to_string();
    for secret in [SECRET, WRONG] {
        assert!(!sentence.contains(secret) && !shown.contains(secret), "{sentence}\n{shown}");
    }
    assert!(!sentence.contains('\n'), "{sentence}");
    sentence
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_opens_the_way_and_a_wrong_one_is_said_to_be_wrong() {
    let logs = Logs::here("postrider_kafka=trace");
    let broker = broker(&Options::new().user("alice", SECRET).tls());
    for mechanism in [Mechanism::Plain, Mechanism::ScramSha256] {
        let name = mechanism.as_str();
        let plain = at(&broker, Listener::Sasl).property("debug", "security,conf,broker");
        goes_through(&broker, plain.clone().sasl(mechanism, "alice", SECRET), name).await;
        let secure = at(&broker, Listener::SaslTls).tls_authority(broker.authority());
        goes_through(&broker, secure.clone().sasl(mechanism, "alice", SECRET), &format!("{name} over TLS"))
            .await;
        for builder in [plain, secure] {
            let sentence = refusal(builder.clone().sasl(mechanism, "alice", WRONG)).await;
            assert!(sentence.contains("the brokers refused the login"), "{name}: {sentence}");
            let sentence = refusal(builder.sasl(mechanism, "mallory", SECRET)).await;
            assert!(sentence.contains("the brokers refused the login"), "{name}: {sentence}");
        }
    }
    // By properties alone it is the same.
    let mut builder = at(&broker, Listener::Sasl);
    for (name, value) in [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanisms", "SCRAM-SHA-256"),
        ("sasl.username", "alice"),
        ("sasl.password", SECRET),
    ] {
        builder = builder.property(name, value);
    }
    goes_through(&broker, builder.clone(), "by properties").await;
    refusal(builder.property("sasl.password", WRONG)).await;

    let sentence = refusal(at(&broker, Listener::Sasl).sasl(Mechanism::ScramSha512, "alice", SECRET)).await;
    assert!(
        sentence.contains("the brokers do not accept this SASL mechanism") && sentence.contains("PLAIN"),
        "{sentence}"
    );
    let sentence = refusal(at(&broker, Listener::Sasl)).await;
    assert!(sentence.contains("check security.protocol"), "no user: {sentence}");

    let logs = logs.text();
    assert!(logs.contains("sasl.password"), "the client was heard");
    for secret in [SECRET, WRONG] {
        assert!(!logs.contains(secret), "a password is in the logs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_logs_in_as_a_sink_does() {
    let broker = broker(&Options::new().user("alice", SECRET).tls());
    let secure = at(&broker, Listener::SaslTls).tls_authority(broker.authority());
    goes_through(&broker, secure.sasl(Mechanism::ScramSha256, "alice", SECRET), "to consume").await;
    let address = broker.address(Listener::SaslTls).expect("such a listener");
    let (seen, mut sees) = tokio::sync::mpsc::unbounded_channel();
    let consumer = |password: &str| {
        let seen = seen.clone();
        Consumer::new(&Outbox::new(), &address, "secure")
            .topics(["orders"])
            .sasl(Mechanism::ScramSha256, "alice", password)
            .tls_authority(broker.authority())
            .on_type("OrderPaid", move |event: Received<i64>| {
                let _ = seen.send(event.into_inner());
                async {}
            })
    };
    let sentence = consumer(WRONG).start().await.expect_err("refused").to_string();
    assert!(sentence.contains("the brokers refused the login"), "{sentence}");
    assert!(!sentence.contains(WRONG), "{sentence}");
    let running = consumer(SECRET).start().await.expect("started");
    let came = tokio::time::timeout(PATIENCE, sees.recv()).await.expect("in time");
    assert_eq!(came, Some(7));
    running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longer_hash_opens_the_way_and_a_wrong_password_does_not() {
    let broker = broker(&Options::new().user("alice", SECRET).scram_512().tls());
    let secure = at(&broker, Listener::SaslTls).tls_authority(broker.authority());
    for (builder, way) in [(at(&broker, Listener::Sasl), "SHA-512"), (secure, "SHA-512 over TLS")] {
        let with = |password: &str| builder.clone().sasl(Mechanism::ScramSha512, "alice", password);
        goes_through(&broker, with(SECRET), way).await;
        let sentence = refusal(with(WRONG)).await;
        assert!(sentence.contains("the brokers refused the login"), "{way}: {sentence}");
    }
}

/// A sink that was not connected when it was made finds out when it delivers: an outage, and no event is to blame.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_wrong_is_an_outage_of_a_running_relay() {
    let broker = broker(&Options::new().user("alice", SECRET).tls());
    let secure = at(&broker, Listener::SaslTls).tls_authority(broker.authority());
    let untrusted = at(&broker, Listener::SaslTls).tls();
    for (builder, words) in [
        (secure.sasl(Mechanism::ScramSha256, "alice", WRONG), "the brokers refused the login"),
        (untrusted.sasl(Mechanism::ScramSha256, "alice", SECRET), "the broker certificate is not trusted"),
    ] {
        let sink = builder.send_timeout(std::time::Duration::from_secs(2)).build().expect("a sink");
        let event = crate::events::event("a", 1);
        let (result, outcomes) = crate::events::deliver(&sink, &[event]).await;
        let reason = result.expect_err("unavailable").reason;
        assert!(reason.contains(words) && !reason.contains(WRONG) && !reason.contains(SECRET), "{reason}");
        assert_eq!(outcomes, [None]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_and_the_tool_for_dead_letters_log_in_as_a_sink_does() {
    let broker = broker(&Options::new().user("alice", SECRET).scram_512().tls());
    broker.create_topic("orders.DLT", 1).expect("a topic for dead letters");
    let address = broker.address(Listener::SaslTls).expect("such a listener");
    let bus = |password: &str| {
        let secure = at(&broker, Listener::SaslTls).tls_authority(broker.authority());
        KafkaBus::connect(secure.sasl(Mechanism::ScramSha512, "alice", password))
    };
    let sentence = bus(WRONG).await.err().expect("refused").to_string();
    assert!(sentence.contains("the brokers refused the login") && !sentence.contains(WRONG), "{sentence}");
    let event = NewEvent::of("orders", "OrderPaid", "Order", "7", &7).expect("an event");
    let id = EventBus::<()>::publish(&bus(SECRET).await.expect("connected"), &mut (), &event).await;
    let id = id.expect("published");

    let (strict, handled) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    let (refuses, done) = (Arc::clone(&strict), Arc::clone(&handled));
    let running = Consumer::new(&Outbox::new(), &address, "billing")
        .topics(["orders"])
        .sasl(Mechanism::ScramSha512, "alice", SECRET)
        .tls_authority(broker.authority())
        .on_type("OrderPaid", move |_: Received<i64>| {
            let (refuses, done) = (Arc::clone(&refuses), Arc::clone(&done));
            async move {
                if refuses.load(Ordering::SeqCst) {
                    return Err(Failure::reject("not yet"));
                }
                done.store(true, Ordering::SeqCst);
                Ok(())
            }
        })
        .start()
        .await
        .expect("started");
    let letters = |password: &str| {
        DeadLetters::new(&address, "billing")
            .sasl(Mechanism::ScramSha512, "alice", password)
            .tls_authority(broker.authority())
    };
    for wrong in [letters(WRONG).list("orders", 10).await.err(), letters(WRONG).requeue("orders").await.err()]
    {
        let sentence = wrong.expect("refused").to_string();
        assert!(sentence.contains("the brokers refused the login"), "{sentence}");
        assert!(!sentence.contains(WRONG) && !sentence.contains('\n'), "{sentence}");
    }
    let list = async || letters(SECRET).list("orders", 10).await.expect("letters");
    until("it is a dead letter", async || list().await.len() == 1).await;
    assert_eq!(list().await[0].event_id, Some(id));
    strict.store(false, Ordering::SeqCst);
    assert_eq!(letters(SECRET).requeue("orders").await.expect("put back"), 1);
    until("it is handled at last", async || handled.load(Ordering::SeqCst)).await;
    assert_eq!(list().await, []);
    running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_a_known_authority_is_trusted_and_no_other() {
    let broker = broker(&Options::new().tls());
    let tls = || at(&broker, Listener::Tls);
    goes_through(&broker, tls().tls_authority(broker.authority()), "TLS").await;

    let sentence = refusal(tls().tls()).await;
    assert!(sentence.contains("the broker certificate is not trusted"), "{sentence}");
    let sentence = refusal(tls()).await;
    assert!(sentence.contains("check security.protocol"), "plain text to TLS: {sentence}");
    let sentence = refusal(at(&broker, Listener::Plaintext).tls_authority(broker.authority())).await;
    assert!(sentence.contains("the listener does not use TLS"), "TLS to plain text: {sentence}");
    let sentence = refusal(tls().tls_authority("/nowhere/authority.pem")).await;
    assert!(sentence.contains("/nowhere/authority.pem is not a file"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_refused_as_such() {
    let broker = broker(&Options::new().user("alice", SECRET).tls_for("dns:kafka.example"));
    let tls = || at(&broker, Listener::Tls).tls_authority(broker.authority());
    let sasl = at(&broker, Listener::SaslTls).tls_authority(broker.authority());
    for builder in [tls(), sasl.clone().sasl(Mechanism::Plain, "alice", SECRET)] {
        let sentence = refusal(builder).await;
        assert!(sentence.contains("the broker certificate is for another host name"), "{sentence}");
    }
    // Who does not know the authority learns that first.
    let sentence = refusal(at(&broker, Listener::Tls).tls()).await;
    assert!(sentence.contains("the broker certificate is not trusted"), "{sentence}");
    // It is the name and nothing else.
    let anything = tls().property("ssl.endpoint.identification.algorithm", "none");
    goes_through(&broker, anything, "any name").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_nowhere_is_said_so_at_the_start() {
    let sentence = refusal(Kafka::builder("127.0.0.1:1")).await;
    assert!(
        sentence.contains("no broker answers at this address") && sentence.contains("127.0.0.1:1"),
        "{sentence}"
    );
    let sentence = refusal(Kafka::builder("kafka.invalid:9092")).await;
    assert!(sentence.contains("the host name does not exist"), "{sentence}");
}
