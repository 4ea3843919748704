//! The properties of a broker, as its file has them.

use super::node::Node;
use super::options::{Listener, Options};
use super::tls;

/// The properties of every throw-away broker: only the topics that a test made, and no waiting for what a test
/// does not have, such as further consumers of a group.
pub const SETTINGS: &[(&str, &str)] = &[
    ("process.roles", "broker,controller"),
    ("controller.listener.names", "CONTROLLER"),
    ("inter.broker.listener.name", "PLAINTEXT"),
    ("auto.create.topics.enable", "false"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("offsets.topic.num.partitions", "1"),
    ("transaction.state.log.num.partitions", "1"),
    ("share.coordinator.state.topic.num.partitions", "1"),
    // A broker that was killed is let in again, and its partitions get other leaders, only after this.
    ("broker.session.timeout.ms", "3000"),
    ("broker.heartbeat.interval.ms", "500"),
];

/// Those that say on how many brokers something is kept.
const REPLICATION_FACTORS: [&str; 4] = [
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
];

/// Those that say how many brokers must have something before it counts as written.
const IN_SYNC: [&str; 3] =
    ["min.insync.replicas", "transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr"];

/// The text of the properties of `node`, one of `nodes`.
pub fn of(node: &Node, nodes: &[Node], options: &Options) -> String {
    let listeners = node.listeners.iter().map(|(listener, port)| (listener.name(), *port));
    let of_clients = joined(listeners.map(|(name, port)| format!("{name}://127.0.0.1:{port}")));
    let protocols = node.listeners.iter().map(|(it, _)| format!("{}:{}", it.name(), it.protocol()));
    let voters = nodes.iter().map(|it| format!("{}@127.0.0.1:{}", it.id, it.controller));
    let mut lines: Vec<(String, String)> = vec![
        ("node.id".into(), node.id.to_string()),
        ("controller.quorum.voters".into(), joined(voters)),
        ("listeners".into(), format!("{of_clients},CONTROLLER://127.0.0.1:{}", node.controller)),
        ("advertised.listeners".into(), of_clients),
        (
            "listener.security.protocol.map".into(),
            joined(protocols.chain(["CONTROLLER:PLAINTEXT".to_owned()])),
        ),
        ("log.dirs".into(), node.data_dir().display().to_string()),
    ];
    let settings = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    lines.extend(settings.chain(of_replication(nodes.len())));
    if nodes.len() == 1 {
        // Who votes for itself need not wait for others to do so first.
        lines.push(("controller.quorum.election.timeout.ms".into(), "100".into()));
    }
    for (listener, _) in &node.listeners {
        lines.extend(of_listener(*listener, node, options));
    }
    if options.acls {
        let authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
        lines.push(("authorizer.class.name".into(), authorizer.into()));
        lines.push(("super.users".into(), "User:admin".into()));
        lines.push(("allow.everyone.if.no.acl.found".into(), "true".into()));
    }
    // The last of two lines with the same name counts.
    lines.extend(options.properties.iter().cloned());
    lines.iter().map(|(name, value)| line(name, value)).collect()
}

/// On how many of `brokers` something is kept: up to three; and of three, two must have it.
pub fn of_replication(brokers: usize) -> impl Iterator<Item = (String, String)> {
    let replicas = brokers.clamp(1, 3);
    let in_sync = replicas.div_ceil(2);
    let factors = REPLICATION_FACTORS.into_iter().map(move |name| (name.to_owned(), replicas.to_string()));
    factors.chain(IN_SYNC.into_iter().map(move |name| (name.to_owned(), in_sync.to_string())))
}

/// Passwords and keys of a listener that has them.
fn of_listener(listener: Listener, node: &Node, options: &Options) -> Vec<(String, String)> {
    let prefix = format!("listener.name.{}", listener.name().to_lowercase());
    let mut lines = Vec::new();
    if listener.has_passwords() {
        let users = options.users.iter().map(|(name, password)| format!(" user_{name}=\"{password}\""));
        let users: String = users.collect();
        let plain = format!("org.apache.kafka.common.security.plain.PlainLoginModule required{users};");
        let scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;";
        let scrams = options.scrams();
        let all = joined(["PLAIN"].iter().chain(&scrams).map(|name| (*name).to_owned()));
        lines.push((format!("{prefix}.sasl.enabled.mechanisms"), all));
        lines.push((format!("{prefix}.plain.sasl.jaas.config"), plain));
        for name in scrams {
            lines.push((format!("{prefix}.{}.sasl.jaas.config", name.to_lowercase()), scram.into()));
        }
    }
    if listener.is_encrypted() {
        let keys = tls::keys(&node.folder).display().to_string();
        lines.push((format!("{prefix}.ssl.keystore.type"), "PKCS12".into()));
        lines.push((format!("{prefix}.ssl.keystore.location"), keys));
        lines.push((format!("{prefix}.ssl.keystore.password"), tls::PASSWORD.into()));
        lines.push((format!("{prefix}.ssl.key.password"), tls::PASSWORD.into()));
    }
    lines
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

fn line(name: &str, value: &str) -> String {
    format!("{name}={}\n", value.replace('\\', r"\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: i32) -> Node {
        let port = 20_000 + u16::try_from(id).expect("a small number");
        Node {
            id,
            folder: "/tmp/postrider-test".into(),
            listeners: vec![(Listener::Plaintext, port)],
            controller: port + 100,
        }
    }

    #[test]
    fn three_brokers_vote_for_each_other_and_keep_everything_on_two_at_least() {
        let nodes = [node(1), node(2), node(3)];
        let text = of(&nodes[1], &nodes, &Options::new());
        for line in [
            "node.id=2",
            "controller.quorum.voters=1@127.0.0.1:20101,2@127.0.0.1:20102,3@127.0.0.1:20103",
            "listeners=PLAINTEXT://127.0.0.1:20002,CONTROLLER://127.0.0.1:20102",
            "default.replication.factor=3",
            "min.insync.replicas=2",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn a_property_of_the_caller_comes_last() {
        let options = Options::new().property("min.insync.replicas", "1").property("odd", r"a\b");
        let text = of(&node(1), &[node(1)], &options);
        assert!(text.ends_with("min.insync.replicas=1\nodd=a\\\\b\n"), "{text}");
    }
}
