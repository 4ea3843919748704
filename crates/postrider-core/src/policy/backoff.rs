//! Delays that double: how long to leave something alone that failed, and for how much longer the next time.

use std::time::Duration;

use uuid::Uuid;

/// Delays that double from the first one up to the longest.
///
/// It is for what is tried until it works, such as a connection. When an *event* is tried again is decided by
/// [`Retry`](crate::Retry).
///
/// ```
/// use std::time::Duration;
/// use postrider_core::Backoff;
///
/// let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(3));
/// assert_eq!(backoff.next_delay(), Duration::from_secs(1));
/// assert_eq!(backoff.next_delay(), Duration::from_secs(2));
/// assert_eq!(backoff.next_delay(), Duration::from_secs(3));
/// backoff.reset();
/// assert_eq!(backoff.next_delay(), Duration::from_secs(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Begins with `first`, or with `longest` if that is shorter.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let first = first.min(longest);
        Self { first, longest, next: first }
    }

    /// The delay to wait now. The one after it is twice as long, up to the longest.
    pub fn next_delay(&mut self) -> Duration {
        self.next_delay_up_to(self.longest)
    }

    /// The same where no delay may be longer than `most` this time.
    pub fn next_delay_up_to(&mut self, most: Duration) -> Duration {
        let most = most.min(self.longest);
        let delay = self.next.min(most);
        self.next = delay.saturating_mul(2).min(most);
        delay
    }

    /// Begins with the first delay again: it worked.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// A random number from 0 to 1, for jitter.
#[doc(hidden)]
pub fn chance() -> f64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    (high >> 32) as f64 / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_the_longest_and_start_again() {
        let mut backoff = Backoff::new(SECOND, 5 * SECOND);
        let delays: Vec<_> = (0..5).map(|_| backoff.next_delay().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.next_delay(), SECOND);
    }

    #[test]
    fn a_delay_can_be_limited_once_more() {
        let mut backoff = Backoff::new(SECOND, Duration::MAX);
        let delays = [8, 8, 3, 3, 8].map(|most| backoff.next_delay_up_to(most * SECOND).as_secs());
        assert_eq!(delays, [1, 2, 3, 3, 3]);
    }

    #[test]
    fn no_delay_is_longer_than_the_longest_and_none_overflows() {
        assert_eq!(Backoff::new(2 * SECOND, SECOND).next_delay(), SECOND);
        let mut backoff = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!((backoff.next_delay(), backoff.next_delay()), (Duration::MAX, Duration::MAX));
    }

    #[test]
    fn chances_are_between_none_and_certain() {
        assert!((0..1000).map(|_| chance()).all(|chance| (0.0..=1.0).contains(&chance)));
    }
}
