//! Delivering what is in a lane's hands, while the lease is kept.

use std::sync::Arc;
use std::time::Instant;

use postrider_core::{Delivery, DeliveryFailure, Lease, Outcome, Result, Sink, Standing, Unavailable};
use tokio::task::JoinHandle;

use crate::breaker::chance;
use crate::lane::{Halt, Lane};
use crate::work::Work;

/// The lease being prolonged beside the delivery.
type Prolonging = JoinHandle<(Lease, Result<Standing>)>;

/// How a delivery ended.
enum Ended {
    Done,
    Unavailable(Unavailable),
    /// The sink panicked: one of the events made it.
    Panicked,
    Stopped,
}

/// A delivery under way, ended with whoever waits for it.
struct Delivering(JoinHandle<Result<(), Unavailable>>);

impl Delivering {
    fn begin(sink: &Arc<dyn Sink>, delivery: &Arc<Delivery>) -> Self {
        let (sink, delivery) = (Arc::clone(sink), Arc::clone(delivery));
        Self(tokio::spawn(async move { sink.deliver(delivery).await }))
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a panic says may quote the payload.
fn panicked() -> Outcome {
    Outcome::retry(DeliveryFailure::new("panic", "the destination's sink panicked over this event"))
}

impl Lane {
    /// Tries all that can be tried. What has no verdict afterwards was not tried: it waits behind a failure, or the relay
    /// stops.
    pub(crate) async fn deliver(&mut self, mut work: Work) -> Result<Work, Halt> {
        let reader = Arc::clone(&self.reader);
        // Which event makes a sink panic shows when each is delivered alone.
        let mut one_by_one = false;
        loop {
            let mut ready = work.ready(reader.order, reader.on_dead);
            // A lane that is wanted back must not be kept by a destination that is away.
            let given_up = reader.is_stopping() || (self.recalled && reader.breaker.is_open());
            if ready.is_empty() || given_up {
                return Ok(work);
            }
            if reader.breaker.is_open() || one_by_one {
                ready.truncate(1);
            }
            let mut delivery = Delivery::new(
                Arc::clone(&reader.name),
                ready.iter().map(|&index| work.attempt(index)).collect(),
            );
            delivery.lease = Some(self.lease.clone());
            delivery.order = reader.order;
            delivery.concurrency = reader.concurrency;
            delivery.timeout = reader.timeout;
            let delivery = Arc::new(delivery);
            let ended = self.accompany(&delivery, &work).await?;
            if let (Ended::Panicked, [_]) = (&ended, ready.as_slice()) {
                delivery.report(0, panicked());
            }
            let now = self.now();
            let mut tried = false;
            for (place, (index, outcome)) in ready.into_iter().zip(delivery.take_outcomes()).enumerate() {
                if let Some(outcome) = outcome {
                    if delivery.is_effect(place) {
                        work.settlement.effects.push(work.items[index].event.event_id);
                    }
                    tried = true;
                    // Chance costs a call of the system.
                    let chance = if outcome.is_delivered() { 0.5 } else { chance() };
                    let verdict = reader.judge.judge(work.items[index].case(now), outcome, chance);
                    work.items[index].verdict = Some(verdict);
                }
            }
            match ended {
                Ended::Stopped => return Ok(work),
                Ended::Panicked => one_by_one = true,
                Ended::Done if tried => reader.breaker.available(),
                Ended::Done if reader.is_stopping() => return Ok(work),
                Ended::Done => {
                    self.wait_for_it(&mut work, &Unavailable::new("it said nothing of any event")).await?;
                }
                // What is tried alone bears a mark, which must not stand while nobody tries it.
                Ended::Unavailable(reason) if self.alone => {
                    self.away = Some(reason);
                    return Ok(work);
                }
                Ended::Unavailable(reason) => self.wait_for_it(&mut work, &reason).await?,
            }
        }
    }

    /// The destination is unavailable: leaves it alone for a while, keeps the lease, and gives up what is too old.
    pub(crate) async fn wait_for_it(&mut self, work: &mut Work, reason: &Unavailable) -> Result<(), Halt> {
        // A transactional handler that lost its lease says so in this way.
        self.prolong_if_it_answers(work).await?;
        let end = Instant::now() + self.reader.breaker.unavailable(reason);
        loop {
            let now = self.now();
            for index in work.ready(self.reader.order, self.reader.on_dead) {
                let expired = self.reader.judge.expired(work.items[index].case(now), &reason.reason);
                work.items[index].verdict = expired;
            }
            let left = end.saturating_duration_since(Instant::now());
            let nothing_left = work.ready(self.reader.order, self.reader.on_dead).is_empty();
            if left.is_zero() || nothing_left || self.recalled || self.reader.is_stopping() {
                return Ok(());
            }
            let until_prolonged = self.prolong_at().saturating_duration_since(Instant::now());
            self.reader.rest(left.min(until_prolonged)).await;
            if Instant::now() >= self.prolong_at() {
                self.prolong_if_it_answers(work).await?;
            }
        }
    }

    async fn prolong_if_it_answers(&mut self, work: &Work) -> Result<(), Halt> {
        let mut lease = self.lease.clone();
        let asked = Instant::now();
        let standing =
            self.reader.store.extend(&mut lease, self.reader.settings.lease, work.next.as_ref()).await;
        self.prolonged_by(asked, (lease, standing))
    }

    fn prolonged_by(
        &mut self,
        asked: Instant,
        (lease, standing): (Lease, Result<Standing>),
    ) -> Result<(), Halt> {
        match standing {
            Ok(standing) => {
                self.lease = lease;
                self.prolonged_as(asked, standing)
            }
            Err(error) => {
                self.reader.outage.begins(&error);
                if self.is_out_of_time() { Err(Halt::Lost) } else { Ok(()) }
            }
        }
    }

    /// Delivers while the lease is prolonged; drops it at once when the lease is lost.
    async fn accompany(&mut self, delivery: &Arc<Delivery>, work: &Work) -> Result<Ended, Halt> {
        let reader = Arc::clone(&self.reader);
        if self.is_out_of_time() {
            return Err(Halt::Lost);
        }
        // In a task of its own: a handler that blocks must not keep the lease from being prolonged.
        let mut delivering = Delivering::begin(&reader.sink, delivery);
        let mut prolonging: Option<(Instant, Prolonging)> = None;
        let mut give_up: Option<Instant> = None;
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
                    let soon = Instant::now() + reader.settings.lease / 20;
                    ask_again = self.prolong_at().max(soon);
                }
                () = tokio::time::sleep_until(ask_again.into()), if asked.is_none() => {
                    if self.is_out_of_time() {
                        return Err(Halt::Lost);
                    }
                    let (reader, mut lease, next) =
                        (Arc::clone(&self.reader), self.lease.clone(), work.next.clone());
                    let task = tokio::spawn(async move {
                        let by = reader.settings.lease;
                        let standing = reader.store.extend(&mut lease, by, next.as_ref()).await;
                        (lease, standing)
                    });
                    prolonging = Some((Instant::now(), task));
                }
                () = tokio::time::sleep_until((self.prolonged + reader.settings.lease).into()) => {
                    return Err(Halt::Lost);
                }
                () = reader.stopped(), if give_up.is_none() => {
                    delivery.stop();
                    give_up = Some(Instant::now() + reader.settings.grace);
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
        Ok(ended)
    }
}
