//! Waits for a destination that is away: the lane keeps its lease and reports the outage to operators.

use std::time::{Duration, Instant};

use postrider_core::{Backoff, Position, Unavailable};

use crate::engine::breaker::Pause;
use crate::engine::flight::Flight;
use crate::engine::lane::{Halt, Lane};
use crate::engine::work::Work;

/// A new event that may decide whether a destination is away does not have it asked again sooner than this.
const SOONEST: Duration = Duration::from_secs(1);
/// And is looked for at least this often, however many were in vain.
const RAREST: Duration = Duration::from_secs(24 * 3600);

impl Lane {
    /// The destination is away: the next extension says so.
    pub(crate) fn note_away(&mut self, reason: &Unavailable) {
        self.lease.away = Some(reason.reason.clone());
    }

    /// Takes the word back once the destination is found to be back, by this lane or another. `reading` is how far the lane is
    /// reading.
    pub(crate) async fn clear_away(&mut self, reading: Option<&Position>) -> Result<(), Halt> {
        if self.lease.away.is_some() && !self.runtime.breaker.is_open() {
            self.lease.away = None;
            self.extend_if_it_answers(reading).await?;
        }
        Ok(())
    }

    /// The destination is unavailable: leaves it alone for a while, keeps the lease, and gives up what is too old. Where that
    /// is `undecided`, a new event may decide it: it ends the wait.
    pub(crate) async fn wait_for_destination(
        &mut self,
        work: &mut Work,
        reason: &Unavailable,
        undecided: bool,
    ) -> Result<(), Halt> {
        // A transactional handler that lost its lease says so in this way.
        self.note_away(reason);
        self.extend_if_it_answers(work.next.as_ref()).await?;
        let pause = self.runtime.breaker.unavailable(reason, undecided);
        self.wait(work, &pause).await
    }

    /// Waits for the end of a pause. Where that is undecided, a new event ends it, too, unless the pause was asked for.
    pub(crate) async fn wait(&mut self, work: &mut Work, pause: &Pause) -> Result<(), Halt> {
        self.note_away(&pause.reason);
        let mut ask_again = self.extend_at();
        let mut looks = Backoff::new(SOONEST, RAREST);
        let mut look = Instant::now() + looks.next_delay();
        // What was recorded before this wait does not ring any more.
        let mut looked = false;
        loop {
            let now = self.now();
            for index in work.ready(self.runtime.order, self.runtime.on_dead) {
                let expired =
                    self.runtime.retry_policy.expired(work.items[index].case(now), &pause.reason.reason);
                work.items[index].decision = expired;
            }
            // Another lane may have found that it is back, or asked anew.
            let now = Instant::now();
            let until = self.runtime.breaker.pause().map_or(now, |other| other.until.min(pause.until));
            let left = until.saturating_duration_since(now);
            // Without any work it is waited for all the same.
            let nothing_left =
                !work.items.is_empty() && work.ready(self.runtime.order, self.runtime.on_dead).is_empty();
            let answered = work.flights.iter().any(Flight::has_news);
            let over = left.is_zero() || nothing_left || answered;
            if over || self.recalled || self.runtime.is_stopping() {
                return Ok(());
            }
            let until_prolonged = ask_again.saturating_duration_since(Instant::now());
            let flies = !self.flights.is_empty() || !work.flights.is_empty();
            let listens = pause.undecided && !pause.is_asked_for() && Instant::now() >= look;
            if listens && !looked {
                looked = true;
                if self.something_follows(work).await? {
                    return Ok(());
                }
            }
            let until_look = look.saturating_duration_since(Instant::now());
            let rest = left.min(until_prolonged);
            let rest = if until_look.is_zero() { rest } else { rest.min(until_look) };
            if self.waits_for_event(rest, flies, listens).await {
                if self.something_follows(work).await? {
                    return Ok(());
                }
                look = Instant::now() + looks.next_delay();
            }
            self.settle_flights(work.next.as_ref()).await?;
            if Instant::now() >= ask_again {
                self.extend_if_it_answers(work.next.as_ref()).await?;
                // A database that refuses at once is not asked all the time.
                ask_again = self.extend_at().max(Instant::now() + self.runtime.settings.lease / 20);
            }
        }
    }

    /// Sleeps, and not on when something of the flights has ended or the relay stops. Whether a new event was heard of.
    async fn waits_for_event(&mut self, time: Duration, flies: bool, listens: bool) -> bool {
        let poll = self.runtime.settings.poll;
        tokio::select! {
            () = self.runtime.rest(time) => false,
            () = self.progress.notified(), if flies => false,
            rung = self.bell.wait(poll), if listens => match rung {
                Ok(()) => {
                    self.rung = true;
                    true
                }
                Err(error) => {
                    self.runtime.outage.begins(&error);
                    self.runtime.rest(SOONEST.min(time)).await;
                    false
                }
            },
        }
    }
}
