//! The promises of `xtask::kafka::Broker` and `Cluster`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use xtask::TaskError;
use xtask::kafka::{Broker, Listener, Options, topics};
use xtask::process;

const SOON: Duration = Duration::from_secs(30);

const PRODUCE: i16 = 0;
const SASL_HANDSHAKE: i16 = 17;
const API_VERSIONS: i16 = 18;
const SASL_AUTHENTICATE: i16 = 36;

const UNKNOWN_TOPIC: i16 = 3;
const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
const SASL_AUTHENTICATION_FAILED: i16 = 58;

/// A connection that speaks Kafka's protocol by hand.
struct Connection(TcpStream);

impl Connection {
    fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(SOON)).expect("a limit");
        Self(stream)
    }

    fn send(&mut self, api: i16, version: i16, body: &[u8]) {
        let mut message = Vec::new();
        message.extend(api.to_be_bytes());
        message.extend(version.to_be_bytes());
        message.extend(7_i32.to_be_bytes());
        message.extend(text("test"));
        message.extend(body);
        let length = i32::try_from(message.len()).expect("a short message");
        self.0.write_all(&length.to_be_bytes()).expect("sent");
        self.0.write_all(&message).expect("sent");
    }

    /// What follows the number of the request in the answer.
    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer)?;
        assert_eq!(answer[..4], 7_i32.to_be_bytes());
        Ok(answer.split_off(4))
    }

    fn call(&mut self, api: i16, version: i16, body: &[u8]) -> Vec<u8> {
        self.send(api, version, body);
        self.receive().expect("an answer")
    }
}

fn text(value: &str) -> Vec<u8> {
    let length = i16::try_from(value.len()).expect("a short text");
    [&length.to_be_bytes(), value.as_bytes()].concat()
}

fn int16(bytes: &[u8], at: usize) -> i16 {
    i16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// The error of the attempt to write no records at all to a topic's first partition: a broker looks at who asks
/// before it looks at what.
fn error_of_writing(address: &str, topic: &str) -> i16 {
    let one = 1_i32.to_be_bytes();
    let mut body = Vec::new();
    // No transaction, all replicas, a second of patience; one topic, one partition, nothing for it.
    body.extend((-1_i16).to_be_bytes());
    body.extend((-1_i16).to_be_bytes());
    body.extend(1000_i32.to_be_bytes());
    body.extend(one);
    body.extend(text(topic));
    body.extend(one);
    body.extend(0_i32.to_be_bytes());
    body.extend(0_i32.to_be_bytes());
    let answer = Connection::to(address).call(PRODUCE, 3, &body);
    // One topic, its name, one partition, its number.
    int16(&answer, 4 + 2 + topic.len() + 4 + 4)
}

/// The error of logging in by PLAIN.
fn error_of_login(address: &str, user: &str, password: &str) -> i16 {
    let mut connection = Connection::to(address);
    let answer = connection.call(SASL_HANDSHAKE, 1, &text("PLAIN"));
    assert_eq!(int16(&answer, 0), 0);
    let offered = String::from_utf8_lossy(&answer).into_owned();
    assert!(offered.contains("PLAIN") && offered.contains("SCRAM-SHA-256"), "{offered}");
    let secret = format!("\0{user}\0{password}");
    let length = i32::try_from(secret.len()).expect("a short text").to_be_bytes();
    int16(&connection.call(SASL_AUTHENTICATE, 0, &[&length, secret.as_bytes()].concat()), 0)
}

fn partitions(broker: &Broker, topic: &str) -> usize {
    let metadata = topics::metadata(broker.port(), &[topic]).expect("an answer");
    metadata.topics[0].partitions.len()
}

#[test]
fn a_broker_starts_and_answers_in_its_own_protocol() -> Result<(), TaskError> {
    let broker = Broker::create(&Options::new())?;
    assert_eq!(broker.bootstrap(), format!("127.0.0.1:{}", broker.port()));
    assert!(!broker.folder().starts_with(xtask::workspace::root()));

    let answer = Connection::to(&broker.bootstrap()).call(API_VERSIONS, 0, &[]);
    assert_eq!(int16(&answer, 0), 0);
    assert!(answer.len() > 100, "it knows many requests");

    broker.create_topics(&[("orders", 3), ("customers", 1)])?;
    assert_eq!((partitions(&broker, "orders"), partitions(&broker, "customers")), (3, 1));
    let failure = broker.create_topic("orders", 3).expect_err("it is there already");
    assert!(failure.mentions("already exists"), "{failure}");

    broker.delete_topic("orders")?;
    assert_eq!((partitions(&broker, "orders"), partitions(&broker, "customers")), (0, 1));
    assert_eq!(
        error_of_writing(&broker.bootstrap(), "orders"),
        UNKNOWN_TOPIC,
        "topics are not made by writing"
    );
    Ok(())
}

#[test]
fn a_broker_that_was_killed_or_stopped_restarts_on_its_port_with_its_topics() -> Result<(), TaskError> {
    let mut broker = Broker::create(&Options::new())?;
    let address = broker.bootstrap();
    broker.create_topic("kept", 2)?;
    for end in [Broker::kill, Broker::stop] {
        let pid = broker.pid().expect("a broker that runs");
        end(&mut broker)?;
        assert_eq!(broker.pid(), None);
        assert!(!process::is_running(pid, broker.folder()));
        assert!(TcpStream::connect(&address).is_err());

        broker.start()?;
        assert_eq!(broker.bootstrap(), address);
        assert_eq!(partitions(&broker, "kept"), 2);
    }
    Ok(())
}

#[test]
fn a_paused_broker_answers_nothing_until_it_is_resumed() -> Result<(), TaskError> {
    let mut broker = Broker::create(&Options::new())?;
    let mut connection = Connection::to(&broker.bootstrap());
    connection.call(API_VERSIONS, 0, &[]);

    broker.pause()?;
    assert!(broker.pid().is_some(), "it is still there");
    connection.send(API_VERSIONS, 0, &[]);
    connection.0.set_read_timeout(Some(Duration::from_millis(300))).expect("a limit");
    assert!(connection.receive().is_err());

    broker.resume()?;
    connection.0.set_read_timeout(Some(SOON)).expect("a limit");
    assert!(connection.receive().is_ok());

    broker.pause()?;
    broker.stop()
}

#[test]
fn a_dropped_broker_leaves_no_process_and_no_folder() -> Result<(), TaskError> {
    let broker = Broker::create(&Options::new())?;
    let folder = broker.folder().to_owned();
    let pid = broker.pid().expect("a broker that runs");
    assert!(folder.join("data").exists());

    drop(broker);
    assert!(!folder.exists());
    let path = folder.to_string_lossy();
    let gone = || !process::list().iter().any(|it| it.pid == pid || it.command.contains(&*path));
    assert!(process::wait_until(SOON, gone), "still running: {pid}");
    Ok(())
}

#[test]
fn a_topic_can_be_closed_for_writing_and_opened_again() -> Result<(), TaskError> {
    let broker = Broker::create(&Options::new().acls())?;
    broker.create_topics(&[("open", 1), ("closed", 1)])?;
    broker.forbid_writes("closed")?;
    let address = broker.bootstrap();
    let closed = || error_of_writing(&address, "closed") == TOPIC_AUTHORIZATION_FAILED;
    assert!(process::wait_until(SOON, closed));
    assert_ne!(error_of_writing(&address, "open"), TOPIC_AUTHORIZATION_FAILED);
    assert_eq!(partitions(&broker, "closed"), 1, "it can still be seen");

    broker.permit_writes("closed")?;
    assert!(process::wait_until(SOON, || !closed()));
    Ok(())
}

#[test]
fn a_broker_with_users_and_keys_has_a_listener_for_each_and_both() -> Result<(), TaskError> {
    let broker = Broker::create(&Options::new().user("alice", "secret").tls().message_max_bytes(2000))?;
    let sasl = broker.address(Listener::Sasl).expect("a listener with passwords");
    assert_eq!(error_of_login(&sasl, "alice", "secret"), 0);
    assert_eq!(error_of_login(&sasl, "alice", "wrong"), SASL_AUTHENTICATION_FAILED);
    broker.create_topic("orders", 1)?;

    let authority = std::fs::read_to_string(broker.authority()).expect("a certificate");
    for listener in [Listener::Tls, Listener::SaslTls] {
        let address = broker.address(listener).expect("an encrypted listener");
        let mut shown = Command::new("keytool");
        shown.args(["-printcert", "-rfc", "-sslserver", &address]);
        let shown = process::output(&mut shown, "ask for the certificates")?;
        let lines = |pem: &str| -> String { pem.lines().map(str::trim).collect() };
        assert!(lines(&shown).contains(&lines(&authority)), "{shown}\nlacks\n{authority}");
    }

    let plain = Broker::create(&Options::new())?;
    assert_eq!(plain.address(Listener::Sasl), None);
    assert_eq!(plain.address(Listener::Plaintext), Some(plain.bootstrap()));
    Ok(())
}

#[test]
fn a_broker_that_does_not_start_shows_the_end_of_its_log() {
    let options = Options::new().property("num.partitions", "plenty");
    let failure = Broker::create(&options).expect_err("no such number");
    assert!(failure.to_string().starts_with("Kafka did not start"), "{failure}");
    assert!(failure.mentions("Invalid value plenty for configuration num.partitions"), "{failure}");
}

#[test]
fn three_brokers_go_on_without_any_one_of_them() -> Result<(), TaskError> {
    let mut cluster = Broker::cluster(3)?;
    assert_eq!(cluster.bootstrap().split(',').count(), 3);
    cluster.create_topics(&[("orders", 1)])?;
    let first = cluster.leader("orders", 0)?.expect("a leader");
    let metadata = topics::metadata(cluster.brokers()[first].port(), &["orders"]).expect("an answer");
    assert_eq!(metadata.topics[0].partitions[0].in_sync.len(), 3);

    cluster.broker(first).kill()?;
    let other_leads = || matches!(cluster.leader("orders", 0), Ok(Some(leader)) if leader != first);
    assert!(process::wait_until(SOON, other_leads));
    cluster.create_topics(&[("made by two", 1)]).expect_err("a blank in a name");
    cluster.create_topics(&[("made-by-two", 1)])?;

    cluster.broker(first).start()?;
    assert_eq!(partitions(&cluster.brokers()[first], "made-by-two"), 1);

    cluster.kill()?;
    cluster.start()?;
    assert_eq!(partitions(&cluster.brokers()[first], "orders"), 1);
    Ok(())
}
