//! The relay's file, with the document's values.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use postrider_testkit::Folder;
use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ledger.toml");

fn checked() -> Value {
    let mut command: Command = story::process::postrider();
    command.args(["config", "check", "--json", "--config", FILE]);
    for (name, value) in [
        ("DATABASE_URL", "mysql://nobody@127.0.0.1:9/ledger"),
        ("KAFKA", "127.0.0.1:9"),
        ("SLACK_URL", "http://127.0.0.1:9"),
        ("PAGERDUTY_URL", "http://127.0.0.1:9"),
        ("PAGERDUTY_KEY", "key"),
    ] {
        command.env(name, value);
    }
    let output = command.output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"))
}

/// L4, L7: batch 100, a look every 2 s, retries 2 s apart, five of them; seven days in the log, in batches; all of it from the file.
#[test]
fn the_relays_file_has_the_documents_values() {
    let settings = checked();
    let subscription = &settings["subscription"][0];
    let wanted: [(&str, Value); 5] = [
        ("name", "ledger-to-kafka".into()),
        ("batch", 100.into()),
        ("order", "key".into()),
        ("on_dead", "skip".into()),
        ("while_unavailable", "wait".into()),
    ];
    for (name, value) in wanted {
        assert_eq!(subscription[name], value, "{name}: {settings:#}");
    }
    let retry = &subscription["retry"];
    assert_eq!((&retry["every"], &retry["max_attempts"]), (&"2s".into(), &5.into()), "{settings:#}");
    assert_eq!(settings["relay"]["poll_interval"], "2s", "{settings:#}");
    let retention = &settings["retention"];
    for (name, value) in [("delivered", "7d"), ("archived", "1825d"), ("inbox", "30d"), ("at", "03:00")] {
        assert_eq!(retention[name], value, "{name}: {settings:#}");
    }
    assert_eq!(retention["batch"], 1000, "{settings:#}");
}

/// L8, L9: a death is told to Slack, what waits for too long and an outage to PagerDuty, all of it by the preset of the ledger.
#[test]
fn each_condition_of_the_preset_has_its_receivers() {
    let settings = checked();
    let alerts = settings["alert"].as_array().expect("alerts");
    let told: Vec<(&str, String)> = alerts
        .iter()
        .map(|alert| (alert["when"].as_str().expect("a condition"), alert["to"].to_string()))
        .collect();
    let wanted = [
        ("event dies", r#"["slack","log"]"#.to_owned()),
        ("undelivered_over(5m) >= 100", r#"["pagerduty","log"]"#.to_owned()),
        ("unavailable_seconds > 60", r#"["pagerduty","log"]"#.to_owned()),
    ];
    assert_eq!(told, wanted, "{settings:#}");
}

/// The topics of a system, and what its script asks for with these arguments: a line for each topic. The script runs with a stand-in for
/// Kafka's own program that reads all of its input, as that one may.
fn topics_of(system: &str, arguments: &[&str]) -> (Vec<story::topics::Topic>, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(system);
    let topics = fs::read_to_string(folder.join("topics.txt")).expect("the topics");
    let bin = Folder::new();
    let program = bin.file("kafka-topics.sh", "#!/bin/sh\ncat > /dev/null\necho \"$@\" >> \"$ASKED\"\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    let asked = bin.path().join("asked");
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut script = Command::new("sh");
    script.arg(folder.join("topics.sh")).args(arguments).env("PATH", path).env("ASKED", &asked);
    assert!(script.status().expect("it runs").success(), "{system}");
    let asked = fs::read_to_string(asked).expect("what it asked for");
    let topics = story::topics::parse(&topics).expect("topics");
    (topics, asked.lines().map(str::to_owned).collect())
}

/// Every topic of the four systems on Kafka, those of dead letters included, has two copies of what was confirmed; their scripts are
/// called alike, and make each topic of the list. One broker can't have two copies.
#[test]
fn every_topic_of_the_systems_keeps_two_copies_and_is_made_by_its_script() {
    for system in ["ledger", "commerce", "transfers", "everbit"] {
        let (topics, three) = topics_of(system, &["one:9092,two:9092"]);
        let (_, one) = topics_of(system, &["one:9092", "1"]);
        assert_eq!((three.len(), one.len()), (topics.len(), topics.len()), "{system}: {three:#?}");
        for (topic, (three, one)) in topics.iter().zip(three.iter().zip(&one)) {
            let wanted = ("min.insync.replicas".to_owned(), "2".to_owned());
            assert!(topic.settings.contains(&wanted), "{system}: {}", topic.name);
            let asked =
                format!("--topic {} --partitions {} --replication-factor", topic.name, topic.partitions);
            assert!(three.contains("--bootstrap-server one:9092,two:9092 "), "{three}");
            assert!(
                three.contains(&format!("{asked} 3 ")) && three.contains("min.insync.replicas=2"),
                "{three}"
            );
            assert!(one.contains(&format!("{asked} 1")) && !one.contains("min.insync.replicas"), "{one}");
        }
    }
}
