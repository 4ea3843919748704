//! A lane while this relay holds it: read, deliver, settle.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{
    Batch, Bell, Error, ErrorKind, Lease, OffsetDateTime, Order, Result, Standing, Unavailable,
};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use crate::account::Account;
use crate::flight::{Flight, Patience};
use crate::pace::Pace;
use crate::portion::{Portion, Share};
use crate::reader::Reader;
use crate::watch::DueWatch;
use crate::work::{Work, may_be_of_an_event};

/// How a lane's work ended.
#[derive(Debug)]
pub(crate) enum End {
    /// There was nothing to do for a while; the lane was given back.
    Idle(Box<Lease>),
    /// The lane was wanted back.
    Recalled,
    /// The lane is somebody else's, or the database's past changed.
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
/// A read scans so many batches at most, however many lanes there are.
const MOST_SHARES: u32 = 4;
/// What the lease says of open deliveries is not asked anew more often than this.
const FRESH: Duration = Duration::from_millis(200);

/// A lane while this relay holds it.
pub(crate) struct Lane {
    pub(crate) reader: Arc<Reader>,
    pub(crate) lease: Lease,
    /// When the lease was last prolonged, by this machine's clock, before the database was asked.
    pub(crate) prolonged: Instant,
    /// When the database last said how the lane stands.
    refreshed: Instant,
    pub(crate) recalled: bool,
    pub(crate) bell: Box<dyn Bell>,
    pub(crate) rung: bool,
    ahead: Option<JoinHandle<Result<Batch>>>,
    /// The keys that the last batch left open: what was read ahead of its settle does not know them.
    left_open: HashSet<u64>,
    pub(crate) due: DueWatch,
    /// The holder before this one went away without a word: an event may have ended its process.
    pub(crate) careful: bool,
    /// Whether an event is being tried alone, and whether the destination was away when it was.
    pub(crate) alone: bool,
    pub(crate) away: Option<Unavailable>,
    /// Whether the last turn left what is due for other keys, while the destination seemed to be away.
    pub(crate) asked_others: bool,
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
    pub(crate) wary: bool,
    /// When the lease runs out, for whoever delivers under it.
    pub(crate) lapse: watch::Sender<Instant>,
    /// When what is under way is cut off, once the relay stops.
    give_up: Option<Instant>,
    pub(crate) account: Account,
    pace: Pace,
    pub(crate) share: Share,
    portion: Portion,
    pub(crate) due_portion: Portion,
    /// How long to wait for more before the next read.
    moment: Duration,
}

impl Lane {
    pub(crate) fn new(reader: Arc<Reader>, lease: Lease, claimed: Instant) -> Self {
        let careful = lease.claims > 1 && reader.sink.runs_handlers();
        if careful {
            tracing::warn!(subscription = %lease.subscription, lane = lease.lane,
                "the last holder of the lane went away without a word; its events are handled one by one");
        }
        Self {
            bell: reader.store.bell(),
            account: Account::new(&reader),
            lease,
            prolonged: claimed,
            refreshed: claimed,
            recalled: false,
            rung: false,
            ahead: None,
            left_open: HashSet::new(),
            due: DueWatch::default(),
            careful,
            alone: false,
            away: None,
            asked_others: false,
            flights: Vec::new(),
            progress: Arc::default(),
            slots: Arc::new(Semaphore::new(reader.concurrency.min(Semaphore::MAX_PERMITS))),
            // One at a time is the whole order: nothing could be begun beside what runs on.
            goes_on: reader.sink.goes_on() && reader.order != Order::Strict && reader.concurrency > 1,
            patience: Patience::new(reader.patience),
            wary: false,
            lapse: watch::Sender::new(claimed + reader.settings.lease),
            give_up: None,
            pace: Pace::new(Instant::now()),
            share: Share::take(),
            portion: Portion::default(),
            due_portion: Portion::default(),
            moment: Duration::ZERO,
            reader,
        }
    }

    /// Works until the lane is idle, wanted back or lost, or the relay stops; and gives it back.
    pub(crate) async fn work(mut self) -> End {
        let mut pause = FIRST_PAUSE;
        let end = loop {
            match self.turns(&mut pause).await {
                Ok(end) => break end,
                Err(Halt::Lost) => break End::Lost,
                Err(Halt::Failed(error)) => {
                    self.reader.outage.begins(&error);
                    // What was read ahead may be of a connection, or a past, that is gone.
                    self.forget_ahead();
                    self.reader.rest(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    if self.is_out_of_time() {
                        break End::Lost;
                    }
                }
            }
        };
        self.forget_ahead();
        self.flights.clear();
        self.account.say();
        // A stale lease changes nothing; one that is ours, at a position that is not, has to be given back as well.
        if let Err(error) = self.reader.store.release(self.lease.clone()).await {
            tracing::debug!(subscription = %self.lease.subscription, lane = self.lease.lane, error = %error,
                "the lane could not be given back; its lease runs out by itself");
        }
        end
    }

    async fn turns(&mut self, pause: &mut Duration) -> Result<End, Halt> {
        let linger = self.reader.settings.lease / 3;
        let mut idle_since: Option<Instant> = None;
        loop {
            if self.reader.is_stopping() {
                self.finish().await?;
                return Ok(End::Stopped);
            }
            if self.recalled {
                self.finish().await?;
                return Ok(End::Recalled);
            }
            let landed = self.land(None).await?;
            self.note_back(None).await?;
            let worked = self.turn().await? || landed;
            self.reader.outage.is_over();
            *pause = FIRST_PAUSE;
            if worked {
                idle_since = None;
                if Instant::now() >= self.prolong_at() {
                    self.prolong().await?;
                }
                continue;
            }
            self.account.say();
            let idle = *idle_since.get_or_insert_with(Instant::now);
            if idle.elapsed() >= linger && self.flights.is_empty() {
                return Ok(End::Idle(Box::new(self.lease.clone())));
            }
            // What is running needs the lane, however long it takes.
            let end = if self.flights.is_empty() { idle + linger } else { self.prolong_at() };
            self.sleep(end).await?;
        }
    }

    /// One turn: what is due, then the next batch; each is delivered and settled. Whether there was anything.
    async fn turn(&mut self) -> Result<bool, Halt> {
        self.lease.bytes = self.share.bytes();
        let due = self.look_for_due().await?;
        let worked = !due.items.is_empty();
        if worked && !self.asks_others_first(&due) {
            let due =
                if self.careful { self.one_by_one(due).await? } else { self.suspects_alone(due).await? };
            let delivered = self.deliver(due).await?;
            self.settle(delivered).await?;
        }
        if self.recalled || self.reader.is_stopping() {
            return Ok(worked);
        }
        if self.reader.order == Order::Strict && self.due.holds() {
            return Ok(worked);
        }
        let Some(batch) = self.read().await? else { return Ok(worked) };
        if self.careful {
            self.careful = false;
            self.put_aside(batch).await?;
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
            Some(reading) => match self.beside(async { Ok(reading.await) }).await? {
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
            // Somebody may have rung for deliveries, not for events.
            if self.rung && !self.lease.open && self.refreshed.elapsed() > FRESH {
                self.rung = false;
                self.prolong().await?;
            }
            return Ok(None);
        }
        if batch.from != self.lease.position {
            return Ok(None);
        }
        self.bell.worked();
        self.account.batch(&batch.events);
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
            (work.full && !self.recalled && self.reader.order != Order::Strict, &work.next)
        {
            let (reader, lease, next) = (Arc::clone(&self.reader), self.lease.clone(), next.clone());
            let limit = self.limit();
            self.ahead = Some(tokio::spawn(async move { reader.store.read(&lease, &next, limit).await }));
        }
    }

    /// How many rows a read scans at most: of several lanes each finds its share of them.
    fn most_rows(&self) -> u32 {
        self.reader.batch.saturating_mul(self.lease.lanes.clamp(1, MOST_SHARES))
    }

    /// How many rows to read: fewer where the events are wide.
    pub(crate) fn limit(&self) -> u32 {
        self.portion.rows(self.most_rows())
    }

    /// Writes what became of events; asks again while the answer is in doubt.
    pub(crate) async fn settle(&mut self, mut work: Work) -> Result<(), Halt> {
        if work.is_untouched() && (self.recalled || self.reader.is_stopping()) {
            // Nothing of it was tried: whoever reads next reads it.
            return Ok(());
        }
        work.close();
        if work.is_empty() {
            return Ok(());
        }
        let mut pause = FIRST_PAUSE;
        let (mut in_doubt, mut stopping_since) = (false, None::<Instant>);
        loop {
            let error = match self.reader.store.settle(&mut self.lease, &work.settlement).await {
                Ok(standing) if standing != Standing::Lost => {
                    self.recalled |= standing == Standing::Recalled;
                    break;
                }
                Ok(_) if in_doubt && self.was_written(&work).await => break,
                Ok(_) => return Err(self.lost(&work, in_doubt)),
                Err(error) if error.kind() == ErrorKind::LeaseLost => {
                    if in_doubt && self.was_written(&work).await {
                        break;
                    }
                    return Err(self.lost(&work, in_doubt));
                }
                // What was delivered can't be delivered once more: it had been written, and only the answer was lost.
                Err(error) if in_doubt && error.kind() == ErrorKind::Invalid => {
                    tracing::debug!(error = %error, "it had been settled");
                    break;
                }
                Err(error) => error,
            };
            // It may have been moved before the answer was lost.
            self.lease.position = work.settlement.from.clone();
            self.reader.outage.begins(&error);
            if may_be_of_an_event(&error) && !in_doubt {
                work.write_one_by_one(&error);
            }
            in_doubt |= error.kind() != ErrorKind::Invalid;
            if self.reader.is_stopping() {
                let since = *stopping_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= self.reader.settings.grace {
                    return Err(Halt::Failed(error));
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if self.is_out_of_time() {
                return Err(self.lost(&work, in_doubt));
            }
            match self.prolong().await {
                Err(Halt::Lost) if in_doubt && self.was_written(&work).await => break,
                Err(Halt::Lost) => return Err(self.lost(&work, in_doubt)),
                // The lane was to move, and still stands where it stood: it was not written.
                Ok(()) if work.next.is_some() => in_doubt = false,
                _ => {}
            }
        }
        self.refreshed = Instant::now();
        self.due.after(&work.settlement.deliveries);
        let now = self.now();
        self.account.settled(&work, now);
        if work.next.is_some() {
            self.left_open = work.open_keys(self.reader.on_dead);
        }
        let read = work.next.is_some();
        // Their rows are written.
        self.flights.append(&mut work.flights);
        if read {
            let moment = std::mem::take(&mut self.moment);
            if !moment.is_zero() && self.ahead.is_none() {
                self.reader.rest(moment).await;
            }
        }
        Ok(())
    }

    /// A settle was not answered, and the lane does not stand where it stood. Whether it was written: then the lane stands where it was
    /// to move to, still under this lease, and what runs goes on.
    async fn was_written(&mut self, work: &Work) -> bool {
        if work.settlement.from == work.settlement.to {
            return false;
        }
        let mut lease = Lease { position: work.settlement.to.clone(), ..self.lease.clone() };
        let asked = Instant::now();
        match self.reader.store.extend(&mut lease, self.reader.settings.lease, None).await {
            Ok(standing) if standing != Standing::Lost => {
                self.lease = lease;
                self.prolonged_as(asked, standing).is_ok()
            }
            _ => false,
        }
    }

    /// The lane is lost. Whether the last settle was written may never be known: a death that may have been is told.
    fn lost(&mut self, work: &Work, in_doubt: bool) -> Halt {
        if in_doubt {
            self.account.deaths(work);
        }
        Halt::Lost
    }

    /// Sleeps until there may be something to do, and not beyond `end`.
    async fn sleep(&mut self, end: Instant) -> Result<(), Halt> {
        let now = Instant::now();
        let mut until = end.min(self.prolong_at());
        if let Some(look) = self.due.next_look(self.lease.open) {
            until = until.min(look);
        }
        let longest = self.reader.at_most(until.saturating_duration_since(now));
        let poll = self.reader.settings.poll;
        tokio::select! {
            () = self.reader.stopped() => {}
            rung = self.bell.wait(poll) => {
                rung?;
                self.rung = true;
                self.due.soon();
            }
            () = self.progress.notified(), if !self.flights.is_empty() => {}
            () = tokio::time::sleep(longest) => {}
        }
        if Instant::now() >= self.prolong_at() {
            self.prolong().await?;
        }
        Ok(())
    }

    /// When the lease has to be prolonged.
    pub(crate) fn prolong_at(&self) -> Instant {
        self.prolonged + self.reader.settings.lease / 3
    }

    /// When what is under way is cut off: the relay stops, and its grace counts from when this lane first heard of it.
    pub(crate) fn give_up_at(&mut self) -> Instant {
        *self.give_up.get_or_insert_with(|| Instant::now() + self.reader.settings.grace)
    }

    /// Whether the lease may have run out: nothing may be done under it any more.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.prolonged.elapsed() >= self.reader.settings.lease
    }

    /// Prolongs the lease.
    pub(crate) async fn prolong(&mut self) -> Result<(), Halt> {
        let asked = Instant::now();
        let standing = self.reader.store.extend(&mut self.lease, self.reader.settings.lease, None).await?;
        self.prolonged_as(asked, standing)
    }

    pub(crate) fn prolonged_as(&mut self, asked: Instant, standing: Standing) -> Result<(), Halt> {
        if standing == Standing::Lost {
            return Err(Halt::Lost);
        }
        self.recalled |= standing == Standing::Recalled;
        self.prolonged = asked;
        self.lapse.send_replace(asked + self.reader.settings.lease);
        self.refreshed = Instant::now();
        if self.lease.open {
            self.due.soon();
        }
        Ok(())
    }

    /// The store's time, as far as it can be told without asking.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.reader
            .clock
            .now()
            .unwrap_or_else(|| self.lease.until - self.reader.settings.lease + self.prolonged.elapsed())
    }

    fn forget_ahead(&mut self) {
        if let Some(reading) = self.ahead.take() {
            reading.abort();
        }
    }
}
