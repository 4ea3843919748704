//! Events that may have ended the process that handled them: one by one, and marked before they are tried.
//!
//! A holder that went away without settling or releasing may have been killed by one of the events in its hands: an abort,
//! a stack overflow, too much memory. Nobody knows which. So its heir puts them aside as deliveries of their own, and then
//! tries each alone, having written down that it is about to. The one that ends the process again is found with that mark
//! by the next holder, counted, and dead after a set number of deaths; the others go on.

use std::time::Instant;

use postrider_core::{DeliveryChange, DeliveryFailure, OnDead, Order, Settlement};

use crate::judge::Verdict;
use crate::lane::{Halt, Lane};
use crate::work::{Item, Work};

/// The code of an event that was in the hands of a process that died.
const SUSPECT: &str = "suspect";
/// The code of an event that is being tried alone, with how often a process died of it so far: `crashed:1`.
const CRASHED: &str = "crashed:";

/// How many processes have died of it, if it is under suspicion.
fn deaths(item: &Item) -> Option<u32> {
    let code = item.code.as_deref()?;
    if code == SUSPECT {
        return Some(0);
    }
    code.strip_prefix(CRASHED)?.parse().ok()
}

fn suspicion(deaths: u32) -> DeliveryFailure {
    if deaths == 0 {
        return DeliveryFailure::new(SUSPECT, "the process that may have been handling it died");
    }
    let times = if deaths == 1 { "once".to_owned() } else { format!("{deaths} times") };
    DeliveryFailure::new(
        format!("{CRASHED}{deaths}"),
        format!("the process died {times} while it was being handled"),
    )
}

impl Lane {
    /// What is due, if it is time to look.
    pub(crate) async fn look_for_due(&mut self) -> Result<Work, Halt> {
        if !self.due.is_time(self.lease.open) {
            return Ok(Work::of_due(Vec::new(), &self.lease.position));
        }
        let began = Instant::now();
        let found = self.reader.store.due(&self.lease, self.reader.batch).await?;
        let reader = &self.reader;
        self.due.looked(&found, began.elapsed(), |time| reader.at_most(time));
        Ok(Work::of_due(found.deliveries, &self.lease.position))
    }

    /// Puts a batch aside: each of its events becomes a delivery of its own, under suspicion.
    pub(crate) async fn put_aside(&mut self, mut work: Work) -> Result<(), Halt> {
        for item in work.items.drain(..) {
            let mut row = DeliveryChange::retrying(item.event.id, 0, std::time::Duration::ZERO, suspicion(0));
            row.attempts = item.tried;
            work.settlement.deliveries.push(row);
        }
        self.settle(work).await
    }

    /// Tries those under suspicion alone and returns the others.
    pub(crate) async fn suspects_alone(&mut self, work: Work) -> Result<Work, Halt> {
        if self.reader.sink.runs_handlers() && work.items.iter().any(|item| deaths(item).is_some()) {
            return self.one_by_one(work).await;
        }
        Ok(work)
    }

    /// Tries all of it one by one, each marked before it is tried.
    pub(crate) async fn one_by_one(&mut self, mut work: Work) -> Result<Work, Halt> {
        let mut blocked: Vec<String> = Vec::new();
        for item in work.items.drain(..) {
            let key = item.event.key().into_owned();
            let (order, on_dead) = (self.reader.order, self.reader.on_dead);
            let held = match order {
                Order::Key => blocked.contains(&key),
                Order::Strict => !blocked.is_empty(),
                Order::None => false,
            };
            if held {
                continue;
            }
            if self.reader.is_stopping() || self.recalled {
                break;
            }
            if !self.try_alone(item, on_dead).await? {
                blocked.push(key);
            }
            if Instant::now() >= self.prolong_at() {
                self.prolong().await?;
            }
        }
        Ok(work)
    }

    /// Tries one event alone. Whether the next of its key may follow.
    async fn try_alone(&mut self, mut item: Item, on_dead: OnDead) -> Result<bool, Halt> {
        let before = deaths(&item).unwrap_or(0);
        let (id, tried) = (item.event.id, item.tried);
        let alone = |item: Item, lane: &Self| Work {
            items: vec![item],
            settlement: Settlement::at(lane.lease.position.clone()),
            next: None,
            full: false,
        };
        if before >= self.reader.deaths {
            let failure = DeliveryFailure::new("crashed", suspicion(before).message);
            item.verdict = Some(Verdict::Dead { attempts: tried, failure, age: None });
            let work = alone(item, self);
            self.settle(work).await?;
            return Ok(on_dead == OnDead::Skip);
        }
        let mut mark = Settlement::at(self.lease.position.clone());
        let failure = suspicion(before + 1);
        mark.deliveries.push(DeliveryChange::retrying(id, tried + 1, std::time::Duration::ZERO, failure));
        self.settle(Work { items: Vec::new(), settlement: mark, next: None, full: false }).await?;
        let work = alone(item, self);
        let mut work = self.deliver(work).await?;
        let verdict = work.items.first().and_then(|item| item.verdict.clone());
        if verdict.is_none() {
            // It was not tried after all: the mark must not count.
            let row = DeliveryChange::retrying(id, tried, std::time::Duration::ZERO, suspicion(before));
            work.settlement.deliveries.push(row);
        }
        self.settle(work).await?;
        Ok(match verdict {
            Some(Verdict::Delivered { .. }) => true,
            Some(Verdict::Dead { .. }) => on_dead == OnDead::Skip,
            Some(Verdict::Retry { .. }) | None => false,
        })
    }
}
