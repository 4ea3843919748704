//! What fraud detection thinks of a transfer: a stub of its rules.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::TransferCompleteEvent;

/// A transfer of so much, in won, is looked at.
pub const LARGE: i64 = 10_000_000;
/// More transfers of one sender than this, within [`WINDOW`], are fast.
pub const FAST: u32 = 5;
/// In milliseconds.
pub const WINDOW: i64 = 60_000;
/// From this score on somebody has to look.
pub const FLAGGED: i32 = 60;

/// An event as fraud detection gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The event's id, by which a repetition is known.
    pub event_id: Uuid,
    /// The transfer.
    pub transfer: TransferCompleteEvent,
    /// Where it comes from: source, trace, and what else the publisher said.
    pub headers: BTreeMap<String, String>,
}

/// The result of an analysis, kept once for each event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RiskLog {
    /// What was analysed.
    pub observed: Observed,
    /// From 0 to 100.
    pub score: i32,
}

impl RiskLog {
    /// Whether somebody has to look at it.
    pub fn is_flagged(&self) -> bool {
        self.score >= FLAGGED
    }
}

/// When the window of a transfer at this time begins.
pub fn since(at: i64) -> i64 {
    at.saturating_sub(WINDOW)
}

/// Analyses a transfer. `recent` is how many its sender made within [`WINDOW`] before it.
pub fn analyze_transfer(observed: Observed, recent: u32) -> RiskLog {
    let by_amount = if observed.transfer.amount >= LARGE { 60 } else { 0 };
    let by_speed = if recent >= FAST { 40 } else { 0 };
    RiskLog { observed, score: by_amount + by_speed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(amount: i64) -> Observed {
        let transfer = TransferCompleteEvent {
            transaction_id: Uuid::nil(),
            from_account: "a".into(),
            to_account: "b".into(),
            amount,
            memo: String::new(),
            completed_at: 0,
        };
        Observed { event_id: Uuid::nil(), transfer, headers: BTreeMap::new() }
    }

    #[test]
    fn amount_and_speed_make_the_score() {
        let score = |amount, recent| analyze_transfer(observed(amount), recent).score;
        assert_eq!([score(1, 0), score(LARGE - 1, FAST - 1)], [0, 0]);
        assert_eq!([score(LARGE, 0), score(1, FAST), score(LARGE, FAST)], [60, 40, 100]);
        assert!(analyze_transfer(observed(LARGE), 0).is_flagged());
        assert!(!analyze_transfer(observed(1), FAST).is_flagged());
    }
}
