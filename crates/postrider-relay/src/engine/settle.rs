//! Settles a batch: writes its results.

use std::time::Instant;

use postrider_core::{ErrorKind, Lease, LeaseStatus};

use crate::engine::lane::{Halt, Lane, backoff};
use crate::engine::work::{Work, may_be_of_an_event};

impl Lane {
    /// Writes what became of events; asks again while the answer is in doubt.
    pub(crate) async fn settle(&mut self, mut work: Work) -> Result<(), Halt> {
        if work.is_untouched() && (self.recalled || self.runtime.is_stopping()) {
            // Nothing of it was tried: the next holder reads it again.
            return Ok(());
        }
        work.close();
        if work.is_empty() {
            return Ok(());
        }
        self.write(&mut work).await?;
        self.settled(work).await;
        Ok(())
    }

    /// Writes it, and asks again while the answer is in doubt.
    async fn write(&mut self, work: &mut Work) -> Result<(), Halt> {
        let mut backoff = backoff();
        let (mut in_doubt, mut stopping_since) = (false, None::<Instant>);
        loop {
            let error = match self.runtime.store.settle(&mut self.lease, &work.settlement).await {
                Ok(status) if status != LeaseStatus::Lost => {
                    self.recalled |= status == LeaseStatus::Recalled;
                    return Ok(());
                }
                Ok(_) if in_doubt && self.was_written(work).await => return Ok(()),
                Ok(_) => return Err(self.lost(work, in_doubt)),
                Err(error) if error.kind() == ErrorKind::LeaseLost => {
                    if in_doubt && self.was_written(work).await {
                        return Ok(());
                    }
                    return Err(self.lost(work, in_doubt));
                }
                // What was delivered can't be delivered once more: it had been written, and only the answer was lost.
                Err(error) if in_doubt && error.kind() == ErrorKind::Invalid => {
                    tracing::debug!(error = %error, "already settled");
                    return Ok(());
                }
                Err(error) => error,
            };
            // It may have been moved before the answer was lost.
            self.lease.position = work.settlement.from.clone();
            self.runtime.outage.begins(&error);
            if may_be_of_an_event(&error) && !in_doubt {
                work.write_one_by_one(&error);
            }
            in_doubt |= error.kind() != ErrorKind::Invalid;
            if self.runtime.is_stopping() {
                let since = *stopping_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= self.runtime.settings.grace {
                    return Err(Halt::Failed(error));
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
            if self.is_out_of_time() {
                return Err(self.lost(work, in_doubt));
            }
            match self.extend().await {
                Err(Halt::Lost) if in_doubt && self.was_written(work).await => return Ok(()),
                Err(Halt::Lost) => return Err(self.lost(work, in_doubt)),
                // The lane was to move, and still stands where it stood: it was not written.
                Ok(()) if work.next.is_some() => in_doubt = false,
                _ => {}
            }
        }
    }

    /// It is written: what follows for the lane.
    async fn settled(&mut self, mut work: Work) {
        self.refreshed = Instant::now();
        self.due.after(&work.settlement.deliveries);
        let now = self.now();
        self.stats.settled(&work, &self.lease, now);
        if work.next.is_some() {
            self.left_open = work.open_keys(self.runtime.on_dead);
        }
        let read = work.next.is_some();
        // Their rows are written.
        self.flights.append(&mut work.flights);
        if read {
            let moment = std::mem::take(&mut self.moment);
            if !moment.is_zero() && self.ahead.is_none() {
                self.runtime.rest(moment).await;
            }
        }
    }

    /// A settle was not answered, and the lane does not stand where it stood. Whether it was written: then the lane stands where it was
    /// to move to, still under this lease, and what runs goes on.
    async fn was_written(&mut self, work: &Work) -> bool {
        if work.settlement.from == work.settlement.to {
            return false;
        }
        let mut lease = Lease { position: work.settlement.to.clone(), ..self.lease.clone() };
        let asked = Instant::now();
        match self.runtime.store.extend(&mut lease, self.runtime.settings.lease, None).await {
            Ok(status) if status != LeaseStatus::Lost => {
                self.lease = lease;
                self.extended_as(asked, status).is_ok()
            }
            _ => false,
        }
    }

    /// The lane is lost. Whether the last settle was written may never be known: a death that may have been is told.
    fn lost(&mut self, work: &Work, in_doubt: bool) -> Halt {
        if in_doubt {
            self.stats.deaths(work);
        }
        Halt::Lost
    }
}
