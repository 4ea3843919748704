//! What may be wrong with any log.

use postrider_core::{Check, RelayInfo};

/// Of the subscriptions whose events nobody reads: of those without a holder, a JSON array of names, the ones that no relay runs. A relay
/// holds no lane that waits for a retry, or for a person.
pub fn lanes(unheld: Option<&str>, relays: &[RelayInfo]) -> Check {
    let mut names: Vec<String> = unheld
        .map(|names| serde_json::from_str(names).unwrap_or_else(|_| vec![names.to_owned()]))
        .unwrap_or_default();
    names.retain(|name| !relays.iter().any(|relay| relay.attends(name)));
    names.sort_unstable();
    if names.is_empty() {
        return Check::good("lanes", "every subscription with events to read has a relay");
    }
    Check::warn(
        "lanes",
        format!("no relay reads the waiting events of: {}", names.join(", ")),
        "start a relay with these subscriptions, or remove those that you don't need; until then retention can't remove their events",
    )
}

/// Of the consumers whose inbox has forgotten what a replay could bring again.
pub fn inbox(forgetful: Option<&str>) -> Check {
    match forgetful {
        None => Check::good("inbox", "it remembers every event in the log"),
        Some(names) => Check::warn(
            "inbox",
            format!("it has forgotten events that are still in the log and could be replayed, of: {names}"),
            "keep inbox marks at least as long as events; otherwise a replay needs --effects-may-repeat",
        ),
    }
}
