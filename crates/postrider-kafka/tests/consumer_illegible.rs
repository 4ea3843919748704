//! Records that can't be read as events, on a real broker: each is a dead letter, and its partition goes on.

mod support;
#[path = "support/wire.rs"]
mod wire;

use postrider::Received;
use postrider::testing::Outbox;
use support::{Feed, Seen, broker, committed, consumer, records, until};

/// The first day of the year 292277, in milliseconds since 1970.
const FAR: i64 = 9_223_371_949_478_400_000 / 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_a_dead_letter_and_its_partition_goes_on() {
    let (broker, topic) = (broker(), "illegible");
    let any_time = [("message.timestamp.after.max.ms", "9223372036854775807")];
    broker.create_topics_with(&[(topic, 1)], &any_time).expect("a topic that takes any time");
    // It takes times of the next hour at most.
    broker.create_topic("illegible.DLT", 1).expect("a topic for dead letters");
    let brokers = broker.bootstrap();
    let mut feed = Feed::new(&brokers, topic);
    feed.event("a", 1);
    feed.event_with("year", 2, &[("ce_time", "+292277-01-01T00:00:00Z")]);
    feed.event_with("version", 3, &[("ce_specversion", "9")]);
    feed.flush();
    let event: [(&[u8], &[u8]); 4] =
        [(b"ce_specversion", b"1.0"), (b"ce_id", b"1"), (b"ce_type", b"Counted"), (b"ce_source", b"/s")];
    let with = |more: (&'static [u8], &'static [u8])| [&event[..], &[more]].concat();
    wire::write(broker.port(), topic, "value", "4", &with((b"ce_tenant", b"\xff\xfe")), 1);
    wire::write(broker.port(), topic, "name", "5", &with((b"own\xff", b"x")), 1);
    wire::write(broker.port(), topic, "far", "no event", &[], FAR);
    feed.event("a", 6);
    feed.flush();

    let seen = Seen::default();
    let handled = seen.clone();
    let running = consumer(&Outbox::new(), &brokers, "illegible", topic)
        .on_type("Counted", move |event: Received<i64>| {
            let handled = handled.clone();
            async move {
                handled.push(*event);
                Ok::<_, postrider::Failure>(())
            }
        })
        .start()
        .await
        .expect("started");
    until("the rest is handled", async || seen.all() == [1, 6]).await;
    until("all of it is committed", async || committed(&brokers, "illegible", topic, 1) == [7]).await;
    running.stop().await.expect("stopped");
    let letters = records(&brokers, "illegible.DLT", 5);
    let told: Vec<(&str, &str)> = letters
        .iter()
        .map(|letter| (letter.key.as_str(), letter.headers["postrider_error"].as_str()))
        .collect();
    assert_eq!(told.len(), 5, "{told:?}");
    for (key, reason) in [
        ("year", "\"time\" must be a time"),
        ("version", "CloudEvents version \"9\" is not supported"),
        ("value", "\"ce_tenant\" is not UTF-8"),
        ("name", "the names of headers must be UTF-8"),
        ("far", "not a CloudEvent"),
    ] {
        assert!(told.iter().any(|(of, told)| *of == key && told.contains(reason)), "{key}: {told:?}");
    }
    let letter = |key: &str| letters.iter().find(|letter| letter.key == key).expect("a letter");
    assert_eq!(letter("name").headers["ce_id"], "1", "what can be read of it is kept");
    assert_eq!(letter("far").headers["postrider_record_time"], FAR.to_string());
}
