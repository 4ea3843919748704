//! Chance, from a number that is printed, so that a bad round can be looked at again.

use std::time::Duration;

use postrider::Uuid;

/// A small generator of random numbers.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall the same way for the same number.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Dice that fall anew each time; the number they came from is written to stderr, which a failed test shows.
    pub fn thrown() -> Self {
        let (seed, _) = Uuid::new_v4().as_u64_pair();
        eprintln!("the dice are Dice::new({seed})");
        Self::new(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }

    /// Whether one of `of` cases has come.
    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// Up to so many milliseconds.
    pub fn millis(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.below(most * 1000))
    }
}
