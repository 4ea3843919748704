//! A delivery in progress. Meanwhile the lane extends its lease and settles what was running before.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use postrider_core::{Delivery, Result, Sink, Unavailable};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::sleep_until;

use crate::engine::extension::joined;
use crate::engine::lane::{Halt, Lane};
use crate::engine::work::Work;

/// How a delivery ended, for its batch.
pub(crate) enum Ended {
    Done,
    Unavailable(Unavailable),
    /// The sink panicked: one of the events made it.
    Panicked,
    Stopped,
    /// All of it is begun, and the rest of it takes long: it goes on.
    Slow(Delivering),
}

impl Ended {
    fn of(ended: std::result::Result<Result<(), Unavailable>, JoinError>) -> Self {
        match ended {
            Ok(Ok(())) => Self::Done,
            Ok(Err(unavailable)) => Self::Unavailable(unavailable),
            Err(error) if error.is_panic() => Self::Panicked,
            Err(error) => Self::Unavailable(Unavailable::new(error.to_string())),
        }
    }
}

/// A delivery in progress; dropping it ends the delivery.
pub(crate) struct Delivering(pub(crate) JoinHandle<Result<(), Unavailable>>);

impl Delivering {
    /// Begins it, in a task of its own: a handler that blocks must not keep the lease from being extended. It is ended, too,
    /// when the lease runs out, whatever the lane is doing then.
    fn begin(sink: &Arc<dyn Sink>, delivery: &Arc<Delivery>, mut lapses: watch::Receiver<Instant>) -> Self {
        let (sink, delivery) = (Arc::clone(sink), Arc::clone(delivery));
        Self(tokio::spawn(async move {
            let progress = Arc::clone(&delivery.progress);
            let delivering = AssertUnwindSafe(sink.deliver(delivery)).catch_unwind();
            tokio::pin!(delivering);
            let ended = loop {
                let at = *lapses.borrow_and_update();
                tokio::select! {
                    biased;
                    ended = &mut delivering => break ended,
                    changed = lapses.changed() => if changed.is_err() {
                        // The lane is gone, and so will be this task.
                        break Ok(Err(Unavailable::new("the lane was released")));
                    },
                    () = tokio::time::sleep_until(at.into()) => {
                        break Ok(Err(Unavailable::new("the lease expired")));
                    }
                }
            };
            progress.notify_one();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }))
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether a delivery takes too long for its batch to wait for it.
struct Slowness {
    patience: Duration,
    /// All of it is begun since then.
    begun: Option<Instant>,
    /// When to look next.
    look: Instant,
}

impl Slowness {
    fn new(patience: Duration) -> Self {
        Self { patience, begun: None, look: Instant::now() + patience / 4 }
    }

    /// Whether all of it has been under way for longer than the patience lasts.
    fn is_over(&mut self, delivery: &Delivery) -> bool {
        let now = Instant::now();
        self.look = now + (self.patience / 4).max(Duration::from_millis(1));
        if !delivery.is_all_begun() {
            self.begun = None;
            return false;
        }
        now >= *self.begun.get_or_insert(now) + self.patience
    }
}

impl Lane {
    /// Delivers while the lease is extended and what was running is settled; drops it at once when the lease is lost. Where it
    /// `goes_on`, it is left running when all of it is begun and the patience for it is over.
    pub(crate) async fn run_delivery(
        &mut self,
        delivery: &Arc<Delivery>,
        work: &Work,
        goes_on: bool,
    ) -> Result<Ended, Halt> {
        if self.is_out_of_time() {
            return Err(Halt::Lost);
        }
        let lease = self.runtime.settings.lease;
        let mut delivering = Delivering::begin(&self.runtime.sink, delivery, self.lapse.subscribe());
        let mut extending = None;
        let mut ask_again = self.extend_at();
        let mut slowness = Slowness::new(self.patience.now());
        let mut give_up: Option<Instant> = None;
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut delivering.0 => break Ended::of(ended),
                extended = joined(&mut extending), if extending.is_some() => {
                    self.apply_extension(extended)?;
                    ask_again = self.extend_at().max(Instant::now() + lease / 20);
                }
                () = sleep_until(ask_again.into()), if extending.is_none() => {
                    if self.is_out_of_time() {
                        return Err(Halt::Lost);
                    }
                    extending = Some(self.begin_extension(work.next.as_ref()));
                }
                () = sleep_until((self.extended + lease).into()) => return Err(Halt::Lost),
                () = self.progress.notified(), if extending.is_none() && !self.flights.is_empty() => {
                    self.settle_flights(work.next.as_ref()).await?;
                }
                () = sleep_until(slowness.look.into()), if goes_on && give_up.is_none() => {
                    if slowness.is_over(delivery) && delivery.leave_running() {
                        break Ended::Slow(delivering);
                    }
                }
                () = self.runtime.stopped(), if give_up.is_none() => {
                    delivery.stop();
                    give_up = Some(self.give_up_at());
                }
                () = sleep_until(give_up.unwrap_or_else(Instant::now).into()), if give_up.is_some() => {
                    break Ended::Stopped;
                }
            }
        };
        // The lease must be the one that the database knows when the batch is settled.
        if extending.is_some() {
            let extended = joined(&mut extending).await;
            self.apply_extension(extended)?;
        }
        // Then it was ended with the lease.
        if matches!(ended, Ended::Unavailable(_)) && self.is_out_of_time() {
            return Err(Halt::Lost);
        }
        Ok(ended)
    }
}
