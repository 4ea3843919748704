//! What a lane says of its destination, for operators: that it is away and why, until it is back.

use postrider_core::{Position, Unavailable};

use crate::engine::lane::{Halt, Lane};

impl Lane {
    /// The destination is away: the next extension says so.
    pub(crate) fn note_away(&mut self, reason: &Unavailable) {
        self.lease.away = Some(reason.reason.clone());
    }

    /// Takes the word back once the destination is found to be back, by this lane or another. `reading` is how far the lane is
    /// reading.
    pub(crate) async fn note_back(&mut self, reading: Option<&Position>) -> Result<(), Halt> {
        if self.lease.away.is_some() && !self.runtime.breaker.is_open() {
            self.lease.away = None;
            self.prolong_if_it_answers(reading).await?;
        }
        Ok(())
    }
}
