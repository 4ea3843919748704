//! `postrider dead-letters`, the built binary: what consumers of a real broker gave up is seen, and goes back to its group alone.

mod support;

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use postrider::kafka::{Consumer, RunningConsumer};
use postrider::testing::Outbox;
use postrider::{Failure, Received, Retry, Uuid};
use postrider_testkit::PATIENCE;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use support::log::{Said, said};
use support::{Folder, postrider, until_true};
use xtask::kafka::{Broker, Options};

/// A broker for all tests of the file; each has topics of its own.
fn brokers(topic: &str) -> String {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    let broker = BROKER.get_or_init(|| Broker::create(&Options::new()).expect("a broker starts"));
    broker.create_topics(&[(topic, 1), (&format!("{topic}.DLT"), 1)]).expect("topics");
    broker.bootstrap()
}

/// Writes an event of one key, and waits until it is taken; its id.
fn feed(brokers: &str, topic: &str, value: i64) -> Uuid {
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", brokers).create().expect("a producer");
    let (id, value) = (Uuid::now_v7(), value.to_string());
    let headers = [
        ("ce_specversion", "1.0"),
        ("ce_id", &id.to_string()),
        ("ce_source", "/feed"),
        ("ce_type", "Counted"),
        ("content-type", "application/json"),
    ]
    .into_iter()
    .fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: Some(value) }));
    let record = BaseRecord::to(topic).key("key").payload(&value).headers(headers);
    producer.send(record).map_err(|(error, _)| error).expect("sent");
    producer.flush(PATIENCE).expect("taken");
    id
}

/// A consumer whose handler rejects negative numbers while it is strict.
struct Group {
    running: RunningConsumer,
    seen: Arc<Mutex<Vec<i64>>>,
    strict: Arc<AtomicBool>,
}

impl Group {
    async fn start(brokers: &str, group: &str, topic: &str, strict: bool) -> Self {
        let (seen, strict) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(strict)));
        let (handled, is_strict) = (Arc::clone(&seen), Arc::clone(&strict));
        let running = Consumer::new(&Outbox::new(), brokers, group)
            .topics([topic])
            .property("session.timeout.ms", "6000")
            .retry(Retry::fixed(Duration::from_millis(100)).max_attempts(2))
            .on_type("Counted", move |event: Received<i64>| {
                let (handled, is_strict) = (Arc::clone(&handled), Arc::clone(&is_strict));
                async move {
                    if *event < 0 && is_strict.load(Ordering::SeqCst) {
                        return Err(Failure::reject("negative"));
                    }
                    handled.lock().expect("a list").push(*event);
                    Ok(())
                }
            })
            .start()
            .await
            .expect("started");
        Self { running, seen, strict }
    }

    fn seen(&self) -> Vec<i64> {
        self.seen.lock().expect("a list").clone()
    }

    async fn has_seen(&self, value: i64) {
        until_true(&format!("{value} is handled"), || self.seen().contains(&value)).await;
    }
}

/// Runs a command of letters on these brokers, without a database.
fn letters(brokers: &str, arguments: &[&str]) -> Said {
    let mut command = postrider("", &[&["dead-letters"], arguments, &["--brokers", brokers]].concat());
    said(&command.env_remove("POSTRIDER_STORE_URL").stdin(Stdio::null()).output().expect("it runs"))
}

/// C18: a letter is listed, shown and put back from the command line; its group handles it once, and another group never again.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_put_back_is_handled_once_by_its_group_and_by_no_other() {
    let topic = "back";
    let brokers = brokers(topic);
    let mailer = Group::start(&brokers, "mailer", topic, true).await;
    let billing = Group::start(&brokers, "billing", topic, false).await;
    let id = feed(&brokers, topic, -424_242);
    feed(&brokers, topic, 1);
    mailer.has_seen(1).await;
    billing.has_seen(1).await;

    let list = letters(&brokers, &["list", "--topic", topic, "--json"]).json();
    let one = &list.as_array().expect("an array")[0];
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!((&one["group"], &one["event_id"]), (&"mailer".into(), &id.to_string().into()), "{one}");
    assert_eq!((&one["event_type"], &one["error"]), (&"Counted".into(), &"negative".into()), "{one}");
    assert_eq!((&one["topic"], &one["partition"], &one["offset"]), (&topic.into(), &0.into(), &0.into()));
    assert_eq!((&one["letter"], &one["requeued"]), (&"0:0".into(), &false.into()), "{one}");
    assert!(one["time"].is_string(), "{one}");
    let text = letters(&brokers, &["list", "--topic", topic, "--group", "mailer"]).good();
    assert!(
        text.contains(&id.to_string()) && text.contains("negative") && !text.contains("424242"),
        "{text}"
    );
    let none = letters(&brokers, &["list", "--topic", topic, "--group", "billing"]).good();
    assert_eq!(none, "no dead letters in back.DLT\n");

    let text = letters(&brokers, &["show", "0:0", "--topic", topic]).good();
    assert!(text.contains("rejected: negative") && !text.contains("424242"), "{text}");
    assert!(text.contains("dead-letters requeue --topic back --group mailer"), "{text}");
    let page = letters(&brokers, &["show", "0:0", "--topic", topic, "--payload", "--json"]).json();
    assert_eq!((&page["payload"], &page["payload_bytes"]), (&(-424_242).into(), &7.into()), "{page}");

    let back = ["requeue", "--topic", topic, "--group", "mailer"];
    let text = letters(&brokers, &[&back[..], &["--dry-run"]].concat()).good();
    assert_eq!(text, "would put 1 dead letter of mailer back into back; nothing was changed\n");
    mailer.strict.store(false, Ordering::SeqCst);
    let text = letters(&brokers, &[&back[..], &["--yes"]].concat()).good();
    assert_eq!(text, "put 1 dead letter back into back for mailer alone\n");
    let again = letters(&brokers, &[&back[..], &["--yes"]].concat()).good();
    assert_eq!(again, "all dead letters of mailer were requeued already; nothing was changed\n");
    let again = letters(&brokers, &[&back[..], &["--yes", "--json"]].concat()).json();
    assert_eq!((&again["found"], &again["requeued"]), (&0.into(), &0.into()));
    // What comes after it in its partition: by then both groups have passed what was put back.
    feed(&brokers, topic, 2);
    mailer.has_seen(2).await;
    billing.has_seen(2).await;
    assert_eq!(mailer.seen(), [1, -424_242, 2], "once");
    assert_eq!(billing.seen(), [-424_242, 1, 2], "not again");

    assert_eq!(letters(&brokers, &["list", "--topic", topic]).good(), "no dead letters in back.DLT\n");
    let all = letters(&brokers, &["list", "--topic", topic, "--all", "--json"]).json();
    assert_eq!(all[0]["requeued"], true, "{all}");
    mailer.running.stop().await.expect("stopped");
    billing.running.stop().await.expect("stopped");
}

/// C18: the oldest first, and the rest stays; the brokers are those of the sink in the settings.
#[tokio::test(flavor = "multi_thread")]
async fn some_letters_are_put_back_and_the_others_stay() {
    let topic = "some";
    let brokers = brokers(topic);
    let group = Group::start(&brokers, "mailer", topic, true).await;
    for value in [-1, -2, -3, 1] {
        feed(&brokers, topic, value);
    }
    group.has_seen(1).await;
    group.strict.store(false, Ordering::SeqCst);
    let folder = Folder::new();
    let sink = |name: &str| format!("[sink.{name}]\ntype = \"kafka\"\nbrokers = \"{brokers}\"\n");
    let run = |settings: &str, arguments: &[&str]| {
        let file = folder.file("postrider.toml", settings).display().to_string();
        let mut command = postrider("", &[&["dead-letters"], arguments, &["--config", &file]].concat());
        said(&command.env_remove("POSTRIDER_STORE_URL").output().expect("it runs"))
    };
    let some = ["requeue", "--topic", topic, "--group", "mailer", "--limit", "2", "--yes", "--json"];
    let two = sink("kafka") + &sink("other");
    let sentence = run(&two, &some).sentence(2);
    assert!(sentence.contains("several Kafka sinks (kafka, other); pass --sink NAME"), "{sentence}");
    let sentence = run(&two, &[&some[..], &["--sink", "kafak"]].concat()).sentence(2);
    assert!(sentence.contains("did you mean \"kafka\"?"), "{sentence}");
    let sentence = run("", &some).sentence(2);
    assert!(sentence.contains("the settings have no Kafka sink; pass --brokers"), "{sentence}");

    let answer = run(&sink("kafka"), &some).json();
    assert_eq!((&answer["found"], &answer["requeued"]), (&2.into(), &2.into()), "{answer}");
    group.has_seen(-2).await;
    let list = letters(&brokers, &["list", "--topic", topic, "--json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    let answer = run(&two, &[&some[..], &["--sink", "other"]].concat()).json();
    assert_eq!(answer["requeued"], 1);
    group.has_seen(-3).await;
    assert_eq!(group.seen(), [1, -1, -2, -3]);
    group.running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_with_letters_is_said_in_a_sentence() {
    let topic = "wrong";
    let brokers = brokers(topic);
    let requeue = |group: &'static str| ["requeue", "--topic", topic, "--group", group, "--yes"];
    let sentence = letters(&brokers, &requeue("mailer")).sentence(1);
    assert!(sentence.contains("there are no dead letters of wrong in wrong.DLT"), "{sentence}");
    let group = Group::start(&brokers, "mailer", topic, true).await;
    feed(&brokers, topic, -1);
    feed(&brokers, topic, 1);
    group.has_seen(1).await;
    let sentence = letters(&brokers, &requeue("mialer")).sentence(1);
    assert!(
        sentence.contains("group mialer has no dead letters in wrong.DLT; these groups have: mailer"),
        "{sentence}"
    );
    let sentence = letters(&brokers, &requeue("mailer")[..5]).sentence(2);
    assert!(sentence.contains("Put 1 dead letter of mailer back into wrong?"), "{sentence}");
    for (arguments, code, words) in [
        (&["list", "--topic", "nowhere"][..], 1, "the topic nowhere.DLT for dead letters does not exist"),
        (&["list", "--topic", "no topic"], 1, "is not a valid topic name"),
        (&["list", "--topic", ""], 2, "--topic must not be empty"),
        (&["list", "--topic", topic, "--pattern", "{topic}"], 1, "choose another one"),
        (&["show", "0:99", "--topic", topic], 1, "there is no dead letter of wrong at 0:99 in wrong.DLT"),
        (&["show", "7:0", "--topic", topic], 1, "there is no dead letter of wrong at 7:0 in wrong.DLT"),
        (&["requeue", "--topic", "nowhere", "--group", "mailer", "--yes"], 1, "does not exist"),
    ] {
        let sentence = letters(&brokers, arguments).sentence(code);
        assert!(sentence.contains(words), "{arguments:?}: {sentence}");
    }
    let list = letters(&brokers, &["list", "--topic", topic, "--json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "nothing was changed: {list}");
    group.running.stop().await.expect("stopped");
}

#[test]
fn brokers_that_do_not_answer_are_said_so_within_a_bounded_time() {
    let address = postrider_testkit::address::nobody();
    for arguments in
        [&["list", "--topic", "any"][..], &["requeue", "--topic", "any", "--group", "any", "--yes"]]
    {
        let began = Instant::now();
        let sentence = letters(&address.to_string(), arguments).sentence(1);
        assert!(sentence.contains(&address.to_string()), "{sentence}");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
