//! The story, told on PostgreSQL and on SQLite.

use std::process::Command;

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

/// U9: the same on SQLite, without any server.
#[test]
fn the_story_holds_on_sqlite() {
    let text = tell(&["--store", "sqlite"]);
    assert!(text.contains("Types of events that were published: 30"), "{text}");
}
