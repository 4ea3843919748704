//! Judges a delivery: decides what follows for each of its events, and for the destination.

use std::sync::Arc;

use postrider_core::{Delivery, DeliveryFailure, Outcome, Report, Unavailable};

use crate::engine::contrast::Interpreted;
use crate::engine::delivering::{Delivering, Ended};
use crate::engine::flight::Flight;
use crate::engine::lane::Lane;
use crate::engine::work::{AttemptState, Work};

/// What a delivery came to, for the rest of its batch.
pub(crate) struct Judged {
    pub(crate) result: BatchResult,
    /// Whether something of it is decided.
    pub(crate) tried: bool,
    /// Whether something of it goes on without its batch.
    pub(crate) went_on: bool,
    /// Whether something of it is tried again at once.
    pub(crate) again: bool,
}

/// How it ended for the destination.
pub(crate) enum BatchResult {
    Done,
    Unavailable(Unavailable),
    /// Events failed, and nothing shows yet that they and not the destination are to blame.
    Undecided(Unavailable),
    /// The sink panicked: one of the events made it.
    Panicked,
    Stopped,
}

/// What a panic says may quote the payload.
pub(crate) fn panicked() -> Outcome {
    Outcome::retry(DeliveryFailure::new("panic", "the sink panicked while it delivered this event"))
}

impl Lane {
    /// Decides what follows for each event that was reported, and whether the destination or the events are to blame.
    pub(crate) fn judge(
        &self,
        work: &mut Work,
        ready: Vec<usize>,
        delivery: &Arc<Delivery>,
        ended: Ended,
    ) -> Judged {
        let (runtime, now) = (&self.runtime, self.now());
        let reports = delivery.take_reports();
        let (result, went_on) = match ended {
            Ended::Slow(task) => {
                work.leave_running(&ready, &reports, delivery, task);
                (BatchResult::Done, true)
            }
            Ended::Done => (BatchResult::Done, false),
            Ended::Unavailable(reason) => (BatchResult::Unavailable(reason), false),
            Ended::Panicked => (BatchResult::Panicked, false),
            Ended::Stopped => (BatchResult::Stopped, false),
        };
        let tries = work.tries(&ready, reports, runtime.order);
        let refused = matches!(result, BatchResult::Unavailable(_));
        let flights = self.flights.iter().chain(&work.flights);
        let under_way = flights.flat_map(|flight| flight.under_way(runtime.order)).collect();
        let Interpreted { reports, undecided, again } = runtime.interpret(tries, refused, under_way);
        let mut tried = false;
        for (place, (index, report)) in ready.into_iter().zip(reports).enumerate() {
            let Some(report) = report else { continue };
            if delivery.is_effect(place) {
                work.settlement.effects.push(work.items[index].event.event_id);
            }
            tried = true;
            runtime.decide(&mut work.items[index], report, now);
        }
        let result = match (result, undecided) {
            (BatchResult::Done, Some(reason)) => BatchResult::Undecided(reason),
            (BatchResult::Unavailable(reason), Some(other)) => {
                BatchResult::Unavailable(reason.or_longer(&other))
            }
            (result, _) => result,
        };
        Judged { result, tried, went_on, again }
    }
}

impl Work {
    /// What is begun and not reported goes on without the batch.
    fn leave_running(
        &mut self,
        ready: &[usize],
        reports: &[Option<Report>],
        delivery: &Arc<Delivery>,
        task: Delivering,
    ) {
        let mut under_way = Vec::new();
        for (place, &index) in ready.iter().enumerate() {
            if reports[place].is_none() && delivery.is_begun(place) {
                let item = &mut self.items[index];
                item.attempt_state = AttemptState::Running;
                under_way.push((place, item.in_flight()));
            }
        }
        if !under_way.is_empty() {
            self.flights.push(Flight::new(Arc::clone(delivery), task, under_way));
        }
    }
}
