//! Deduplication within a batch.

use std::collections::HashMap;
use std::hash::Hash;

/// Which of several with one key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// The one that came first: for commands, which count once.
    First,
    /// The one that came last: for states, of which the newest counts.
    #[default]
    Last,
}

/// The events of a batch that were kept, and those that were dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique<E> {
    /// One of each key, in the order in which they came.
    pub kept: Vec<E>,
    /// The others, in the order in which they came.
    pub dropped: Vec<E>,
}

/// Keeps one event of each key, for handlers that take a `Vec` of them.
///
/// It promises that no two of `kept` have the same key, that every key is in `kept`, and that both lists are in the order of
/// the batch. It knows of this batch alone: what came in another one, in another process or before a restart is what an
/// inbox is for. (That an event id comes twice in one batch needs no helper: the consumer gives it to a handler once.)
///
/// ```
/// use postrider_kafka::{Keep, unique};
///
/// let prices = vec![("KRW-BTC", 1), ("KRW-ETH", 7), ("KRW-BTC", 2)];
/// let newest = unique(prices, Keep::Last, |price| price.0);
/// assert_eq!(newest.kept, [("KRW-ETH", 7), ("KRW-BTC", 2)]);
/// assert_eq!(newest.dropped, [("KRW-BTC", 1)]);
/// ```
///
/// A handler that drops events is responsible for them: `Ok` also confirms the dropped events.
pub fn unique<E, K: Eq + Hash>(events: Vec<E>, keep: Keep, key: impl Fn(&E) -> K) -> Unique<E> {
    let mut chosen: HashMap<K, usize> = HashMap::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        let place = chosen.entry(key(event)).or_insert(index);
        if keep == Keep::Last {
            *place = index;
        }
    }
    let mut is_kept = vec![false; events.len()];
    for index in chosen.into_values() {
        is_kept[index] = true;
    }
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for (event, is_kept) in events.into_iter().zip(is_kept) {
        if is_kept { kept.push(event) } else { dropped.push(event) }
    }
    Unique { kept, dropped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_key_is_kept_in_order_and_the_others_are_told() {
        let events = || vec![('a', 1), ('b', 2), ('a', 3), ('c', 4), ('b', 5)];
        let last = unique(events(), Keep::Last, |event| event.0);
        assert_eq!((last.kept, last.dropped), (vec![('a', 3), ('c', 4), ('b', 5)], vec![('a', 1), ('b', 2)]));
        let first = unique(events(), Keep::First, |event| event.0);
        assert_eq!(
            (first.kept, first.dropped),
            (vec![('a', 1), ('b', 2), ('c', 4)], vec![('a', 3), ('b', 5)])
        );
    }
}
