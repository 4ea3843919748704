//! A batch of one partition: what is open of it, what may go next, and what follows from an outcome.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{DeliveryFailure, FailedAttempt, Outcome, Recorded, Retry, RetryDecision, Uuid, chance};

use crate::consume::arrived::Arrived;

/// A record and what has become of it so far.
pub(crate) struct Item {
    pub(crate) record: Arrived,
    /// The event in it and its key; nothing in what is no event.
    pub(crate) event: Option<(Arc<Recorded>, String)>,
    /// The number of attempts.
    pub(crate) tries: u32,
    /// When it failed first.
    failed_at: Option<Instant>,
    /// Not to be tried before this.
    due: Option<Instant>,
    /// The record before it in the batch that has the same event.
    same_as: Option<usize>,
    /// Why it is given up, once it is.
    pub(crate) given_up: Option<DeliveryFailure>,
    done: bool,
}

impl Item {
    fn new(record: Arrived) -> Self {
        Self {
            record,
            event: None,
            tries: 0,
            failed_at: None,
            due: None,
            same_as: None,
            given_up: None,
            done: false,
        }
    }

    /// The event in it, if it is one.
    pub(crate) fn event(&self) -> Option<&Recorded> {
        self.event.as_ref().map(|(event, _)| &**event)
    }

    /// It failed: when it is tried again; nothing if it is given up.
    fn failed(&mut self, asked: Option<Duration>, retry: &Retry, now: Instant) -> Option<Duration> {
        self.tries += 1;
        let age = now - *self.failed_at.get_or_insert(now);
        let failed = FailedAttempt { attempts: self.tries, max_attempts: None, age, asked };
        let RetryDecision::After(pause) = retry.decide(failed, chance()) else { return None };
        self.due = Some(now + pause);
        Some(pause)
    }
}

/// What followed from an outcome, for the metrics.
pub(crate) enum Consequence {
    Handled,
    Duplicate,
    /// Tried again after this.
    Again(Duration, DeliveryFailure),
    /// Not to blame: it waits for so long and loses no try.
    Held(Duration, DeliveryFailure),
    GivenUp,
}

/// What may go next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// These, in order.
    Now(Vec<usize>),
    /// Nothing before this.
    At(Instant),
}

/// A batch of one partition, in the order of its offsets.
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    same: HashMap<usize, Vec<usize>>,
}

impl Batch {
    /// A batch of records, each with its event, or why it has none, or nothing if it is passed over.
    pub(crate) fn new(records: Vec<(Arrived, Option<Result<Recorded, DeliveryFailure>>)>) -> Self {
        let mut first: HashMap<Uuid, usize> = HashMap::with_capacity(records.len());
        let mut same: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut items = Vec::with_capacity(records.len());
        for (index, (record, read)) in records.into_iter().enumerate() {
            let mut item = Item::new(record);
            match read {
                None => item.done = true,
                Some(Err(failure)) => item.given_up = Some(failure),
                Some(Ok(event)) => {
                    let leader = *first.entry(event.event_id).or_insert(index);
                    if leader != index {
                        item.same_as = Some(leader);
                        same.entry(leader).or_default().push(index);
                    }
                    let key = event.key().into_owned();
                    item.event = Some((Arc::new(event), key));
                }
            }
            items.push(item);
        }
        Self { items, same }
    }

    /// The offset that nothing before is open of; nothing while the first is.
    pub(crate) fn reached(&self) -> Option<i64> {
        match self.items.iter().position(|item| !item.done) {
            Some(0) => None,
            Some(open) => Some(self.items[open].record.offset),
            None => self.items.last().map(|item| item.record.offset + 1),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.items.iter().all(|item| item.done)
    }

    /// Whether something is open before something that is done: to end here would repeat what is done.
    pub(crate) fn has_holes(&self) -> bool {
        let last = self.items.iter().rposition(|item| item.done);
        last.is_some_and(|last| self.items[..last].iter().any(|item| !item.done))
    }

    /// The first that was given up and has no dead letter yet.
    pub(crate) fn next_letter(&self) -> Option<usize> {
        self.items.iter().position(|item| !item.done && item.given_up.is_some())
    }

    /// What may be tried now: of each key what follows its last done, unless the first of that has to wait. Only what is
    /// before something done if `holes` are to be filled.
    pub(crate) fn next(&self, now: Instant, holes: bool) -> Next {
        let end =
            if holes { self.items.iter().rposition(|item| item.done).unwrap_or(0) } else { self.items.len() };
        let mut waiting: HashSet<&str> = HashSet::new();
        let (mut ready, mut soonest) = (Vec::new(), None::<Instant>);
        for (index, item) in self.items[..end].iter().enumerate() {
            let Some((_, key)) = &item.event else { continue };
            if item.done || item.same_as.is_some() || waiting.contains(key.as_str()) {
                continue;
            }
            match item.due.filter(|due| *due > now) {
                Some(due) => {
                    waiting.insert(key);
                    soonest = Some(soonest.map_or(due, |soonest| soonest.min(due)));
                }
                None => ready.push(index),
            }
        }
        if ready.is_empty() {
            Next::At(soonest.unwrap_or(now + Duration::from_millis(100)))
        } else {
            Next::Now(ready)
        }
    }

    /// Those that have the same event and came after it.
    pub(crate) fn duplicates(&self, index: usize) -> impl Iterator<Item = &Item> {
        self.same.get(&index).into_iter().flatten().map(|each| &self.items[*each])
    }

    /// It is done, and with it those that have the same event.
    pub(crate) fn finish(&mut self, index: usize) -> usize {
        let others = self.same.remove(&index).unwrap_or_default();
        for each in others.iter().chain([&index]) {
            self.items[*each].done = true;
        }
        others.len()
    }

    /// What follows from an outcome.
    pub(crate) fn apply(
        &mut self,
        index: usize,
        outcome: Outcome,
        retry: &Retry,
        now: Instant,
    ) -> Consequence {
        let item = &mut self.items[index];
        match outcome {
            Outcome::Delivered => Consequence::Handled,
            Outcome::Duplicate => Consequence::Duplicate,
            Outcome::Hold { after, failure } => {
                item.due = Some(now + after);
                Consequence::Held(after, failure)
            }
            // Nobody is asked here whether others succeed: what is unclear is taken to be the event's.
            Outcome::Retry { after, failure } | Outcome::Unclear { after, failure, rejects: false } => {
                if let Some(pause) = item.failed(after, retry, now) {
                    return Consequence::Again(pause, failure);
                }
                item.given_up = Some(failure);
                Consequence::GivenUp
            }
            Outcome::Reject { failure } | Outcome::Unclear { failure, .. } => {
                item.tries += 1;
                item.given_up = Some(failure);
                Consequence::GivenUp
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::{Attributes, CloudEvents, IncomingEvent, OffsetDateTime, Payload};

    const PAUSE: Duration = Duration::from_secs(1);

    fn twice() -> Retry {
        Retry::fixed(PAUSE).max_attempts(2)
    }

    /// A batch from offset 10 on: each record by its key and its id.
    fn batch(events: &[(&str, &str)]) -> Batch {
        let record = |(index, (key, id)): (usize, &(&str, &str))| {
            let (topic, number) = ("t", 10 + index as i64);
            let arrived = Arrived {
                topic: topic.into(),
                partition: 0,
                offset: number,
                key: None,
                value: None,
                is_legible: true,
                headers: Vec::new(),
                time: None,
            };
            let attributes = [("specversion", "1.0"), ("id", id), ("source", "s"), ("type", "x")];
            let attributes: Attributes =
                attributes.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let arrival = IncomingEvent { topic, key: Some(key), number, time: OffsetDateTime::UNIX_EPOCH };
            let event =
                CloudEvents::read(&attributes, Payload::Json("1".into()), &arrival).expect("an event");
            (arrived, Some(Ok(event)))
        };
        Batch::new(events.iter().enumerate().map(record).collect())
    }

    fn failed() -> Outcome {
        Outcome::retry(DeliveryFailure::new("failed", "no"))
    }

    #[test]
    fn a_failed_event_holds_its_key_and_nothing_else_until_it_is_given_up() {
        let mut batch = batch(&[("a", "1"), ("b", "2"), ("a", "3")]);
        let now = Instant::now();
        assert_eq!(batch.next(now, false), Next::Now(vec![0, 1, 2]));
        assert!(matches!(batch.apply(0, failed(), &twice(), now), Consequence::Again(..)));
        batch.finish(1);
        assert_eq!(batch.next(now, false), Next::At(now + PAUSE), "the key waits");
        assert_eq!((batch.reached(), batch.has_holes()), (None, true));
        let later = now + PAUSE;
        assert_eq!(batch.next(later, false), Next::Now(vec![0, 2]));
        assert_eq!(
            batch.next(later, true),
            Next::Now(vec![0]),
            "to end without repetition, the first is enough"
        );
        assert!(matches!(batch.apply(0, failed(), &twice(), later), Consequence::GivenUp));
        assert_eq!((batch.next_letter(), batch.items[0].tries), (Some(0), 2));
        batch.finish(0);
        assert_eq!((batch.reached(), batch.has_holes(), batch.next_letter()), (Some(12), false, None));
        batch.finish(2);
        assert_eq!((batch.reached(), batch.is_done()), (Some(13), true));
    }

    #[test]
    fn an_event_that_fails_for_too_long_is_given_up_after_a_last_try_in_time() {
        let retry = Retry::fixed(3 * PAUSE).max_age(4 * PAUSE);
        let (mut batch, now) = (batch(&[("a", "1")]), Instant::now());
        let mut apply = |now| batch.apply(0, failed(), &retry, now);
        assert!(matches!(apply(now), Consequence::Again(pause, _) if pause == 3 * PAUSE));
        assert!(matches!(apply(now + 3 * PAUSE), Consequence::Again(pause, _) if pause == PAUSE));
        assert!(matches!(apply(now + 4 * PAUSE), Consequence::GivenUp));
    }

    #[test]
    fn an_event_that_comes_twice_is_tried_once() {
        let mut batch = batch(&[("a", "1"), ("a", "1"), ("b", "1"), ("a", "2")]);
        assert_eq!(batch.next(Instant::now(), false), Next::Now(vec![0, 3]));
        assert_eq!(batch.finish(0), 2, "the two others are done with it");
        assert_eq!(batch.reached(), Some(13));
    }

    #[test]
    fn a_hold_costs_no_try() {
        let mut batch = batch(&[("a", "1")]);
        let now = Instant::now();
        let hold =
            Outcome::Hold { after: Duration::from_secs(5), failure: DeliveryFailure::new("held", "wait") };
        assert!(matches!(batch.apply(0, hold, &twice(), now), Consequence::Held(..)));
        assert_eq!(
            (batch.items[0].tries, batch.next(now, false)),
            (0, Next::At(now + Duration::from_secs(5)))
        );
    }
}
