//! Keeps the lease of a lane, and derives the store's time from it.

use std::time::Instant;

use postrider_core::{Lease, LeaseStatus, OffsetDateTime, Position, Result};

use crate::engine::lane::{Halt, Lane};

impl Lane {
    /// When the lease has to be extended.
    pub(crate) fn extend_at(&self) -> Instant {
        self.extended + self.runtime.settings.lease / 3
    }

    /// When what is under way is cut off: the relay stops, and its grace counts from when this lane first heard of it.
    pub(crate) fn give_up_at(&mut self) -> Instant {
        *self.give_up.get_or_insert_with(|| Instant::now() + self.runtime.settings.grace)
    }

    /// Whether the lease may have run out: nothing may be done under it any more.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.extended.elapsed() >= self.runtime.settings.lease
    }

    /// Extends the lease.
    pub(crate) async fn extend(&mut self) -> Result<(), Halt> {
        let asked = Instant::now();
        let status = self.runtime.store.extend(&mut self.lease, self.runtime.settings.lease, None).await?;
        self.extended_as(asked, status)
    }

    pub(crate) fn extended_as(&mut self, asked: Instant, status: LeaseStatus) -> Result<(), Halt> {
        if status == LeaseStatus::Lost {
            return Err(Halt::Lost);
        }
        self.recalled |= status == LeaseStatus::Recalled;
        self.extended = asked;
        self.lapse.send_replace(asked + self.runtime.settings.lease);
        self.refreshed = Instant::now();
        if self.lease.open {
            self.due.soon();
        }
        Ok(())
    }

    /// The store's time, as far as it can be told without asking.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.runtime
            .clock
            .now()
            .unwrap_or_else(|| self.lease.until - self.runtime.settings.lease + self.extended.elapsed())
    }

    pub(crate) async fn extend_if_it_answers(&mut self, reading: Option<&Position>) -> Result<(), Halt> {
        let mut lease = self.lease.clone();
        let asked = Instant::now();
        let status = self.runtime.store.extend(&mut lease, self.runtime.settings.lease, reading).await;
        self.extended_by(asked, (lease, status))
    }

    pub(crate) fn extended_by(
        &mut self,
        asked: Instant,
        (lease, status): (Lease, Result<LeaseStatus>),
    ) -> Result<(), Halt> {
        match status {
            Ok(status) => {
                self.lease = lease;
                self.extended_as(asked, status)
            }
            Err(error) => {
                self.runtime.outage.begins(&error);
                if self.is_out_of_time() { Err(Halt::Lost) } else { Ok(()) }
            }
        }
    }
}
