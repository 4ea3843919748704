//! Delivering what is in a lane's hands, while the lease is kept.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use postrider_core::{Delivery, DeliveryFailure, Lease, LeaseStatus, Outcome, Result, Sink, Unavailable};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::breaker::Pause;
use crate::engine::contrast::Sifted;
use crate::engine::flight::Flight;
use crate::engine::lane::{Halt, Lane};
use crate::engine::work::{Hand, Work};

/// The lease being prolonged beside the delivery.
type Prolonging = JoinHandle<(Lease, Result<LeaseStatus>)>;

/// How a delivery ended, for its batch.
enum Ended {
    Done,
    Unavailable(Unavailable),
    /// Events failed, and nothing shows yet that they and not the destination are to blame.
    Undecided(Unavailable),
    /// The sink panicked: one of the events made it.
    Panicked,
    Stopped,
    /// All of it is begun, and the rest of it takes long: it goes on.
    Slow(Delivering),
}

/// A delivery under way, ended with whoever waits for it.
pub(crate) struct Delivering(pub(crate) JoinHandle<Result<(), Unavailable>>);

impl Delivering {
    /// Begins it, in a task of its own: a handler that blocks must not keep the lease from being prolonged. It is ended, too,
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

/// A new event that may decide whether a destination is away does not have it asked again sooner than this.
const SOONEST: Duration = Duration::from_secs(1);

/// What a panic says may quote the payload.
pub(crate) fn panicked() -> Outcome {
    Outcome::retry(DeliveryFailure::new("panic", "the sink panicked while it delivered this event"))
}

impl Lane {
    /// Tries all that can be tried. What has no decision afterwards was not tried: it waits behind a failure, or the relay
    /// stops.
    pub(crate) async fn deliver(&mut self, mut work: Work) -> Result<Work, Halt> {
        let runtime = Arc::clone(&self.runtime);
        // Which event makes a sink panic shows when each is delivered alone.
        let mut one_by_one = std::mem::take(&mut self.wary);
        let mut waited = false;
        loop {
            if let Some(reason) = self.harvest(&mut work).await {
                self.wait_for_it(&mut work, &reason, true).await?;
            }
            self.note_back(work.next.as_ref()).await?;
            let mut ready = work.ready(runtime.order, runtime.on_dead);
            // A lane that is wanted back must not be kept by a destination that is away.
            let given_up = runtime.is_stopping() || (self.recalled && runtime.breaker.is_open());
            if ready.is_empty() || given_up {
                return Ok(work);
            }
            // What is tried alone has waited before it was marked.
            if let Some(pause) = runtime.breaker.pause().filter(|_| !self.alone)
                && (pause.is_asked_for() || (!waited && self.have_failed(&work, &ready)))
            {
                // Once: others that fail meanwhile prolong the pause, and these must be tried, too.
                waited = true;
                self.wait(&mut work, &pause).await?;
                let early = runtime.breaker.pause().is_some();
                if early && work.next.is_some() && self.leaves(&work).await? {
                    return Ok(work);
                }
                continue;
            }
            let probing = runtime.breaker.is_open();
            if probing {
                ready = self.probe(&work, &ready);
            } else if one_by_one {
                ready.truncate(1);
            }
            let goes_on = self.goes_on && !one_by_one && !self.alone;
            let mut delivery = Delivery::new(
                Arc::clone(&runtime.name),
                ready.iter().map(|&index| work.attempt(index)).collect(),
            );
            delivery.lease = Some(self.lease.clone());
            delivery.order = runtime.order;
            delivery.concurrency = runtime.concurrency;
            delivery.timeout = runtime.timeout;
            delivery.progress = Arc::clone(&self.progress);
            delivery.requests = Some(Arc::clone(&runtime.requests) as _);
            delivery.slots = self.goes_on.then(|| Arc::clone(&self.slots));
            let delivery = Arc::new(delivery);
            let goes_on = goes_on && self.has_room_for(&delivery, &work);
            let ended = self.accompany(&delivery, &work, goes_on).await?;
            self.patience.learn(delivery.mean_try());
            if let (Ended::Panicked, [_]) = (&ended, ready.as_slice()) {
                delivery.report(0, panicked());
            }
            let now = self.now();
            let mut tried = false;
            let reports = delivery.take_reports();
            let (ended, went_on) = match ended {
                Ended::Slow(task) => {
                    let mut under_way = Vec::new();
                    for (place, &index) in ready.iter().enumerate() {
                        if reports[place].is_none() && delivery.is_begun(place) {
                            let item = &mut work.items[index];
                            item.hand = Hand::Running;
                            under_way.push((place, item.in_flight()));
                        }
                    }
                    if !under_way.is_empty() {
                        work.flights.push(Flight::new(Arc::clone(&delivery), task, under_way));
                    }
                    (Ended::Done, true)
                }
                ended => (ended, false),
            };
            let tries = work.tries(&ready, reports, runtime.order);
            let refused = matches!(ended, Ended::Unavailable(_));
            let flights = self.flights.iter().chain(&work.flights);
            let under_way = flights.flat_map(|flight| flight.under_way(runtime.order)).collect();
            let Sifted { reports, undecided, again } = runtime.sift(tries, refused, under_way);
            for (place, (index, report)) in ready.into_iter().zip(reports).enumerate() {
                let Some(report) = report else { continue };
                if delivery.is_effect(place) {
                    work.settlement.effects.push(work.items[index].event.event_id);
                }
                tried = true;
                runtime.decide(&mut work.items[index], report, now);
            }
            let ended = match (ended, undecided) {
                (Ended::Done, Some(reason)) => Ended::Undecided(reason),
                (Ended::Unavailable(reason), Some(other)) => Ended::Unavailable(reason.or_longer(&other)),
                (ended, _) => ended,
            };
            match ended {
                Ended::Stopped => return Ok(work),
                Ended::Panicked => one_by_one = true,
                Ended::Done if tried => runtime.breaker.available(),
                // It is asked with another key after a pause, while the first still waits for its answer.
                Ended::Done | Ended::Slow(_) if went_on && probing => {
                    self.wait_for_it(
                        &mut work,
                        &Unavailable::new("the destination has not answered yet"),
                        true,
                    )
                    .await?;
                    if self.leaves(&work).await? {
                        return Ok(work);
                    }
                }
                // Nothing of it has ended yet, or what has is tried again.
                Ended::Done | Ended::Slow(_) if went_on || again => {}
                Ended::Done if runtime.is_stopping() => return Ok(work),
                Ended::Done | Ended::Slow(_) => {
                    let reason = Unavailable::new("the destination reported no outcome for any event");
                    self.wait_for_it(&mut work, &reason, false).await?;
                }
                // What is tried alone bears a mark, which must not stand while nobody tries it.
                Ended::Unavailable(reason) | Ended::Undecided(reason) if self.alone => {
                    self.away = Some(reason);
                    return Ok(work);
                }
                Ended::Unavailable(reason) => {
                    // What it said to several is shown to be one's own when each is tried alone.
                    one_by_one |= reason.pause.is_some();
                    self.wait_for_it(&mut work, &reason, false).await?;
                }
                Ended::Undecided(reason) => {
                    self.wait_for_it(&mut work, &reason, true).await?;
                    if self.leaves(&work).await? {
                        return Ok(work);
                    }
                }
            }
        }
    }

    /// The destination is unavailable: leaves it alone for a while, keeps the lease, and gives up what is too old. Where that
    /// is `undecided`, a new event may decide it: it ends the wait.
    pub(crate) async fn wait_for_it(
        &mut self,
        work: &mut Work,
        reason: &Unavailable,
        undecided: bool,
    ) -> Result<(), Halt> {
        // A transactional handler that lost its lease says so in this way.
        self.note_away(reason);
        self.prolong_if_it_answers(work.next.as_ref()).await?;
        let pause = self.runtime.breaker.unavailable(reason, undecided);
        self.wait(work, &pause).await
    }

    /// Waits for the end of a pause. Where that is undecided, a new event ends it, too, unless the pause was asked for.
    async fn wait(&mut self, work: &mut Work, pause: &Pause) -> Result<(), Halt> {
        self.note_away(&pause.reason);
        let mut ask_again = self.prolong_at();
        let mut gap = SOONEST;
        let mut look = Instant::now() + gap;
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
                gap *= 2;
                look = Instant::now() + gap;
            }
            self.land(work.next.as_ref()).await?;
            if Instant::now() >= ask_again {
                self.prolong_if_it_answers(work.next.as_ref()).await?;
                // A database that refuses at once is not asked all the time.
                ask_again = self.prolong_at().max(Instant::now() + self.runtime.settings.lease / 20);
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

    /// Delivers while the lease is prolonged and what was running is settled; drops it at once when the lease is lost. Where it
    /// `goes_on`, it is left running when all of it is begun and the patience for it is over.
    async fn accompany(
        &mut self,
        delivery: &Arc<Delivery>,
        work: &Work,
        goes_on: bool,
    ) -> Result<Ended, Halt> {
        let runtime = Arc::clone(&self.runtime);
        if self.is_out_of_time() {
            return Err(Halt::Lost);
        }
        let mut delivering = Delivering::begin(&runtime.sink, delivery, self.lapse.subscribe());
        let mut prolonging: Option<(Instant, Prolonging)> = None;
        let mut give_up: Option<Instant> = None;
        let patience = self.patience.now();
        // All of it is begun since then.
        let mut begun: Option<Instant> = None;
        let mut look = Instant::now() + patience / 4;
        let mut ask_again = self.prolong_at();
        let ended = loop {
            let asked = prolonging.as_ref().map(|(asked, _)| *asked);
            tokio::select! {
                biased;
                ended = &mut delivering.0 => {
                    break match ended {
                        Ok(Ok(())) => Ended::Done,
                        Ok(Err(unavailable)) => Ended::Unavailable(unavailable),
                        Err(error) if error.is_panic() => Ended::Panicked,
                        Err(error) => Ended::Unavailable(Unavailable::new(error.to_string())),
                    };
                }
                prolonged = async { (&mut prolonging.as_mut().expect("only if there is one").1).await },
                    if asked.is_some() =>
                {
                    prolonging = None;
                    if let (Ok(prolonged), Some(asked)) = (prolonged, asked) {
                        self.prolonged_by(asked, prolonged)?;
                    }
                    let soon = Instant::now() + runtime.settings.lease / 20;
                    ask_again = self.prolong_at().max(soon);
                }
                () = tokio::time::sleep_until(ask_again.into()), if asked.is_none() => {
                    if self.is_out_of_time() {
                        return Err(Halt::Lost);
                    }
                    let (runtime, mut lease, next) =
                        (Arc::clone(&self.runtime), self.lease.clone(), work.next.clone());
                    let task = tokio::spawn(async move {
                        let by = runtime.settings.lease;
                        let status = runtime.store.extend(&mut lease, by, next.as_ref()).await;
                        (lease, status)
                    });
                    prolonging = Some((Instant::now(), task));
                }
                () = tokio::time::sleep_until((self.prolonged + runtime.settings.lease).into()) => {
                    return Err(Halt::Lost);
                }
                () = self.progress.notified(), if asked.is_none() && !self.flights.is_empty() => {
                    self.land(work.next.as_ref()).await?;
                }
                () = tokio::time::sleep_until(look.into()), if goes_on && give_up.is_none() => {
                    let now = Instant::now();
                    look = now + (patience / 4).max(Duration::from_millis(1));
                    if !delivery.is_all_begun() {
                        begun = None;
                    } else if now >= *begun.get_or_insert(now) + patience && delivery.leave_running() {
                        break Ended::Slow(delivering);
                    }
                }
                () = runtime.stopped(), if give_up.is_none() => {
                    delivery.stop();
                    give_up = Some(self.give_up_at());
                }
                () = tokio::time::sleep_until(give_up.unwrap_or_else(Instant::now).into()), if give_up.is_some() => {
                    break Ended::Stopped;
                }
            }
        };
        // The lease must be the one that the database knows when the batch is settled.
        if let Some((asked, task)) = prolonging
            && let Ok(prolonged) = task.await
        {
            self.prolonged_by(asked, prolonged)?;
        }
        // Then it was ended with the lease.
        if matches!(ended, Ended::Unavailable(_)) && self.is_out_of_time() {
            return Err(Halt::Lost);
        }
        Ok(ended)
    }
}
