//! The story itself, on both databases.

use std::process::Command;

fn story(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_everbit")).arg("story").args(arguments).output();
    let output = output.expect("the story runs");
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}{errors}");
    assert!(told.contains("Every promise held"), "{told}");
    println!("{told}");
}

/// E5, E11, E12, E18: the whole of it on PostgreSQL: seven answers, kills, one order per intent.
#[test]
fn the_story_holds_on_postgres() {
    story(&[]);
}

/// E11: the same with nothing installed.
#[test]
fn the_story_holds_on_sqlite() {
    story(&["--store", "sqlite"]);
}

/// A position that lacks a fill is told in a line and counted, and the exit code is 1.
#[test]
fn a_planted_loss_is_told() {
    let told = Command::new(env!("CARGO_BIN_EXE_everbit"))
        .args(["story", "--store", "sqlite", "--break", "loss"])
        .output();
    let told = told.expect("the story runs");
    let text = String::from_utf8_lossy(&told.stdout);
    assert_eq!(told.status.code(), Some(1), "{text}");
    assert!(
        text.contains("    BROKEN   position in units of 1e-8: ") && text.contains(", but it must be "),
        "{text}"
    );
    assert!(text.contains("1 of ") && text.contains(" promises broke, in "), "{text}");
}
