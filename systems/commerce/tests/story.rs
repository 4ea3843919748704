//! The story, as a user runs it.

use std::process::Command;

/// C17, X1: the whole story runs, and every promise of it holds.
#[test]
fn the_story_is_told_and_every_promise_holds() {
    let output = Command::new(env!("CARGO_BIN_EXE_commerce")).arg("story").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("Every promise held"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
