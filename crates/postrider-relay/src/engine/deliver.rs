//! Delivers a lane's events: *choose, deliver, judge, follow*, until every event that can be tried was tried.

use std::sync::Arc;

use postrider_core::{Delivery, Unavailable};

use crate::engine::delivering::Ended;
use crate::engine::judge::{BatchResult, Judged, panicked};
use crate::engine::lane::{Halt, Lane};
use crate::engine::work::Work;

/// What is kept from one try to the next.
struct TryState {
    /// Which event makes a sink panic shows when each is delivered alone.
    one_by_one: bool,
    /// A pause was waited for.
    waited: bool,
}

/// What may be tried of the work.
enum Choice {
    /// These.
    Ready(Vec<usize>),
    /// A pause was waited for: choose again.
    Waited,
    /// Nothing more.
    Nothing,
}

impl Lane {
    /// Tries all that can be tried. What has no decision afterwards was not tried: it waits behind a failure, or the relay
    /// stops.
    pub(crate) async fn deliver(&mut self, mut work: Work) -> Result<Work, Halt> {
        let mut state = TryState { one_by_one: std::mem::take(&mut self.deliver_one_by_one), waited: false };
        loop {
            let mut ready = match self.choose(&mut work, &mut state).await? {
                Choice::Ready(ready) => ready,
                Choice::Waited => continue,
                Choice::Nothing => return Ok(work),
            };
            let probing = self.runtime.breaker.is_open();
            if probing {
                ready = self.probe(&work, &ready);
            } else if state.one_by_one {
                ready.truncate(1);
            }
            let (delivery, ended) = self.hand_over(&work, &ready, state.one_by_one).await?;
            let judged = self.judge(&mut work, ready, &delivery, ended);
            if self.follow(&mut work, judged, probing, &mut state).await? {
                return Ok(work);
            }
        }
    }

    /// What of the work may be tried now.
    async fn choose(&mut self, work: &mut Work, state: &mut TryState) -> Result<Choice, Halt> {
        if let Some(reason) = self.collect_flights(work).await {
            self.wait_for_destination(work, &reason, true).await?;
        }
        self.clear_away(work.next.as_ref()).await?;
        let ready = work.ready(self.runtime.order, self.runtime.on_dead);
        // A lane that is wanted back must not be kept by a destination that is away.
        let given_up = self.runtime.is_stopping() || (self.recalled && self.runtime.breaker.is_open());
        if ready.is_empty() || given_up {
            return Ok(Choice::Nothing);
        }
        // What is tried alone has waited before it was marked.
        if let Some(pause) = self.runtime.breaker.pause().filter(|_| !self.alone)
            && (pause.is_asked_for() || (!state.waited && self.have_failed(work, &ready)))
        {
            // Once: others that fail meanwhile lengthen the pause, and these must be tried, too.
            state.waited = true;
            self.wait(work, &pause).await?;
            let early = self.runtime.breaker.pause().is_some();
            let moves_on = early && work.next.is_some() && self.moves_on(work).await?;
            return Ok(if moves_on { Choice::Nothing } else { Choice::Waited });
        }
        Ok(Choice::Ready(ready))
    }

    /// Hands events to the sink, and stays with them until that has ended or goes on without the batch.
    async fn hand_over(
        &mut self,
        work: &Work,
        ready: &[usize],
        one_by_one: bool,
    ) -> Result<(Arc<Delivery>, Ended), Halt> {
        let delivery = self.delivery(work, ready);
        let goes_on = self.goes_on && !one_by_one && !self.alone && self.has_room_for(&delivery, work);
        let ended = self.run_delivery(&delivery, work, goes_on).await?;
        self.patience.learn(delivery.mean_try());
        if let (Ended::Panicked, [_]) = (&ended, ready) {
            delivery.report(0, panicked());
        }
        Ok((delivery, ended))
    }

    fn delivery(&self, work: &Work, ready: &[usize]) -> Arc<Delivery> {
        let runtime = &self.runtime;
        let events = ready.iter().map(|&index| work.attempt(index)).collect();
        let mut delivery = Delivery::new(Arc::clone(&runtime.name), events);
        delivery.lease = Some(self.lease.clone());
        delivery.order = runtime.order;
        delivery.concurrency = runtime.concurrency;
        delivery.timeout = runtime.timeout;
        delivery.progress = Arc::clone(&self.progress);
        delivery.requests = Some(Arc::clone(&runtime.requests) as _);
        delivery.slots = self.goes_on.then(|| Arc::clone(&self.slots));
        Arc::new(delivery)
    }

    /// Does what follows from a delivery for the rest of the work. Whether nothing more of it is to be tried now.
    async fn follow(
        &mut self,
        work: &mut Work,
        judged: Judged,
        probing: bool,
        state: &mut TryState,
    ) -> Result<bool, Halt> {
        let Judged { result, tried, went_on, again } = judged;
        match result {
            BatchResult::Stopped => return Ok(true),
            BatchResult::Panicked => state.one_by_one = true,
            BatchResult::Done if tried => self.runtime.breaker.available(),
            // It is asked with another key after a pause, while the first still waits for its answer.
            BatchResult::Done if went_on && probing => {
                let reason = Unavailable::new("the destination has not answered yet");
                self.wait_for_destination(work, &reason, true).await?;
                return self.moves_on(work).await;
            }
            // Nothing of it has ended yet, or what has is tried again.
            BatchResult::Done if went_on || again => {}
            BatchResult::Done if self.runtime.is_stopping() => return Ok(true),
            BatchResult::Done => {
                let reason = Unavailable::new("the destination reported no outcome for any event");
                self.wait_for_destination(work, &reason, false).await?;
            }
            // What is tried alone bears a mark, which must not stand while nobody tries it.
            BatchResult::Unavailable(reason) | BatchResult::Undecided(reason) if self.alone => {
                self.away = Some(reason);
                return Ok(true);
            }
            BatchResult::Unavailable(reason) => {
                // What it said to several is shown to be one's own when each is tried alone.
                state.one_by_one |= reason.pause.is_some();
                self.wait_for_destination(work, &reason, false).await?;
            }
            BatchResult::Undecided(reason) => {
                self.wait_for_destination(work, &reason, true).await?;
                return self.moves_on(work).await;
            }
        }
        Ok(false)
    }
}
