//! The story, told on PostgreSQL and on SQLite.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use postrider_testkit::{Process, http};

/// What the line begins with that says how to look at what is kept.
const LOOK: &str = "  look at it: ";

fn tell(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_umbra")).arg("story").args(arguments).output().expect("umbra runs");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("Every promise held"), "{text}");
    text
}

/// U9, U19: the whole story on PostgreSQL, with its processes killed.
#[test]
fn the_story_holds_on_postgres() {
    let text = tell(&[]);
    assert!(text.contains("A replay of what is archived is refused: Some(1)"), "{text}");
}

/// U9: the same on SQLite, without any server. With `--keep` it stays up, with its addresses, for whoever wants to look at it; asked to end,
/// it leaves nothing behind.
#[test]
fn the_story_holds_on_sqlite_and_can_be_kept() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_umbra"));
    let mut story =
        Process::start(command.args(["story", "--store", "sqlite", "--keep"]).stdout(Stdio::piped()));
    let mut told = Vec::new();
    for line in BufReader::new(story.stdout()).lines().map_while(Result::ok) {
        let is_last = line.starts_with(LOOK);
        told.push(line);
        if is_last {
            break;
        }
    }
    let text = told.join("\n");
    assert!(text.contains("Every promise held"), "{text}");
    assert!(text.contains("Types of events that were published: 30"), "{text}");
    let after = |start: &str| {
        let found = told.iter().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("{start} is missing: {text}")).to_owned()
    };
    let (look, worker) = (after(LOOK), after("  worker: http://"));
    let (worker, path) = worker.split_at(worker.find('/').expect("a path"));
    assert!(http::get(worker, path).expect("metrics").contains("postrider_attempts_bucket{"));
    let status = Command::new("sh").args(["-c", &look]).output().expect("a shell");
    let shown = String::from_utf8_lossy(&status.stdout);
    assert_eq!(status.status.code(), Some(0), "{look}: {shown}");
    for subscription in ["licensing", "billing", "notification", "audit"] {
        assert!(shown.contains(subscription), "{shown}");
    }
    let (_, file) = look.split_once("sqlite:").expect("a file");
    assert!(Path::new(file).is_file(), "{file}");

    story.signal("TERM");
    assert_eq!(story.wait().and_then(|status| status.code()), Some(0));
    assert!(http::get(worker, path).is_none(), "the worker ended with it");
    assert!(!Path::new(file).exists(), "and so did the database");
}

/// A message that is lost is told in a line and counted, and the exit code is 1.
#[test]
fn a_planted_loss_is_told() {
    let told = Command::new(env!("CARGO_BIN_EXE_umbra"))
        .args(["story", "--store", "sqlite", "--break", "loss"])
        .output();
    let told = told.expect("umbra runs");
    let text = String::from_utf8_lossy(&told.stdout);
    assert_eq!(told.status.code(), Some(1), "{text}");
    assert!(text.contains("    BROKEN   Messages kept = events to tell of: "), "{text}");
    assert!(text.contains("1 of ") && text.contains(" promises broke, in "), "{text}");
}
