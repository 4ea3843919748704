//! The files: the relay's settings with the document's values, and the topics with theirs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use commerce::adapters::consumers::Settings;
use commerce::processes::settings::{RELAY, TOPICS};
use postrider_testkit::Folder;
use serde_json::Value;

use crate::world::World;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// C13, C15: batch 100, send timeout 5 s, retry after 10 s, dead after 5 min, a look each second; all of it from the file.
#[tokio::test]
async fn the_relays_file_has_the_documents_values() {
    let world = World::new(&[]).await;
    let file = world.folder.file("commerce.toml", RELAY).display().to_string();
    let said = world.said(&["config", "check", "--json", "--config", &file]);
    let settings: Value = serde_json::from_str(&said).expect("JSON");
    let subscription = &settings["subscription"][0];
    let wanted: [(&str, Value); 6] = [
        ("name", "kafka".into()),
        ("batch", 100.into()),
        ("order", "strict".into()),
        ("lanes", 1.into()),
        ("while_unavailable", "expire".into()),
        ("on_dead", "skip".into()),
    ];
    for (name, value) in wanted {
        assert_eq!(subscription[name], value, "{name}: {settings:#}");
    }
    let retry = &subscription["retry"];
    assert_eq!((&retry["every"], &retry["max_age"]), (&"10s".into(), &"5m".into()), "{settings:#}");
    assert_eq!(settings["relay"]["poll_interval"], "1s", "{settings:#}");
    let sink = &settings["sink"]["kafka"];
    assert_eq!(
        (&sink["topic"], &sink["send_timeout"]),
        (&"{domain}-events".into(), &"5s".into()),
        "{settings:#}"
    );
    assert_eq!(settings["retention"]["inbox"], "7d", "{settings:#}");
}

/// C13, C15: three retries a second apart, 100 records a poll; each can be set.
#[test]
fn the_consumers_have_the_documents_values() {
    let settings = Settings::new("127.0.0.1:9092");
    assert_eq!((settings.retries, settings.retry_interval), (3, Duration::from_secs(1)));
    assert_eq!(settings.max_poll_records, 100);
}

/// C13: what would weaken acks=all or the idempotent producer is refused before anything is sent.
#[tokio::test]
async fn a_property_that_would_break_a_promise_is_refused() {
    let world = World::new(&[]).await;
    for property in ["acks = \"1\"", "\"enable.idempotence\" = \"false\""] {
        let other = format!("send_timeout = \"2s\"\nproperties = {{ {property} }}");
        let file = world.relay_file("weak", &[("send_timeout = \"2s\"", &other)]);
        let output = world.postrider(&["config", "check", "--config", &file]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains("but must be"), "{property}: {text}");
    }
}

/// C10, C13, C19: eight topics with three partitions each and two replicas in sync, made by a script; the script runs here with a
/// stand-in for Kafka's own program.
#[test]
fn the_script_creates_the_topics_with_partitions_and_replicas() {
    let bin = Folder::new();
    let program = bin.file("kafka-topics.sh", "#!/bin/sh\necho \"$@\" >> \"$ASKED\"\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let asked = bin.path().join("asked");
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut script = Command::new("sh");
    script.arg(folder().join("topics.sh")).arg("one:9092,two:9092,three:9092");
    let status = script.env("PATH", path).env("ASKED", &asked).status().expect("it runs");
    assert!(status.success());
    let asked = std::fs::read_to_string(asked).expect("what it asked for");
    let topics = story::topics::parse(TOPICS).expect("topics");
    assert_eq!(topics.len(), 8);
    for name in crate::world::TOPICS.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.DLT")]) {
        let topic = topics.iter().find(|topic| topic.name == name).expect(&name);
        assert_eq!(topic.partitions, 3, "{name}");
        assert!(topic.settings.contains(&("min.insync.replicas".to_owned(), "2".to_owned())), "{name}");
        let line =
            format!("--topic {name} --partitions 3 --replication-factor 3 --config min.insync.replicas=2");
        assert_eq!(asked.lines().filter(|asked| asked.contains(&line)).count(), 1, "{asked}");
    }
}

/// C19: no program of the shop can create a topic: nothing in its source asks for one.
#[test]
fn only_the_story_creates_topics_for_its_throw_away_broker() {
    let source = folder().join("src");
    let words = ["xtask", "story", "AdminClient", "create_topics"];
    for part in ["adapters", "application", "domain"] {
        assert_eq!(story::imports::naming(&source.join(part), &words), Vec::<String>::new());
    }
}
