//! How many events of the log a new subscription will receive.

use std::fmt;

use crate::{Figures, Inspect, Result};

/// [`figures`](Inspect::figures) scans no more rows than these.
const COUNTED: u64 = 1_000_000;

/// The events that are already in the log and that a new subscription will receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// How many there are, at least.
    pub events: u64,
    /// Whether there are no more: of a long log only the beginning is counted.
    pub exact: bool,
}

impl History {
    /// Counts them, before anything was delivered.
    pub async fn of(store: &(impl Inspect + ?Sized), subscription: &str) -> Result<Self> {
        let figures = store.figures(subscription).await?;
        let known = store.subscriptions().await?;
        let lanes =
            known.iter().filter(|info| info.subscription.name == subscription).flat_map(|info| &info.lanes);
        let rows = lanes.map(|lane| lane.behind).max().unwrap_or(0);
        Ok(Self { events: figures.iter().map(Figures::undelivered).sum(), exact: rows < COUNTED })
    }

    /// Whether the log has nothing for it, for certain.
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.exact
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.exact { "" } else { "at least " }, self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_empty_only_if_all_of_it_was_counted() {
        let history = |events, exact| History { events, exact };
        assert!(history(0, true).is_empty());
        assert!(!history(0, false).is_empty(), "what was not counted may be for it");
        assert!(!history(1, true).is_empty());
        assert_eq!(
            (history(4, true).to_string(), history(0, false).to_string()),
            ("4".into(), "at least 0".into())
        );
    }
}
