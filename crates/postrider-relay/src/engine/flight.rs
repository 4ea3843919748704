//! Running deliveries: tries that go on after the batch they were begun in is settled.
//!
//! A batch must not wait for its slowest event. When all of it is begun and the lane's patience is over, what is done is
//! settled; what is still under way becomes a row in state *running*, under the lease's epoch, and holds its key. The lane goes
//! on reading. When a running one ends, what became of it is settled like a due one. At most `concurrency` are under way at
//! once over all batches, because all deliveries of a lane share its slots.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{Delivery, Order, Position, Settlement, Unavailable};

use crate::engine::contrast::Try;
use crate::engine::delivering::Delivering;
use crate::engine::judge::panicked;
use crate::engine::lane::{Halt, Lane};
use crate::engine::retry_policy::Decision;
use crate::engine::work::{AttemptState, Item, Work};

/// A batch is waited for so many times as long as a try usually takes.
const USUAL_TRIES: f64 = 4.0;
/// And at least this long: a row costs more than that.
const SHORTEST: Duration = Duration::from_millis(50);
/// How long a try usually takes, before anything is known.
const FIRST_GUESS: f64 = 0.025;

/// How long tries that are cut off are waited for.
const CUT: Duration = Duration::from_millis(100);

/// How long a lane waits for the last tries of a batch.
#[derive(Debug)]
pub(crate) struct Patience {
    longest: Duration,
    /// How long a try has taken lately, in seconds.
    usual: f64,
}

impl Patience {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, usual: FIRST_GUESS }
    }

    /// A delivery is over, and its tries took so long on average.
    pub(crate) fn learn(&mut self, mean: Option<Duration>) {
        if let Some(mean) = mean {
            self.usual += 0.2 * (mean.as_secs_f64() - self.usual);
        }
    }

    /// Tries that were left running have ended, and took so long on average. One that hangs for long is no reason to wait for
    /// long the next time; where all take long, this grows step by step.
    pub(crate) fn learn_late(&mut self, mean: Option<Duration>) {
        self.learn(mean.map(|mean| mean.min(2 * self.now())));
    }

    /// How long to wait once all is begun: a few usual tries, so that one slow event delays the others by no more than that.
    pub(crate) fn now(&self) -> Duration {
        let usual = Duration::try_from_secs_f64(self.usual * USUAL_TRIES).unwrap_or(self.longest);
        usual.max(SHORTEST).min(self.longest)
    }
}

/// A delivery whose batch is settled, and which is still under way.
pub(crate) struct Flight {
    delivery: Arc<Delivery>,
    task: Delivering,
    /// The events that are under way, by their places in the delivery.
    items: Vec<(usize, Item)>,
    bytes: u64,
}

impl Flight {
    pub(crate) fn new(delivery: Arc<Delivery>, task: Delivering, items: Vec<(usize, Item)>) -> Self {
        Self { bytes: bytes(&delivery), delivery, task, items }
    }

    /// What has no answer yet: what it is in line with, and since when.
    pub(crate) fn under_way(&self, order: Order) -> impl Iterator<Item = (u64, Instant)> + '_ {
        let began =
            move |(place, item): &(usize, Item)| Some((item.line(order), self.delivery.began(*place)?));
        self.items.iter().filter_map(began)
    }

    /// Whether something of it has ended.
    pub(crate) fn has_news(&self) -> bool {
        self.task.0.is_finished() || self.items.iter().any(|(place, _)| self.delivery.is_reported(*place))
    }
}

/// What the events of a delivery take in memory, about.
fn bytes(delivery: &Delivery) -> u64 {
    delivery.events.iter().map(|attempt| attempt.event.size()).sum()
}

/// What has ended of the flights.
#[derive(Default)]
struct Landed {
    items: Vec<Item>,
    effects: Vec<uuid::Uuid>,
    away: Option<Unavailable>,
    /// Whether it only seems to be away.
    undecided: bool,
}

impl Lane {
    /// Whether there is room for one more that goes on: while one event of it is under way, all of them are in memory. A lane has
    /// its share of bytes once more for this; one that would have more waits for its batch.
    pub(crate) fn has_room_for(&self, delivery: &Delivery, work: &Work) -> bool {
        let held: u64 = self.flights.iter().chain(&work.flights).map(|flight| flight.bytes).sum();
        held + bytes(delivery) <= self.share.bytes()
    }

    /// The keys of what is under way from earlier batches.
    pub(crate) fn keys_in_hand(&self) -> HashSet<u64> {
        self.flights.iter().flat_map(|flight| &flight.items).map(|(_, item)| item.key).collect()
    }

    /// What is due may be in hand already, if the database has forgotten that it is running: it is not begun again, and its
    /// row is written anew.
    pub(crate) fn keep_in_hand(&self, work: &mut Work) {
        if self.flights.is_empty() {
            return;
        }
        let items = || self.flights.iter().flat_map(|flight| &flight.items);
        let events: HashSet<_> = items().map(|(_, item)| item.event.event_id).collect();
        let keys = self.keys_in_hand();
        for item in &mut work.items {
            if events.contains(&item.event.event_id) {
                item.attempt_state = AttemptState::Running;
            } else if self.runtime.order != Order::None && keys.contains(&item.key) {
                item.held = true;
            }
        }
    }

    /// Settles what has ended of what is running. Whether there was anything. `reading` is how far the lane is reading.
    pub(crate) async fn settle_flights(&mut self, reading: Option<&Position>) -> Result<bool, Halt> {
        if self.flights.is_empty() {
            return Ok(false);
        }
        // What is under way was ended with the lease.
        if self.is_out_of_time() {
            return Err(Halt::Lost);
        }
        let mut flights = std::mem::take(&mut self.flights);
        let landed = self.landed(&mut flights, false).await;
        self.flights = flights;
        if let Some(reason) = &landed.away {
            // The next try decides how long to pause.
            let _ = self.runtime.breaker.unavailable(reason, landed.undecided);
            self.note_away(reason);
        }
        if landed.items.is_empty() {
            return Ok(false);
        }
        let mut settlement = Settlement::at(self.lease.position.clone());
        settlement.reading = reading.cloned();
        settlement.effects = landed.effects;
        self.settle(Work::of_landed(landed.items, settlement)).await?;
        // What waited behind them may be due.
        self.due.soon();
        Ok(true)
    }

    /// Takes what has ended of the flights of work that is not settled yet: it needs no rows of its own. Why the destination
    /// seems to be away, if it does.
    pub(crate) async fn collect_flights(&mut self, work: &mut Work) -> Option<Unavailable> {
        if work.flights.is_empty() {
            return None;
        }
        let mut flights = std::mem::take(&mut work.flights);
        let landed = self.landed(&mut flights, false).await;
        work.flights = flights;
        work.settlement.effects.extend(landed.effects);
        for ended in landed.items {
            let same = |item: &&mut Item| item.event.event_id == ended.event.event_id;
            if let Some(item) = work.items.iter_mut().find(same) {
                (item.decision, item.past, item.noted) = (ended.decision, ended.past, ended.noted);
                item.attempt_state = AttemptState::Idle;
            }
        }
        landed.away
    }

    /// Takes what has ended out of flights, and the flights that are over; `all` of it when no more is waited for.
    async fn landed(&mut self, flights: &mut Vec<Flight>, all: bool) -> Landed {
        let (mut items, mut tries, mut landed) = (Vec::new(), Vec::new(), Landed::default());
        for flight in flights.iter_mut() {
            // Before what it reported is taken: nothing is reported afterwards.
            let ended = if flight.task.0.is_finished() { Some((&mut flight.task.0).await) } else { None };
            let delivery = &flight.delivery;
            let under_way = std::mem::take(&mut flight.items);
            if let (Some(Err(error)), [(place, _)]) = (&ended, under_way.as_slice())
                && error.is_panic()
            {
                delivery.report(*place, panicked());
            }
            for (place, item) in under_way {
                let report = delivery.take_report(place);
                if report.is_none() && ended.is_none() && !all {
                    flight.items.push((place, item));
                    continue;
                }
                match (&report, &ended) {
                    (Some(_), _) if delivery.is_effect(place) => landed.effects.push(item.event.event_id),
                    (None, Some(Ok(Err(reason)))) => landed.away = Some(reason.clone()),
                    (None, Some(Err(error))) => self.deliver_one_by_one |= error.is_panic(),
                    _ => {}
                }
                let (key, event_id) = (item.line(self.runtime.order), item.event.event_id);
                tries.push(report.map(|report| Try { key, event_id, report }));
                items.push(item);
            }
        }
        flights.retain(|flight| !flight.items.is_empty());
        let now = self.now();
        let reports = || tries.iter().flatten().map(|each| &each.report);
        let spent: Duration = reports().map(|report| report.ended - report.began).sum();
        let count = u32::try_from(reports().count()).unwrap_or(u32::MAX);
        self.patience.learn_late((count > 0).then(|| spent / count));
        let order = self.runtime.order;
        let under_way = self.flights.iter().chain(&*flights).flat_map(|flight| flight.under_way(order));
        let under_way = under_way.collect();
        let interpreted = self.runtime.interpret(tries, landed.away.is_some(), under_way);
        for (item, report) in items.iter_mut().zip(interpreted.reports) {
            if let Some(report) = report {
                self.runtime.decide(item, report, now);
            }
            item.attempt_state = if item.decision.is_some() { AttemptState::Idle } else { AttemptState::Cut };
        }
        if items.iter().any(|item| matches!(item.decision, Some(Decision::Delivered { .. }))) {
            self.runtime.breaker.available();
        }
        landed.undecided = landed.away.is_none();
        landed.away = match (landed.away, interpreted.undecided) {
            (Some(reason), Some(other)) => Some(reason.or_longer(&other)),
            (reason, other) => reason.or(other),
        };
        landed.items = items;
        landed
    }

    /// Waits for what is running, and settles it. Where the relay stops it is cut off when its grace is over, and given back.
    pub(crate) async fn finish(&mut self) -> Result<(), Halt> {
        loop {
            self.settle_flights(None).await?;
            if self.flights.is_empty() {
                return Ok(());
            }
            let stopping = self.runtime.is_stopping();
            let give_up = stopping.then(|| self.give_up_at());
            if give_up.is_some_and(|give_up| Instant::now() >= give_up) {
                return self.cut().await;
            }
            let until = give_up.map_or(self.extend_at(), |give_up| give_up.min(self.extend_at()));
            tokio::select! {
                () = self.progress.notified() => {}
                () = tokio::time::sleep_until(until.into()) => {}
                () = self.runtime.stopped(), if !stopping => {}
            }
            if Instant::now() >= self.extend_at() {
                self.extend().await?;
            }
        }
    }

    /// Cuts off what is running and gives it back.
    async fn cut(&mut self) -> Result<(), Halt> {
        self.flights.iter().for_each(|flight| flight.task.0.abort());
        // What is reported until they have ended counts. A handler that blocks its thread can't be ended, and is not waited for.
        let ended = async {
            while !self.flights.iter().all(|flight| flight.task.0.is_finished()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(CUT, ended).await;
        let mut flights = std::mem::take(&mut self.flights);
        let landed = self.landed(&mut flights, true).await;
        let mut settlement = Settlement::at(self.lease.position.clone());
        settlement.effects = landed.effects;
        self.settle(Work::of_landed(landed.items, settlement)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn after(tries: impl IntoIterator<Item = Duration>) -> Duration {
        let mut patience = Patience::new(Duration::from_secs(1));
        tries.into_iter().for_each(|mean| patience.learn(Some(mean)));
        patience.now()
    }

    #[test]
    fn patience_follows_what_tries_usually_take_up_to_what_is_set() {
        assert_eq!(after([]), 100 * MILLISECOND);
        assert_eq!(after([MILLISECOND; 50]), SHORTEST);
        let slow = after([200 * MILLISECOND; 50]);
        assert!(slow > 790 * MILLISECOND && slow <= 800 * MILLISECOND, "{slow:?}");
        assert_eq!(after([Duration::from_secs(2); 50]), Duration::from_secs(1));
        assert_eq!(after([Duration::MAX; 50]), Duration::from_secs(1));
        assert_eq!(Patience::new(10 * MILLISECOND).now(), 10 * MILLISECOND);
    }

    /// Nothing of a batch ends in time where all tries take longer: what ends later teaches, too.
    #[test]
    fn what_was_left_running_teaches_patience_step_by_step() {
        let mut patience = Patience::new(Duration::from_secs(1));
        let mut left_running = 0;
        while patience.now() < 300 * MILLISECOND {
            left_running += 1;
            patience.learn_late(Some(300 * MILLISECOND));
        }
        assert!(left_running <= 5, "{left_running}");
        let mut patience = Patience::new(Duration::from_secs(1));
        patience.learn_late(Some(Duration::from_secs(30)));
        assert!(patience.now() < 300 * MILLISECOND, "one that hangs says little of the others");
    }
}
