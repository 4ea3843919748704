//! A lane while this relay holds it: read, deliver, settle.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{Backoff, Batch, Bell, Error, ErrorKind, Lease, Order, Result, Unavailable};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use crate::engine::due_schedule::DueSchedule;
use crate::engine::flight::{Flight, Patience};
use crate::engine::pace::Pace;
use crate::engine::portion::{Portion, Share};
use crate::engine::runtime::SubscriptionRuntime;
use crate::engine::work::Work;
use crate::observe::stats::BatchStats;

/// How a lane's work ended.
#[derive(Debug)]
pub(crate) enum End {
    /// There was nothing to do for a while; the lane was given back.
    Idle(Box<Lease>),
    /// The lane was wanted back.
    Recalled,
    /// Another relay has the lane, or the history of the database changed.
    Lost,
    /// The relay stops.
    Stopped,
}

/// Why a lane can't go on.
#[derive(Debug)]
pub(crate) enum Halt {
    Lost,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::LeaseLost { Self::Lost } else { Self::Failed(error) }
    }
}

/// The pauses while the database does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long to leave a database alone that does not answer.
pub(crate) fn backoff() -> Backoff {
    Backoff::new(FIRST_PAUSE, LONGEST_PAUSE)
}

/// A read scans so many batches at most, however many lanes there are.
const MOST_SHARES: u32 = 4;
/// The shortest time between two questions about open deliveries.
const FRESH: Duration = Duration::from_millis(200);

/// A lane while this relay holds it.
pub(crate) struct Lane {
    pub(crate) runtime: Arc<SubscriptionRuntime>,
    pub(crate) lease: Lease,
    /// When the lease was last extended, by this machine's clock, before the database was asked.
    pub(crate) extended: Instant,
    /// When the database last said how the lane stands.
    pub(super) refreshed: Instant,
    pub(crate) recalled: bool,
    pub(crate) bell: Box<dyn Bell>,
    pub(crate) rung: bool,
    pub(super) ahead: Option<JoinHandle<Result<Batch>>>,
    /// The keys that the last batch left open: what was read ahead of its settle does not know them.
    pub(super) left_open: HashSet<u64>,
    pub(crate) due: DueSchedule,
    /// The holder before this one went away without a word: an event may have ended its process.
    pub(crate) careful: bool,
    /// Whether an event is being tried alone, and whether the destination was away when it was.
    pub(crate) alone: bool,
    pub(crate) away: Option<Unavailable>,
    /// Whether the last turn left what is due for other keys, while the destination seemed to be away.
    pub(crate) tried_other_keys: bool,
    /// What is still under way of batches that are settled.
    pub(crate) flights: Vec<Flight>,
    /// Told when something of the flights has ended.
    pub(crate) progress: Arc<Notify>,
    /// How many chains may be under way at once.
    pub(crate) slots: Arc<Semaphore>,
    /// Whether what takes long goes on while the lane reads on.
    pub(crate) goes_on: bool,
    pub(crate) patience: Patience,
    /// A delivery of several that was running panicked: which of them it was shows when each is delivered alone.
    pub(crate) deliver_one_by_one: bool,
    /// When the lease expires, for the sink.
    pub(crate) lapse: watch::Sender<Instant>,
    /// When what is under way is cut off, once the relay stops.
    pub(super) give_up: Option<Instant>,
    pub(crate) stats: BatchStats,
    pace: Pace,
    pub(crate) share: Share,
    portion: Portion,
    pub(crate) due_portion: Portion,
    /// How long to wait for more before the next read.
    pub(super) moment: Duration,
}

impl Lane {
    pub(crate) fn new(runtime: Arc<SubscriptionRuntime>, lease: Lease, claimed: Instant) -> Self {
        let careful = lease.claims > 1 && runtime.sink.runs_handlers();
        if careful {
            tracing::warn!(subscription = %lease.subscription, lane = lease.lane,
                "the last relay that held this lane disappeared; its events are handled one by one");
        }
        Self {
            bell: runtime.store.bell(),
            stats: BatchStats::new(&runtime),
            lease,
            extended: claimed,
            refreshed: claimed,
            recalled: false,
            rung: false,
            ahead: None,
            left_open: HashSet::new(),
            due: DueSchedule::default(),
            careful,
            alone: false,
            away: None,
            tried_other_keys: false,
            flights: Vec::new(),
            progress: Arc::default(),
            slots: Arc::new(Semaphore::new(runtime.concurrency.min(Semaphore::MAX_PERMITS))),
            // One at a time is the whole order: nothing could be begun beside what runs on.
            goes_on: runtime.sink.goes_on() && runtime.order != Order::Strict && runtime.concurrency > 1,
            patience: Patience::new(runtime.patience),
            deliver_one_by_one: false,
            lapse: watch::Sender::new(claimed + runtime.settings.lease),
            give_up: None,
            pace: Pace::new(Instant::now()),
            share: Share::take(),
            portion: Portion::default(),
            due_portion: Portion::default(),
            moment: Duration::ZERO,
            runtime,
        }
    }

    /// Works until the lane is idle, wanted back or lost, or the relay stops; and gives it back.
    pub(crate) async fn work(mut self) -> End {
        let mut backoff = backoff();
        let end = loop {
            match self.turns(&mut backoff).await {
                Ok(end) => break end,
                Err(Halt::Lost) => break End::Lost,
                Err(Halt::Failed(error)) => {
                    self.runtime.outage.begins(&error);
                    // What was read ahead may be of a connection, or a past, that is gone.
                    self.forget_ahead();
                    self.runtime.rest(backoff.next_delay()).await;
                    if self.is_out_of_time() {
                        break End::Lost;
                    }
                }
            }
        };
        self.forget_ahead();
        self.flights.clear();
        self.stats.say(&self.lease);
        self.release().await;
        end
    }

    /// Gives the lane back. While the database refuses, as a standby does that is not promoted yet, it is asked again until the lease is
    /// over: a lane that nobody works on must not stay leased for the rest of it.
    async fn release(&mut self) {
        let mut backoff = backoff();
        // A stale lease changes nothing; one that is ours, at a position that is not, has to be given back as well.
        while let Err(error) = self.runtime.store.release(self.lease.clone()).await {
            tracing::debug!(subscription = %self.lease.subscription, lane = self.lease.lane, error = %error,
                "could not release the lane; its lease expires");
            if self.runtime.is_stopping() || self.is_out_of_time() {
                return;
            }
            self.runtime.rest(backoff.next_delay()).await;
        }
    }

    async fn turns(&mut self, backoff: &mut Backoff) -> Result<End, Halt> {
        let linger = self.runtime.settings.lease / 3;
        let mut idle_since: Option<Instant> = None;
        loop {
            if self.runtime.is_stopping() {
                self.finish().await?;
                return Ok(End::Stopped);
            }
            if self.recalled {
                self.finish().await?;
                return Ok(End::Recalled);
            }
            let landed = self.settle_flights(None).await?;
            self.clear_away(None).await?;
            let worked = self.turn().await? || landed;
            self.runtime.outage.is_over();
            backoff.reset();
            if worked {
                idle_since = None;
                if Instant::now() >= self.extend_at() {
                    self.extend().await?;
                }
                continue;
            }
            self.stats.say(&self.lease);
            let idle = *idle_since.get_or_insert_with(Instant::now);
            if idle.elapsed() >= linger && self.flights.is_empty() {
                return Ok(End::Idle(Box::new(self.lease.clone())));
            }
            // What is running needs the lane, however long it takes.
            let end = if self.flights.is_empty() { idle + linger } else { self.extend_at() };
            self.sleep(end).await?;
        }
    }

    /// One turn: *due, read, deliver, judge, settle*. What is due goes first, then the next batch. Whether there was anything.
    async fn turn(&mut self) -> Result<bool, Halt> {
        self.lease.bytes = self.share.bytes();
        let due = self.look_for_due().await?;
        let worked = !due.items.is_empty();
        if worked && !self.tries_other_keys_first(&due) {
            let due =
                if self.careful { self.one_by_one(due).await? } else { self.suspects_alone(due).await? };
            let delivered = self.deliver(due).await?;
            self.settle(delivered).await?;
        }
        if self.recalled || self.runtime.is_stopping() {
            return Ok(worked);
        }
        if self.runtime.order == Order::Strict && self.due.holds() {
            return Ok(worked);
        }
        let Some(batch) = self.read().await? else { return Ok(worked) };
        if self.careful {
            self.careful = false;
            self.settle_as_suspects(batch).await?;
            return Ok(true);
        }
        self.read_ahead(&batch);
        let delivered = self.deliver(batch).await?;
        self.settle(delivered).await?;
        Ok(true)
    }

    /// The next batch: the one that was read ahead, or a new one. Nothing if there is nothing to read.
    async fn read(&mut self) -> Result<Option<Work>, Halt> {
        let batch = match self.ahead.take() {
            Some(reading) => match self.keeping_lease(async { Ok(reading.await) }).await? {
                Ok(batch) => batch?,
                Err(_) => return Ok(None),
            },
            None => {
                // It comes after the last settle, and so the store knows itself which keys are open.
                self.left_open.clear();
                self.read_on(self.limit()).await?
            }
        };
        self.recalled |= batch.recalled;
        if batch.is_idle() {
            // The bell may have rung for a delivery, not for an event.
            if self.rung && !self.lease.open && self.refreshed.elapsed() > FRESH {
                self.rung = false;
                self.extend().await?;
            }
            return Ok(None);
        }
        if batch.from != self.lease.position {
            return Ok(None);
        }
        self.bell.worked();
        self.stats.batch(&batch.events);
        let scanned = batch.scanned;
        let bytes = batch.events.iter().map(|read| read.event.size()).sum();
        self.portion.had(scanned, bytes, self.lease.bytes, self.most_rows());
        let mut open = self.keys_in_hand();
        open.extend(&self.left_open);
        let work = Work::of_batch(batch, &open);
        if !work.full {
            let pause = self.pace.found(scanned, Instant::now());
            self.moment = pause;
        }
        Ok(Some(work))
    }

    /// Begins to read the next batch while this one is delivered, if there will be one.
    fn read_ahead(&mut self, work: &Work) {
        if let (true, Some(next)) =
            (work.full && !self.recalled && self.runtime.order != Order::Strict, &work.next)
        {
            let (runtime, lease, next) = (Arc::clone(&self.runtime), self.lease.clone(), next.clone());
            let limit = self.limit();
            self.ahead = Some(tokio::spawn(async move { runtime.store.read(&lease, &next, limit).await }));
        }
    }

    /// How many rows a read scans at most: of several lanes each finds its share of them.
    fn most_rows(&self) -> u32 {
        self.runtime.batch.saturating_mul(self.lease.lanes.clamp(1, MOST_SHARES))
    }

    /// How many rows to read: fewer where the events are wide.
    pub(crate) fn limit(&self) -> u32 {
        self.portion.rows(self.most_rows())
    }

    /// Sleeps until there may be something to do, and not beyond `end`.
    async fn sleep(&mut self, end: Instant) -> Result<(), Halt> {
        let now = Instant::now();
        let mut until = end.min(self.extend_at());
        if let Some(look) = self.due.next_look(self.lease.open) {
            until = until.min(look);
        }
        let longest = self.runtime.at_most(until.saturating_duration_since(now));
        let poll = self.runtime.settings.poll;
        tokio::select! {
            () = self.runtime.stopped() => {}
            rung = self.bell.wait(poll) => {
                rung?;
                self.rung = true;
                self.due.soon();
            }
            () = self.progress.notified(), if !self.flights.is_empty() => {}
            () = tokio::time::sleep(longest) => {}
        }
        if Instant::now() >= self.extend_at() {
            self.extend().await?;
        }
        Ok(())
    }

    fn forget_ahead(&mut self) {
        if let Some(reading) = self.ahead.take() {
            reading.abort();
        }
    }
}
