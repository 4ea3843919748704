//! Extends the lease during calls that may take long: reading, and looking for due deliveries.
//!
//! A settle is not among them: it holds its lane's row, and a lease could not be extended beside it. It is one short statement, and
//! given up with the lease.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use postrider_core::{Batch, DueBatch, Lease, LeaseStatus, Position, Result};
use tokio::task::JoinHandle;

use crate::engine::lane::{Halt, Lane};

/// The lease being extended: when that was asked for, and what comes of it.
pub(crate) struct Extension {
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

    /// Waits for a call of the store, and extends the lease beside it for as long as that takes. Gives the lane up when the lease
    /// runs out meanwhile: the call is dropped then.
    pub(crate) async fn keeping_lease<T>(
        &mut self,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T, Halt> {
        let lease = self.runtime.settings.lease;
        let mut call = pin!(call);
        let mut extending: Option<Extension> = None;
        let mut ask_again = self.extend_at();
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut call => break answer,
                extended = joined(&mut extending), if extending.is_some() => {
                    self.apply_extension(extended)?;
                    ask_again = self.extend_at().max(Instant::now() + lease / 20);
                }
                () = tokio::time::sleep_until(ask_again.into()), if extending.is_none() => {
                    extending = Some(self.begin_extension(None));
                }
                () = tokio::time::sleep_until((self.extended + lease).into()) => return Err(Halt::Lost),
            }
        };
        // The lease must be the one that the database knows.
        if extending.is_some() {
            let extended = joined(&mut extending).await;
            self.apply_extension(extended)?;
        }
        Ok(answer?)
    }

    /// Begins to extend the lease. `reading` is how far the lane is reading.
    pub(crate) fn begin_extension(&self, reading: Option<&Position>) -> Extension {
        let (runtime, mut lease, reading) = (Arc::clone(&self.runtime), self.lease.clone(), reading.cloned());
        let task = tokio::spawn(async move {
            let status = runtime.store.extend(&mut lease, runtime.settings.lease, reading.as_ref()).await;
            (lease, status)
        });
        Extension { asked: Instant::now(), task }
    }

    /// The lease was extended, or was not.
    pub(crate) fn apply_extension(
        &mut self,
        extended: Option<(Instant, Lease, Result<LeaseStatus>)>,
    ) -> Result<(), Halt> {
        match extended {
            Some((asked, lease, status)) => self.extended_by(asked, (lease, status)),
            None => Ok(()),
        }
    }
}

/// What came of it, once it is known.
pub(crate) async fn joined(
    extending: &mut Option<Extension>,
) -> Option<(Instant, Lease, Result<LeaseStatus>)> {
    let Extension { asked, task } = extending.as_mut()?;
    let (asked, extended) = (*asked, task.await);
    *extending = None;
    extended.ok().map(|(lease, status)| (asked, lease, status))
}
