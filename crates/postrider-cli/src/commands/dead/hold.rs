//! What dead events hold up, in a sentence that is true whatever else waits.

use postrider::store::{Figures, Subscription};
use postrider::{OnDead, Order};

use crate::output;

/// What the dead events of a subscription hold up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing: there are none, or the subscription goes on without them.
    Nothing,
    /// Their keys. How many events wait behind them is not known: others wait for a retry, a relay or the destination.
    Keys(u64),
    /// Their lanes, in strict order, as above.
    Lanes(u64),
    /// So many events, and nothing else waits.
    Events {
        /// How many are dead.
        dead: u64,
        /// How many wait.
        waiting: u64,
    },
}

impl Hold {
    /// Of a subscription with these figures, while its destination is away or not.
    pub(crate) fn of(subscription: &Subscription, figures: &[Figures], away: bool) -> Self {
        let sum = |of: fn(&Figures) -> u64| figures.iter().map(of).sum::<u64>();
        let (dead, waiting) = (sum(|each| each.dead), sum(|each| each.waiting));
        if dead == 0 || subscription.on_dead != OnDead::Hold || subscription.order == Order::None {
            return Self::Nothing;
        }
        let failed = sum(|each| each.retrying).saturating_sub(waiting);
        let elsewhere = failed + sum(|each| each.processing) + sum(|each| each.due);
        match subscription.order {
            _ if waiting > 0 && elsewhere == 0 && !away => Self::Events { dead, waiting },
            Order::Strict => Self::Lanes(dead),
            _ => Self::Keys(dead),
        }
    }

    /// What to say, if anything is held up.
    pub(crate) fn sentence(self) -> Option<String> {
        let hold = |dead: u64, one: &str, many: &str| {
            let (holds, what) = if dead == 1 { ("holds its", one) } else { ("hold their", many) };
            format!("{} {holds} {what}", output::count(dead, "dead event"))
        };
        match self {
            Self::Nothing => None,
            Self::Keys(dead) => Some(hold(dead, "key", "keys")),
            Self::Lanes(dead) => Some(hold(dead, "lane", "lanes")),
            Self::Events { dead, waiting } => {
                let wait = if waiting == 1 { "waits" } else { "wait" };
                let (waiting, dead) = (output::count(waiting, "event"), output::count(dead, "dead event"));
                Some(format!("{waiting} {wait} behind {dead}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(retrying: u64, waiting: u64, due: u64, dead: u64) -> [Figures; 1] {
        [Figures { retrying, waiting, due, dead, ..Figures::default() }]
    }

    #[test]
    fn only_what_waits_behind_dead_events_is_counted_as_such() {
        let held = |figures: [Figures; 1], away: bool| {
            Hold::of(&Subscription::new("mail").on_dead(OnDead::Hold), &figures, away).sentence()
        };
        assert_eq!(held(figures(2, 2, 0, 1), false).as_deref(), Some("2 events wait behind 1 dead event"));
        assert_eq!(held(figures(1, 1, 0, 3), false).as_deref(), Some("1 event waits behind 3 dead events"));
        for (retrying, waiting, due, away) in
            [(3, 2, 0, false), (3, 3, 2, false), (2, 2, 0, true), (0, 0, 0, false)]
        {
            let said = held(figures(retrying, waiting, due, 1), away);
            assert_eq!(said.as_deref(), Some("1 dead event holds its key"), "{retrying} {waiting} {due}");
        }
        assert_eq!(held(figures(3, 2, 0, 2), false).as_deref(), Some("2 dead events hold their keys"));
        assert_eq!(held(figures(2, 2, 0, 0), false), None, "none is dead");
    }

    #[test]
    fn dead_events_that_are_skipped_hold_nothing() {
        let skips = Subscription::new("mail");
        assert_eq!(Hold::of(&skips, &figures(2, 2, 0, 1), false), Hold::Nothing);
        let unordered = Subscription::new("mail").order(Order::None).on_dead(OnDead::Hold);
        assert_eq!(Hold::of(&unordered, &figures(2, 2, 2, 1), false), Hold::Nothing);
        let strict = Subscription::new("mail").order(Order::Strict).on_dead(OnDead::Hold);
        assert_eq!(
            Hold::of(&strict, &figures(0, 0, 0, 1), false).sentence().as_deref(),
            Some("1 dead event holds its lane")
        );
    }
}
