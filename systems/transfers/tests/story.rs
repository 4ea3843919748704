//! The story, as somebody runs it.

use std::process::Command;

/// T1, T4, T12: the story of the whole system, with everything that it kills.
#[test]
fn the_story_holds_every_promise() {
    let output = Command::new(env!("CARGO_BIN_EXE_transfers")).arg("story").output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}{errors}");
    assert!(told.contains("Every promise held") && !told.contains("BROKEN"), "{told}{errors}");
}
