//! The story, told in a process of its own.

use std::process::Command;

/// L2, L3, L5, L8, L9, L15, L17: debits = credits and read model = balances, at the end of a run with a broker outage, two relays
/// killed, a lost answer, a dead event and conflicts of the optimistic lock.
#[test]
fn the_story_keeps_every_promise() {
    let output = Command::new(env!("CARGO_BIN_EXE_ledger")).arg("story").output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{errors}");
    assert!(told.contains("Every promise held"), "{told}");
    for promise in
        ["debits = credits", "read model = balances", "writers had to begin again (optimistic lock)"]
    {
        assert!(told.contains(&format!("ok       {promise}")), "{promise}: {told}");
    }
    for killed in ["Kafka was killed", "relay-1 was killed", "relay-2 was killed"] {
        assert!(told.contains(killed), "{killed}: {told}");
    }
}
