//! What may take long, while the lease is kept: reading, and looking for what is due.
//!
//! A settle is not among them: it holds its lane's row, and a lease could not be prolonged beside it. It is one short statement, and
//! given up with the lease.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use postrider_core::{Batch, DueBatch, Lease, LeaseStatus, Position, Result};
use tokio::task::JoinHandle;

use crate::engine::lane::{Halt, Lane};

/// The lease being prolonged: when that was asked for, and what comes of it.
pub(crate) struct Prolonging {
    asked: Instant,
    task: JoinHandle<(Lease, Result<LeaseStatus>)>,
}

impl Lane {
    /// Reads what follows the lane's position.
    pub(crate) async fn read_on(&mut self, limit: u32) -> Result<Batch, Halt> {
        let (runtime, lease) = (Arc::clone(&self.runtime), self.lease.clone());
        self.keeping_lease(async move { runtime.store.read(&lease, &lease.position, limit).await }).await
    }

    /// Looks for what is due.
    pub(crate) async fn due_now(&mut self, limit: u32) -> Result<DueBatch, Halt> {
        let (runtime, lease) = (Arc::clone(&self.runtime), self.lease.clone());
        self.keeping_lease(async move { runtime.store.due(&lease, limit).await }).await
    }

    /// Waits for a call of the store, and prolongs the lease beside it for as long as that takes. Gives the lane up when the lease
    /// runs out meanwhile: the call is dropped then.
    pub(crate) async fn keeping_lease<T>(
        &mut self,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T, Halt> {
        let lease = self.runtime.settings.lease;
        let mut call = pin!(call);
        let mut prolonging: Option<Prolonging> = None;
        let mut ask_again = self.prolong_at();
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut call => break answer,
                prolonged = joined(&mut prolonging), if prolonging.is_some() => {
                    self.apply_extension(prolonged)?;
                    ask_again = self.prolong_at().max(Instant::now() + lease / 20);
                }
                () = tokio::time::sleep_until(ask_again.into()), if prolonging.is_none() => {
                    prolonging = Some(self.begin_extension(None));
                }
                () = tokio::time::sleep_until((self.prolonged + lease).into()) => return Err(Halt::Lost),
            }
        };
        // The lease must be the one that the database knows.
        if prolonging.is_some() {
            let prolonged = joined(&mut prolonging).await;
            self.apply_extension(prolonged)?;
        }
        Ok(answer?)
    }

    /// Begins to prolong the lease. `reading` is how far the lane is reading.
    pub(crate) fn begin_extension(&self, reading: Option<&Position>) -> Prolonging {
        let (runtime, mut lease, reading) = (Arc::clone(&self.runtime), self.lease.clone(), reading.cloned());
        let task = tokio::spawn(async move {
            let status = runtime.store.extend(&mut lease, runtime.settings.lease, reading.as_ref()).await;
            (lease, status)
        });
        Prolonging { asked: Instant::now(), task }
    }

    /// The lease was prolonged, or was not.
    pub(crate) fn apply_extension(
        &mut self,
        prolonged: Option<(Instant, Lease, Result<LeaseStatus>)>,
    ) -> Result<(), Halt> {
        match prolonged {
            Some((asked, lease, status)) => self.prolonged_by(asked, (lease, status)),
            None => Ok(()),
        }
    }
}

/// What came of it, once it is known.
pub(crate) async fn joined(
    prolonging: &mut Option<Prolonging>,
) -> Option<(Instant, Lease, Result<LeaseStatus>)> {
    let Prolonging { asked, task } = prolonging.as_mut()?;
    let (asked, prolonged) = (*asked, task.await);
    *prolonging = None;
    prolonged.ok().map(|(lease, status)| (asked, lease, status))
}
