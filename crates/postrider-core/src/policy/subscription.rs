//! A named reader of the log.

use std::fmt;
use std::str::FromStr;

use time::OffsetDateTime;

use crate::{Error, ErrorKind, Limits, Result};

/// A named reader of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name.
    pub name: String,
    /// The events that it reads.
    pub filter: Filter,
    /// The number of lanes that its keys are distributed over.
    pub lanes: u32,
    /// Where a new subscription starts.
    pub start: Start,
    /// What a failing event blocks.
    pub order: Order,
    /// What happens to a key when one of its events dies.
    pub on_dead: OnDead,
    /// Whether operators may replay it.
    pub replay: bool,
}

impl Subscription {
    /// A subscription to everything from the beginning, in one lane, ordered by key.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            filter: Filter::default(),
            lanes: Self::LANES,
            start: Start::Beginning,
            order: Order::Key,
            on_dead: OnDead::Skip,
            replay: true,
        }
    }

    /// Sets the number of lanes.
    #[must_use]
    pub fn lanes(mut self, lanes: u32) -> Self {
        self.lanes = lanes;
        self
    }

    /// Only events of these streams; `*` matches any characters.
    #[must_use]
    pub fn streams<S: Into<String>>(mut self, streams: impl IntoIterator<Item = S>) -> Self {
        self.filter.streams = streams.into_iter().map(Pattern::new).collect();
        self
    }

    /// Only events of these types; `*` matches any characters.
    #[must_use]
    pub fn types<S: Into<String>>(mut self, types: impl IntoIterator<Item = S>) -> Self {
        self.filter.types = types.into_iter().map(Pattern::new).collect();
        self
    }

    /// Sets where a new subscription starts.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets what a failing event blocks.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets what happens to a key when one of its events dies.
    #[must_use]
    pub fn on_dead(mut self, on_dead: OnDead) -> Self {
        self.on_dead = on_dead;
        self
    }

    /// Sets whether operators may replay it. Default: they may.
    #[must_use]
    pub fn replay(mut self, allowed: bool) -> Self {
        self.replay = allowed;
        self
    }

    /// Checks that a store can keep it.
    pub fn check(&self) -> Result<()> {
        let invalid = |message| Err(Error::new(ErrorKind::Invalid, "subscribe", message));
        if self.name.is_empty() || self.name.len() > Limits::NAME || self.name.contains('\0') {
            return invalid(format!(
                "a subscription's name must have 1 to {} bytes and no NUL character",
                Limits::NAME
            ));
        }
        let name = &self.name;
        if self.lanes == 0 || self.lanes > Self::MOST_LANES {
            let (lanes, most) = (self.lanes, Self::MOST_LANES);
            return invalid(format!(
                "subscription {name:?}: lanes must be between 1 and {most}, not {lanes}"
            ));
        }
        if self.filter.streams.iter().chain(&self.filter.types).any(|pattern| pattern.as_str().contains('\0'))
        {
            return invalid(format!(
                "subscription {name:?}: a pattern of its filter must not contain a NUL character"
            ));
        }
        Ok(())
    }

    /// The default number of lanes.
    pub const LANES: u32 = 1;

    /// The default number of events per read, for sinks without a [batch size](crate::Sink::batch) of their own.
    pub const BATCH: u32 = 1000;

    /// Checks that a subscription can have this many lanes.
    pub fn check_lanes(lanes: u32, op: &'static str) -> Result<()> {
        if lanes == 0 || lanes > Self::MOST_LANES {
            let message = format!("lanes must be between 1 and {}, not {lanes}", Self::MOST_LANES);
            return Err(Error::new(ErrorKind::Invalid, op, message));
        }
        Ok(())
    }

    /// The error of a subscription that does not exist.
    pub fn unknown(name: &str, op: &'static str) -> Error {
        Error::new(ErrorKind::NotFound, op, format!("there is no subscription {name:?}; subscribe first"))
    }

    /// The error of a subscription that must not be removed, because a relay holds one of its lanes.
    pub fn held(name: &str, owner: &str) -> Error {
        let message = format!("{owner:?} holds a lane of {name:?}; stop its relays first, or force it");
        Error::new(ErrorKind::Refused, "remove", message)
    }

    /// Maximum number of lanes: each of them scans the log.
    pub const MOST_LANES: u32 = 256;
}

/// The events that a subscription reads. An empty list of patterns matches all.
///
/// ```
/// # mod postrider { pub mod store { pub use postrider_core::*; } }
/// use postrider::store::{Filter, Pattern};
///
/// # fn main() {
/// let filter = Filter { streams: vec![Pattern::new("orders")], types: vec![Pattern::new("Order*")] };
/// assert!(filter.wants("orders", "OrderPaid"));
/// assert!(!filter.wants("orders", "InvoiceSent"));
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The streams.
    pub streams: Vec<Pattern>,
    /// The event types.
    pub types: Vec<Pattern>,
}

impl Filter {
    /// Whether it matches everything.
    pub fn is_all(&self) -> bool {
        let all = |patterns: &[Pattern]| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.as_str() == "*")
        };
        all(&self.streams) && all(&self.types)
    }

    /// Whether it matches an event of this stream and type.
    pub fn wants(&self, stream: &str, event_type: &str) -> bool {
        let wants = |patterns: &[Pattern], name| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name))
        };
        wants(&self.streams, stream) && wants(&self.types, event_type)
    }
}

/// A pattern in which `*` matches any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As an SQL `LIKE` pattern with `\` as its escape character.
    pub fn to_like(&self) -> String {
        let mut like = String::with_capacity(self.0.len());
        for character in self.0.chars() {
            match character {
                '*' => like.push('%'),
                '%' | '_' | '\\' => like.extend(['\\', character]),
                other => like.push(other),
            }
        }
        like
    }

    /// The reverse of [`to_like`](Pattern::to_like).
    pub fn from_like(like: &str) -> Self {
        let mut text = String::with_capacity(like.len());
        let mut characters = like.chars();
        while let Some(character) = characters.next() {
            match character {
                '%' => text.push('*'),
                '\\' => text.extend(characters.next()),
                other => text.push(other),
            }
        }
        Self(text)
    }

    /// Whether it matches a name.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

/// Where a new subscription starts.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::Start;
///
/// # let s = postrider::Subscription::new("ledger");
/// // In `relay.subscribe("ledger", |s| …)`:
/// let s = s.start(Start::Now);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the oldest event in the log.
    Beginning,
    /// With events that are committed from now on.
    Now,
    /// With events that were recorded at this time or later.
    At(OffsetDateTime),
}

/// What a failing event blocks.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::Order;
///
/// # let s = postrider::Subscription::new("ledger");
/// // In `relay.subscribe("ledger", |s| …)`:
/// let s = s.order(Order::Strict);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Later events of its key; other keys go on.
    Key,
    /// Its whole lane.
    Strict,
    /// Nothing.
    None,
}

/// What happens to a key when one of its events dies.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::OnDead;
///
/// # let s = postrider::Subscription::new("ledger");
/// // In `relay.subscribe("ledger", |s| …)`:
/// let s = s.on_dead(OnDead::Hold);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDead {
    /// The key goes on without it.
    Skip,
    /// The key waits until an operator acts.
    Hold,
}

macro_rules! words {
    ($type:ident, $($variant:ident = $word:literal),+) => {
        impl $type {
            /// The word for it, in settings and in stores.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl FromStr for $type {
            type Err = Error;
            fn from_str(word: &str) -> Result<Self> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(Error::new(
                        ErrorKind::Invalid,
                        "parse",
                        format!("{word:?} must be one of {}", [$($word),+].join(", ")),
                    )),
                }
            }
        }
    };
}
pub(crate) use words;

words!(Order, Key = "key", Strict = "strict", None = "none");
words!(OnDead, Skip = "skip", Hold = "hold");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, name, fits) in [
            ("orders", "orders", true),
            ("orders", "orders.eu", false),
            ("*", "", true),
            ("orders.*", "orders.eu", true),
            ("*.paid.*", "loopers.order.paid.v1", true),
            ("a*b*c", "abbc", true),
            ("a*bc", "abc", true),
            ("ab*ba", "aba", false),
            ("100%", "1000", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), fits, "{pattern} on {name}");
        }
    }

    #[test]
    fn a_like_pattern_escapes_what_sql_would_take_as_a_wildcard() {
        assert_eq!(Pattern::new(r"a_b%c\*").to_like(), r"a\_b\%c\\%");
        assert_eq!(Pattern::from_like(r"a\_b\%c\\%"), Pattern::new(r"a_b%c\*"));
    }

    #[test]
    fn zero_lanes_are_refused() {
        assert!(Subscription::new("s").lanes(0).check().is_err());
        assert!(Subscription::new("").check().is_err());
    }
}
