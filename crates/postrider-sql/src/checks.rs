//! What may be wrong with any log.

use postrider_core::Check;

/// Of the subscriptions whose events nobody reads.
pub fn lanes(unheld: Option<&str>) -> Check {
    match unheld {
        None => Check::good("lanes", "every lane with events to read has a holder"),
        Some(names) => Check::warn(
            "lanes",
            format!("no relay reads the waiting events of: {names}"),
            "start a relay with these subscriptions, or remove those that you don't need; until then retention can't remove their events",
        ),
    }
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
