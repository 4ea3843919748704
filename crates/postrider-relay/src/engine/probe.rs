//! A lane whose destination seems to be away, because nothing shows yet that the failing events themselves are to blame.
//!
//! It asks with one event at a time, over rotating keys where the order permits. What it has in hand stays there without rows,
//! until all keys of it have failed, and there is something else to ask with or to write down: then it is settled as waiting, so that
//! one failing key keeps no other from being tried, and nothing that was delivered from being known as such.

use std::collections::HashSet;
use std::time::Instant;

use postrider_core::{Batch, ErrorKind, Order, Recorded, Report};

use crate::engine::contrast::Try;
use crate::engine::lane::{Halt, Lane};
use crate::engine::work::Work;

/// So many batches are looked through for another key. Where the log has more than that of the failing keys alone, those
/// behind wait with them.
const FARTHEST: usize = 32;

impl Work {
    /// The tries of these, as the contrast wants them.
    pub(crate) fn tries(
        &self,
        indexes: &[usize],
        reports: Vec<Option<Report>>,
        order: Order,
    ) -> Vec<Option<Try>> {
        let of = |(&index, report): (&usize, Option<Report>)| {
            let item = &self.items[index];
            Some(Try { key: item.line(order), event_id: item.event.event_id, report: report? })
        };
        indexes.iter().zip(reports).map(of).collect()
    }

    /// The first of each key among these; of all of them, under strict order.
    fn heads(&self, ready: &[usize], order: Order) -> Vec<(usize, u64)> {
        let mut keys = HashSet::new();
        let keyed = ready.iter().map(|&index| (index, self.items[index].line(order)));
        let heads = keyed.filter(|(_, key)| keys.insert(*key));
        heads.take(if order == Order::Strict { 1 } else { usize::MAX }).collect()
    }
}

impl Lane {
    /// With which of these to ask a destination that seems to be away.
    pub(crate) fn probe(&self, work: &Work, ready: &[usize]) -> Vec<usize> {
        let heads = work.heads(ready, self.runtime.order);
        self.runtime.contrast.probe(heads).into_iter().collect()
    }

    /// The destination still seems to be away after a pause. Whether to leave this work: for other work in which there may be a key
    /// that succeeds, or because some of it is decided, which must not stay unwritten for as long as the rest waits.
    pub(crate) async fn moves_on(&mut self, work: &Work) -> Result<bool, Halt> {
        let order = self.runtime.order;
        // What is due has its rows already, and stays due.
        if work.next.is_none() {
            return Ok(true);
        }
        let ready = work.ready(order, self.runtime.on_dead);
        if order == Order::Strict || !self.runtime.breaker.is_open() || !self.have_failed(work, &ready) {
            return Ok(false);
        }
        let decided = work.items.iter().any(|item| item.decision.is_some());
        Ok(decided || self.something_is_due().await? || self.something_follows(work).await?)
    }

    /// Whether the destination was asked with the first of each key among these, and failed.
    pub(crate) fn have_failed(&self, work: &Work, ready: &[usize]) -> bool {
        let has_failed = |(index, key): (usize, u64)| {
            self.runtime.contrast.has_failed(key, work.items[index].event.event_id)
        };
        work.heads(ready, self.runtime.order).into_iter().all(has_failed)
    }

    /// Whether to look for other keys before what is due, all of which has failed at a destination that seems to be away: what
    /// has not been tried tells more. Every other time, so that what is due is tried, too.
    pub(crate) fn tries_other_keys_first(&mut self, due: &Work) -> bool {
        let (order, on_dead) = (self.runtime.order, self.runtime.on_dead);
        let ready = due.ready(order, on_dead);
        let others = !self.tried_other_keys
            && !ready.is_empty()
            && order != Order::Strict
            && self.runtime.breaker.is_open()
            && self.have_failed(due, &ready);
        self.tried_other_keys = others;
        others
    }

    async fn something_is_due(&mut self) -> Result<bool, Halt> {
        if !self.lease.open {
            return Ok(false);
        }
        let found = self.runtime.store.due(&self.lease, 1).await;
        Ok(self.answered(found)?.is_some_and(|due| !due.deliveries.is_empty()))
    }

    /// Whether there is a key to ask with behind this work, or behind where the lane stands, that it does not hold up.
    pub(crate) async fn something_follows(&mut self, work: &Work) -> Result<bool, Halt> {
        let open = work.open_keys(self.runtime.on_dead);
        let mut from = Some(work.next.clone().unwrap_or_else(|| self.lease.position.clone()));
        for _ in 0..FARTHEST {
            let Some(position) = from.filter(|_| Instant::now() < self.extend_at()) else { break };
            let read = self.runtime.store.read(&self.lease, &position, self.limit()).await;
            let Some(batch) = self.answered(read)? else { break };
            if batch.is_idle() || batch.recalled {
                break;
            }
            if self.has_another_key(&batch, &open) {
                return Ok(true);
            }
            from = Some(batch.next);
        }
        Ok(false)
    }

    fn has_another_key(&self, batch: &Batch, open: &HashSet<u64>) -> bool {
        let is_another =
            |event: &Recorded| self.runtime.order == Order::None || !open.contains(&event.key_hash());
        batch.events.iter().any(|read| !read.held && is_another(&read.event))
    }

    /// An answer of the database, if there is one: what is in hand is kept without.
    fn answered<T>(&self, answer: postrider_core::Result<T>) -> Result<Option<T>, Halt> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.kind() == ErrorKind::LeaseLost => Err(Halt::Lost),
            Err(error) => {
                self.runtime.outage.begins(&error);
                Ok(None)
            }
        }
    }
}
