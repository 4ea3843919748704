//! The keys that a failure blocks while a batch is delivered.

use std::collections::HashSet;

use crate::{Order, Recorded};

/// Which later events are blocked by the failures of a delivery so far: those of a key, all, or none.
///
/// Keys are compared by their [hash](Recorded::key_hash). If two have the same hash, one waits for the other, which is harmless.
#[derive(Debug, Clone)]
pub struct HeldKeys {
    order: Order,
    all: bool,
    keys: HashSet<u64>,
}

impl HeldKeys {
    /// Nothing has failed yet.
    pub fn new(order: Order) -> Self {
        Self { order, all: false, keys: HashSet::new() }
    }

    /// Notes that this event failed.
    pub fn failed(&mut self, event: &Recorded) {
        match self.order {
            Order::Key => {
                self.keys.insert(event.key_hash());
            }
            Order::Strict => self.all = true,
            Order::None => {}
        }
    }

    /// Whether this event, which follows the failed ones, must wait.
    pub fn holds(&self, event: &Recorded) -> bool {
        self.all || (!self.keys.is_empty() && self.keys.contains(&event.key_hash()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::recorded::tests::event;

    #[test]
    fn a_failure_holds_its_key_or_everything_or_nothing() {
        for (order, own, other) in
            [(Order::Key, true, false), (Order::Strict, true, true), (Order::None, false, false)]
        {
            let mut stopped = HeldKeys::new(order);
            assert!(!stopped.holds(&event("a")), "{order}: nothing has failed");
            stopped.failed(&event("a"));
            assert_eq!((stopped.holds(&event("a")), stopped.holds(&event("b"))), (own, other), "{order}");
        }
    }
}
