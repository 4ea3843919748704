//! How much a lane takes at once: by bytes, so that a relay's memory does not depend on what is in the log.
//!
//! A store stops a read at a number of bytes ([`Lease::bytes`](postrider_core::Lease::bytes)). This module owns how many they are,
//! and how many rows are worth asking for: an answer that is cut off costs the store a connection.

use std::sync::atomic::{AtomicU64, Ordering};

use postrider_core::BATCH_BYTES;

/// However many lanes there are, each takes so much: the largest event that is usual.
const LEAST: u64 = 1 << 20;
/// How many lanes this process holds.
static LANES: AtomicU64 = AtomicU64::new(0);

/// A lane's share of the memory that this process has for events, for as long as it holds the lane. Each takes it twice: for the
/// batch in its hands, and for the one that it reads ahead.
pub(crate) struct Share(());

impl Share {
    pub(crate) fn take() -> Self {
        LANES.fetch_add(1, Ordering::AcqRel);
        Self(())
    }

    /// How many bytes of events to take at once.
    pub(crate) fn bytes(&self) -> u64 {
        share_of(LANES.load(Ordering::Acquire))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        LANES.fetch_sub(1, Ordering::AcqRel);
    }
}

fn share_of(lanes: u64) -> u64 {
    (BATCH_BYTES / lanes.max(1)).max(LEAST)
}

/// How many rows to ask for, as far as the events before tell.
#[derive(Debug, Default)]
pub(crate) struct Portion(Option<u32>);

/// Narrow events after wide ones are trusted step by step.
const GROWTH: u32 = 8;

impl Portion {
    /// So many, and `most` at most.
    pub(crate) fn rows(&self, most: u32) -> u32 {
        self.0.map_or(most, |rows| rows.min(most))
    }

    /// So many rows had so many bytes, of those that are `allowed`.
    pub(crate) fn had(&mut self, rows: u32, bytes: u64, allowed: u64, most: u32) {
        if rows == 0 {
            return;
        }
        // A quarter is left for those that are somewhat wider.
        let fit = (allowed / 4 * 3).saturating_mul(u64::from(rows)) / bytes.max(1);
        let fit = u32::try_from(fit).unwrap_or(u32::MAX).max(1);
        let grown = if self.0.is_some() { rows.saturating_mul(GROWTH) } else { u32::MAX };
        self.0 = Some(fit.min(grown)).filter(|rows| *rows < most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_events_are_asked_for_by_the_few_and_narrow_ones_as_before() {
        let mut portion = Portion::default();
        assert_eq!(portion.rows(1000), 1000);
        portion.had(1000, 300_000, 16 << 20, 1000);
        assert_eq!(portion.rows(1000), 1000);
        portion.had(16, 16 << 20, 16 << 20, 1000);
        assert_eq!(portion.rows(1000), 12, "three quarters of what is allowed");
        portion.had(12, 12 << 20, 16 << 20, 1000);
        assert_eq!(portion.rows(1000), 12);
        let grown: Vec<u32> = (0..3)
            .map(|_| {
                let rows = portion.rows(1000);
                portion.had(rows, u64::from(rows) * 300, 16 << 20, 1000);
                portion.rows(1000)
            })
            .collect();
        assert_eq!(grown, [96, 768, 1000]);
        portion.had(1, 40 << 20, 16 << 20, 1000);
        assert_eq!(portion.rows(1000), 1, "one is always read");
    }

    #[test]
    fn lanes_share_what_a_process_has_for_events() {
        assert_eq!([0, 1, 2, 4, 16, 100].map(|lanes| share_of(lanes) >> 20), [16, 16, 8, 4, 1, 1]);
    }
}
