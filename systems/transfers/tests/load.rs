//! The measured load as an operator runs it, `transfers load`, in a test program that runs alone.
//!
//! It has servers of its own whose commits wait for the disk. The short form runs the program that the tests were built with, at a rate that
//! any machine records; with `POSTRIDER_SOAK` it is the release build, at the documents' rate, and the documents' time must be met. On a machine
//! that does not record so many, `POSTRIDER_LOAD_RATE` says how many it does.

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

/// What is said of a limit: whether it was met, and the p99 in milliseconds if the line has one.
fn verdict(said: &str, limit: &str) -> (bool, Option<f64>) {
    let line = said.lines().find(|line| line.contains(limit));
    let line = line.unwrap_or_else(|| panic!("nothing is said of {limit}: {said}"));
    let is_met = match line.split_whitespace().next() {
        Some("met") => true,
        Some("missed") => false,
        _ => panic!("neither met nor missed: {line}"),
    };
    let p99 = line.split_once("p99 ").and_then(|(_, rest)| rest.split_once(" ms"));
    (is_met, p99.and_then(|(number, _)| number.parse().ok()))
}

/// T10: two relays and fraud detection on the machine, one relay killed halfway: nothing is lost, and each transfer is analysed once. What it
/// says of the documents' 500 ms and our 100 ms is what it measured. In the long form the rate and the 500 ms must be met, outside of the
/// take-over; our 100 ms are an aim, and may be missed.
#[test]
fn a_measured_load_loses_nothing_and_says_which_times_were_met() {
    let is_long = std::env::var_os("POSTRIDER_SOAK").is_some();
    let said = if is_long {
        let rate = std::env::var("POSTRIDER_LOAD_RATE").ok();
        let rate = rate.map_or(1000, |rate| rate.parse().expect("POSTRIDER_LOAD_RATE must be a number"));
        load(&release(), rate, 30)
    } else {
        load(Path::new(env!("CARGO_BIN_EXE_transfers")), 100, 4)
    };
    let (at_rate, _) = verdict(&said, "transfers a second were asked for");
    let (in_time, p99) = verdict(&said, "500 ms is what the documents ask for");
    let p99 = p99.expect("the p99");
    assert_eq!(in_time, p99 < 500.0, "{said}");
    assert_eq!(verdict(&said, "100 ms is our aim"), (p99 < 100.0, Some(p99)), "{said}");
    assert!(!is_long || at_rate && in_time, "the rate or the 500 ms were missed: {said}");
}
