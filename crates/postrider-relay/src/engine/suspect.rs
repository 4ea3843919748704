//! Suspects: events that may have killed the process that handled them. Each is marked, and then tried alone.
//!
//! A holder that went away without settling or releasing may have been killed by one of the events in its hands: an abort,
//! a stack overflow, too much memory. Nobody knows which. So the next holder puts them aside as deliveries of their own, and then
//! tries each alone, having written down that it is about to. The one that ends the process again is found with that mark
//! by the next holder, counted, and dead after a set number of deaths; the others go on.
//!
//! Alone in the process, whatever its lane or subscription: two that bear the mark when a process dies would both be counted,
//! and one of them had nothing to do with it.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use postrider_core::{
    DeliveryChange, DeliveryFailure, Due, EventRef, HeldKeys, OnDead, PastAttempt, Settlement, Unavailable,
};
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

use crate::engine::lane::{Halt, Lane};
use crate::engine::retry_policy::Decision;
use crate::engine::work::{AttemptState, Item, Work};

/// The code of an event that was in the hands of a process that died.
pub(crate) const SUSPECT: &str = "#suspect";
/// How the code of a [`CrashMark`] begins.
const CRASHED: &str = "#crashed:";
/// The code of an event that processes have died of.
const DIED: &str = "crashed";
/// This process, from its start to its end.
static PROCESS: LazyLock<String> = LazyLock::new(|| Uuid::new_v4().simple().to_string());
/// How long what is due waits for what runs in front of it before it is looked at again.
const BEHIND: Duration = Duration::from_secs(1);
/// Held by the lane that is trying an event alone.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The record that an event is about to be tried alone, as the error code of its delivery: `#crashed:1@5f2c…`. ARCHITECTURE.md says
/// why it has no columns of its own.
#[derive(Debug, PartialEq, Eq)]
struct CrashMark<'c> {
    /// How many processes will have died of it, should this one.
    deaths: u32,
    /// The process that tries it. Not its owner's name: one that is started again under the same name is another.
    process: &'c str,
}

impl<'c> CrashMark<'c> {
    fn of(code: &'c str) -> Option<Self> {
        let (deaths, process) = code.strip_prefix(CRASHED)?.split_once('@')?;
        Some(Self { deaths: deaths.parse().ok()?, process })
    }
}

impl fmt::Display for CrashMark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CRASHED}{}@{}", self.deaths, self.process)
    }
}

/// How many processes have died of it, if it is under suspicion.
fn deaths(item: &Item) -> Option<u32> {
    deaths_by(item.code.as_deref()?, &PROCESS)
}

/// The same as `process` sees it. A mark of its own is no death: it is alive.
fn deaths_by(code: &str, process: &str) -> Option<u32> {
    if code == SUSPECT {
        return Some(0);
    }
    let mark = CrashMark::of(code)?;
    Some(if mark.process == process { mark.deaths.saturating_sub(1) } else { mark.deaths })
}

fn suspicion(deaths: u32) -> DeliveryFailure {
    if deaths == 0 {
        return DeliveryFailure::new(SUSPECT, "a process died that may have been handling this event");
    }
    let times = if deaths == 1 { "once".to_owned() } else { format!("{deaths} times") };
    let message = format!("the process died {times} while it handled this event");
    DeliveryFailure::new(CrashMark { deaths, process: &PROCESS }.to_string(), message)
}

/// What became of an event that was tried alone.
enum Alone {
    /// The next of its key may follow.
    Done,
    /// Its key is held up.
    Held,
    /// The destination was away, and it was not tried.
    Away(Unavailable),
}

impl Lane {
    /// What is due, if it is time to look.
    pub(crate) async fn look_for_due(&mut self) -> Result<Work, Halt> {
        if !self.due.is_time(self.lease.open) {
            return Ok(Work::of_due(Vec::new(), &self.lease.position));
        }
        let began = Instant::now();
        let rows = self.due_portion.rows(self.runtime.batch);
        let found = self.due_now(rows).await?;
        let bytes = found.deliveries.iter().map(Due::size).sum();
        let count = u32::try_from(found.deliveries.len()).unwrap_or(u32::MAX);
        self.due_portion.had(count, bytes, self.lease.bytes, self.runtime.batch);
        let runtime = &self.runtime;
        self.due.looked(&found, began.elapsed(), |time| runtime.at_most(time));
        let mut work = Work::of_due(found.deliveries, &self.lease.position);
        self.keep_in_hand(&mut work);
        let is_idle = |item: &Item| item.decision.is_none() && item.attempt_state == AttemptState::Idle;
        if !work.items.is_empty()
            && work.items.iter().all(is_idle)
            && work.ready(self.runtime.order, self.runtime.on_dead).is_empty()
        {
            // It can't be tried before what is in front of it has ended, and that is told.
            self.due.put_off(BEHIND);
            work.items.clear();
        }
        Ok(work)
    }

    /// Puts a batch aside: each of its events becomes a delivery of its own, under suspicion.
    pub(crate) async fn settle_as_suspects(&mut self, mut work: Work) -> Result<(), Halt> {
        for item in work.items.drain(..) {
            let row = match &item.decision {
                Some(decision) => item.row(decision),
                None => {
                    let failure = suspicion(0);
                    Some(DeliveryChange::retrying(&*item.event, item.tried, Duration::ZERO, failure))
                }
            };
            work.settlement.deliveries.extend(row);
        }
        self.settle(work).await
    }

    /// Tries those under suspicion alone and returns the others.
    pub(crate) async fn suspects_alone(&mut self, work: Work) -> Result<Work, Halt> {
        if self.runtime.sink.runs_handlers() && work.items.iter().any(|item| deaths(item).is_some()) {
            return self.one_by_one(work).await;
        }
        Ok(work)
    }

    /// Tries all of it one by one, each marked before it is tried.
    pub(crate) async fn one_by_one(&mut self, mut work: Work) -> Result<Work, Halt> {
        let mut stopped = HeldKeys::new(self.runtime.order);
        for item in work.items.drain(..) {
            let event = Arc::clone(&item.event);
            if stopped.holds(&event) {
                continue;
            }
            // It is in hand, or behind one that is.
            if item.attempt_state == AttemptState::Running || item.held {
                stopped.failed(&event);
                continue;
            }
            if self.runtime.is_stopping() || self.recalled {
                break;
            }
            match self.try_alone(item, self.runtime.on_dead).await? {
                Alone::Done => {}
                Alone::Held => stopped.failed(&event),
                Alone::Away(reason) => {
                    let mut nothing = Work::of_due(Vec::new(), &self.lease.position);
                    self.wait_for_destination(&mut nothing, &reason, false).await?;
                    break;
                }
            }
            if Instant::now() >= self.extend_at() {
                self.extend().await?;
            }
        }
        Ok(work)
    }

    /// Waits until nothing else is tried alone in this process, and keeps the lease meanwhile. Nothing if the relay stops.
    async fn wait_for_turn(&mut self) -> Result<Option<MutexGuard<'static, ()>>, Halt> {
        loop {
            tokio::select! {
                turn = ALONE.lock() => return Ok(Some(turn)),
                () = self.runtime.stopped() => return Ok(None),
                () = tokio::time::sleep_until(self.extend_at().into()) => self.extend().await?,
            }
        }
    }

    /// Tries one event alone.
    async fn try_alone(&mut self, mut item: Item, on_dead: OnDead) -> Result<Alone, Halt> {
        let before = deaths(&item).unwrap_or(0);
        let (event, tried) = (EventRef::from(&*item.event), item.tried);
        let after_death = if on_dead == OnDead::Skip { Alone::Done } else { Alone::Held };
        let of_one = |item: Item, lane: &Self| {
            Work::of_landed(vec![item], Settlement::at(lane.lease.position.clone()))
        };
        if before >= self.runtime.deaths && item.decision.is_none() {
            let failure = DeliveryFailure::new(DIED, suspicion(before).message);
            item.decision = Some(Decision::Dead { attempts: tried, failure, age: None });
        }
        // It is dead already: there is nothing to try.
        if item.decision.is_some() {
            let work = of_one(item, self);
            self.settle(work).await?;
            return Ok(after_death);
        }
        let Some(turn) = self.wait_for_turn().await? else { return Ok(Alone::Held) };
        let mut mark = Settlement::at(self.lease.position.clone());
        let failure = suspicion(before + 1);
        // Should this process die, that is what is known of the try. Otherwise what became of it takes its place.
        let death = DeliveryFailure::new(DIED, failure.message.clone());
        let death = PastAttempt::new(self.now(), &self.runtime.owner, None, &death);
        let past = PastAttempt::with(item.past.clone(), death);
        mark.deliveries.push(DeliveryChange::retrying(event, tried + 1, Duration::ZERO, failure).past(past));
        item.noted = true;
        self.settle(Work::of_rows(mark)).await?;
        let work = of_one(item, self);
        self.alone = true;
        let delivered = self.deliver(work).await;
        self.alone = false;
        let mut work = delivered?;
        let decision = work.items.first().and_then(|item| item.decision.clone());
        if decision.is_none() {
            // It was not tried after all: the mark must not count.
            let row = DeliveryChange::retrying(event, tried, Duration::ZERO, suspicion(before));
            let past = work.items.first().map(|item| item.past.clone()).unwrap_or_default();
            work.settlement.deliveries.push(row.past(past));
        }
        self.settle(work).await?;
        drop(turn);
        Ok(match (decision, self.away.take()) {
            (None, Some(reason)) => Alone::Away(reason),
            (Some(Decision::Delivered { .. }), _) => Alone::Done,
            (Some(Decision::Dead { .. }), _) => after_death,
            (Some(Decision::Retry { .. }) | None, _) => Alone::Held,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_of_a_process_that_was_started_before_is_a_death() {
        let mark = suspicion(2).code;
        assert_eq!(deaths_by(&mark, &PROCESS), Some(1), "we are alive");
        assert_eq!(deaths_by(&mark, "another"), Some(2));
        assert_eq!(
            deaths_by("#crashed:1@relay-7", &PROCESS),
            Some(1),
            "by its owner, as older versions marked it"
        );
        assert_eq!(deaths_by(SUSPECT, &PROCESS), Some(0));
        assert_eq!(deaths_by("timeout", &PROCESS), None);
    }
}
