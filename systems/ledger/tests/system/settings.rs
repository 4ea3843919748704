//! The relay's file, with the document's values.

use std::process::Command;

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
