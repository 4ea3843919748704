//! An order: from a signal to an attempt whose state says whether the exchange has it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::{About, Timestamp};

/// Buy or sell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Side {
    /// Buy.
    Buy,
    /// Sell.
    Sell,
}

/// A strategy wants to trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Its id, which the strategy gives: the same signal twice is one signal.
    pub id: Uuid,
    /// Whose it is and what it is about.
    pub about: About,
    /// Buy or sell.
    pub side: Side,
    /// The price, in KRW.
    pub price: i64,
    /// The volume, in units of 1e-8.
    pub volume: i64,
}

impl Signal {
    /// The id of its intent.
    pub fn intent_id(&self) -> Uuid {
        intent_id(self.id)
    }

    /// Whether an intent says what it says. The trace is that of a request, and does not count.
    pub fn is_of(&self, intent: &Intent) -> bool {
        let about =
            About { trace: intent.about.trace.clone(), cause: intent.about.cause, ..self.about.clone() };
        (&about, self.side, self.price, self.volume)
            == (&intent.about, intent.side, intent.price, intent.volume)
    }
}

/// The id of the intent of a signal: a signal has one.
pub fn intent_id(signal: Uuid) -> Uuid {
    Uuid::new_v5(&signal, b"order_intent")
}

/// An order that everbit wants to be placed, exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Its id.
    pub id: Uuid,
    /// Whose it is and what it is about.
    pub about: About,
    /// Buy or sell.
    pub side: Side,
    /// The price, in KRW.
    pub price: i64,
    /// The volume, in units of 1e-8.
    pub volume: i64,
}

/// What the exchange knows an attempt by. No two attempts have the same.
pub fn identifier(intent: Uuid, attempt_no: i32) -> String {
    format!("{intent}-{attempt_no}")
}

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is about to be sent, or is under way. Written before the call.
    Requested,
    /// The exchange has it.
    Acked,
    /// The exchange does not have it, and will not.
    Rejected,
    /// The exchange was asked too often, and does not have it.
    Throttled,
    /// Nobody knows whether the exchange has it: to be reconciled, never to be sent again.
    Unknown,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Requested, Self::Acked, Self::Rejected, Self::Throttled, Self::Unknown];

    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "REQUESTED",
            Self::Acked => "ACKED",
            Self::Rejected => "REJECTED",
            Self::Throttled => "THROTTLED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// From what is stored.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether an attempt may go from here to there.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Requested => next != Self::Requested,
            Self::Unknown => matches!(next, Self::Acked | Self::Rejected | Self::Throttled),
            Self::Acked | Self::Rejected | Self::Throttled => false,
        }
    }

    /// Whether the attempt was given up as one that the exchange has no order of.
    pub fn is_without_order(self) -> bool {
        matches!(self, Self::Rejected | Self::Throttled)
    }
}

/// Why an attempt is in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It was sent.
    Sent,
    /// The exchange answered 2xx.
    Answered,
    /// The exchange answered 4xx.
    Refused,
    /// The exchange answered 429.
    TooMany,
    /// The exchange answered 5xx, broke off or did not answer in time.
    Unclear,
    /// The exchange knows the identifier already.
    Duplicate,
    /// The worker died, or was cut off, while it was under way.
    Interrupted,
    /// The exchange said, when it was asked again, that it has the order.
    Found,
    /// The exchange said, after the grace, that it does not have the order.
    NotFound,
    /// The kill switch was on.
    KillSwitch,
    /// It was given up and then sent all the same, by a worker that had stood still: the exchange has the order, or may have it.
    Stray,
}

impl Reason {
    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "SENT",
            Self::Answered => "ANSWERED",
            Self::Refused => "REFUSED",
            Self::TooMany => "TOO_MANY_REQUESTS",
            Self::Unclear => "UNCLEAR",
            Self::Duplicate => "DUPLICATE_IDENTIFIER",
            Self::Interrupted => "INTERRUPTED",
            Self::Found => "FOUND",
            Self::NotFound => "NOT_FOUND",
            Self::KillSwitch => "KILL_SWITCH",
            Self::Stray => "STRAY",
        }
    }
}

/// One attempt to place the order of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The intent.
    pub intent_id: Uuid,
    /// 1, 2, 3, …
    pub no: i32,
    /// Its state.
    pub status: Status,
    /// The id that the exchange gave the order.
    pub order_id: Option<String>,
    /// Whether it was sent after it was given up: an operator must look at the exchange.
    pub is_stray: bool,
    /// Since when it is in its state.
    pub since: Timestamp,
}

impl Attempt {
    /// What the exchange knows it by.
    pub fn identifier(&self) -> String {
        identifier(self.intent_id, self.no)
    }

    /// Whether it is certain that the exchange has no order of it, so that another attempt may be made.
    pub fn is_without_order(&self) -> bool {
        self.status.is_without_order() && !self.is_stray
    }
}

/// An order at the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The id that the exchange gave it.
    pub order_id: String,
    /// How much of it was executed, in units of 1e-8.
    pub executed: i64,
}

/// What the exchange says to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It has the order now: 2xx.
    Placed(Placed),
    /// It does not take the order: 4xx.
    Refused,
    /// It was asked too often: 429.
    Throttled,
    /// It has an order with this identifier already.
    Duplicate,
    /// It may or may not have the order: 5xx, a timeout, a broken connection.
    Unclear,
}

impl Reply {
    /// The state that follows, and why.
    pub fn verdict(&self) -> (Status, Reason) {
        match self {
            Self::Placed(_) => (Status::Acked, Reason::Answered),
            Self::Refused => (Status::Rejected, Reason::Refused),
            Self::Throttled => (Status::Throttled, Reason::TooMany),
            Self::Duplicate => (Status::Unknown, Reason::Duplicate),
            Self::Unclear => (Status::Unknown, Reason::Unclear),
        }
    }

    /// Whether the exchange has the order, or may have it.
    pub fn may_be_an_order(&self) -> bool {
        !self.verdict().0.is_without_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E11: once an attempt is settled, it stays as it is; what is unknown is settled and never sent again.
    #[test]
    fn a_settled_attempt_never_moves() {
        for (from, to) in Status::ALL.into_iter().flat_map(|from| Status::ALL.map(|to| (from, to))) {
            let allowed = match from {
                Status::Requested => to != Status::Requested,
                Status::Unknown => to != Status::Requested && to != Status::Unknown,
                _ => false,
            };
            assert_eq!(from.may_become(to), allowed, "{from:?} to {to:?}");
        }
        assert!(Status::ALL.iter().all(|status| Status::parse(status.as_str()) == Some(*status)));
    }
}
