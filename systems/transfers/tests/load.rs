//! The measured load as an operator runs it, `transfers load`, in a test program that runs alone.
//!
//! It has servers of its own whose commits wait for the disk. The short form runs the program that the tests were built with, at a rate that
//! any machine records; with `POSTRIDER_SOAK` it is the release build, at the documents' rate.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::workspace;

/// The programs as they are deployed.
fn release() -> PathBuf {
    let mut build = workspace::cargo();
    build.args(["build", "--release", "-p", "transfers", "-p", "postrider-cli", "--bins"]);
    assert!(build.status().expect("cargo runs").success(), "the release build fails");
    workspace::target().join("release").join("transfers")
}

/// What `transfers load` says; it fails if something was lost or analysed twice.
fn load(program: &Path, rate: u32, seconds: u32) -> String {
    let mut load = Command::new(program);
    load.arg("load").args(["--rate", &rate.to_string()]).args(["--seconds", &seconds.to_string()]);
    let output = load.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "lost, or analysed twice: {said}\n{errors}");
    said
}

/// T10: two relays and fraud detection on the machine, one relay killed halfway: nothing is lost, and each transfer is analysed once. It
/// says whether the documents' 500 ms and our 100 ms were met; a time that was missed does not fail.
#[test]
fn a_measured_load_loses_nothing_and_says_which_times_were_met() {
    let said = if std::env::var_os("POSTRIDER_SOAK").is_some() {
        load(&release(), 1000, 30)
    } else {
        load(Path::new(env!("CARGO_BIN_EXE_transfers")), 100, 4)
    };
    for limit in ["what the documents ask for", "our aim", "transfers a second were asked for"] {
        let line = said.lines().find(|line| line.contains(limit));
        let line = line.unwrap_or_else(|| panic!("nothing is said of {limit}: {said}"));
        assert!(line.contains("met") || line.contains("missed"), "{line}");
    }
}
