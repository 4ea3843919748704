//! A database that falls silent on demand: connections stay, and nothing is answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use postrider::store::{
    Batch, Bell, Clock, DueBatch, Effect, EventLog, Lease, LeaseStatus, OutboxSource, Position, Settlement,
    Store, Subscribed, Subscription,
};
use postrider::{Error, ErrorKind, NewEvent, Recorded, Result, Uuid};

/// A call of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// A lane is claimed.
    Claim,
    /// A lease is extended.
    Extend,
    /// A lane is given back.
    Release,
    /// Events are read.
    Read,
    /// What is due is looked for.
    Due,
    /// A batch is settled.
    Settle,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Claim, Self::Extend, Self::Release, Self::Read, Self::Due, Self::Settle];
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// It does not arrive.
    Unheard,
    /// It is done, and the answer does not arrive.
    Unanswered,
    /// It is done, and the connection breaks before the answer arrives.
    Broken,
    /// It is not done, and the connection breaks at once.
    Refused,
    /// It is done after this time.
    Slow(Duration),
}

/// What a silent database was asked.
#[derive(Debug, Default)]
struct Line {
    silences: HashMap<Call, Silence>,
    /// How many calls wait for ever, and how many of those were given up.
    waiting: usize,
    given_up: usize,
    /// How often each call was made.
    asked: HashMap<Call, usize>,
    /// How many sleep on a bell.
    asleep: usize,
}

/// A source whose store falls silent on demand. Clones share it.
#[derive(Clone)]
pub struct Silent<S> {
    source: S,
    line: Arc<Mutex<Line>>,
}

impl<S: OutboxSource> Silent<S> {
    /// A source that answers everything.
    pub fn new(source: S) -> Self {
        Self { source, line: Arc::default() }
    }

    /// From now on these calls get no answer, or a late one.
    pub fn falls(&self, calls: &[Call], silence: Silence) {
        self.line().silences.extend(calls.iter().map(|call| (*call, silence)));
    }

    /// From now on every call is answered again; those that wait already are not.
    pub fn speaks(&self) {
        self.line().silences.clear();
    }

    /// How many calls wait for an answer that will not come.
    pub fn waiting(&self) -> usize {
        self.line().waiting
    }

    /// How many calls were given up.
    pub fn given_up(&self) -> usize {
        self.line().given_up
    }

    /// How often a call was made.
    pub fn asked(&self, call: Call) -> usize {
        self.line().asked.get(&call).copied().unwrap_or(0)
    }

    /// How many sleep on a bell now: lanes, and who looks after those that were given back.
    pub fn asleep(&self) -> usize {
        self.line().asleep
    }

    fn line(&self) -> std::sync::MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SilentStore {
    store: Arc<dyn Store>,
    line: Arc<Mutex<Line>>,
}

/// A call that waits for ever, counted while it does.
struct Waiting<'l>(&'l Mutex<Line>);

impl<'l> Waiting<'l> {
    fn on(line: &'l Mutex<Line>) -> Self {
        line.lock().unwrap_or_else(PoisonError::into_inner).waiting += 1;
        Self(line)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        line.waiting -= 1;
        line.given_up += 1;
    }
}

/// A bell that tells who sleeps on it.
struct SilentBell {
    bell: Box<dyn Bell>,
    line: Arc<Mutex<Line>>,
}

/// Somebody who sleeps, counted while they do.
struct Asleep<'l>(&'l Mutex<Line>);

impl<'l> Asleep<'l> {
    fn on(line: &'l Mutex<Line>) -> Self {
        line.lock().unwrap_or_else(PoisonError::into_inner).asleep += 1;
        Self(line)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).asleep -= 1;
    }
}

#[async_trait]
impl Bell for SilentBell {
    async fn wait(&mut self, longest: Duration) -> Result<()> {
        let _asleep = Asleep::on(&self.line);
        self.bell.wait(longest).await
    }

    fn worked(&mut self) {
        self.bell.worked();
    }
}

impl SilentStore {
    async fn through<T>(&self, call: Call, done: impl Future<Output = Result<T>>) -> Result<T> {
        let silence = {
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            *line.asked.entry(call).or_default() += 1;
            line.silences.get(&call).copied()
        };
        match silence {
            None => done.await,
            Some(Silence::Slow(time)) => {
                tokio::time::sleep(time).await;
                done.await
            }
            Some(silence @ (Silence::Broken | Silence::Refused)) => {
                if silence == Silence::Broken {
                    done.await?;
                }
                Err(Error::new(ErrorKind::Unreachable, "silent", "the connection broke"))
            }
            Some(silence) => {
                if silence == Silence::Unanswered {
                    let _ = done.await;
                }
                let _waiting = Waiting::on(&self.line);
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl EventLog for SilentStore {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        self.store.subscribe(subscription).await
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        self.through(Call::Claim, self.store.claim(subscription, owner, lease)).await
    }

    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus> {
        self.through(Call::Extend, self.store.extend(lease, by, reading)).await
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        self.through(Call::Release, self.store.release(lease)).await
    }

    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
        self.through(Call::Read, self.store.read(lease, from, limit)).await
    }

    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        self.through(Call::Due, self.store.due(lease, limit)).await
    }

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
        self.through(Call::Settle, self.store.settle(lease, settlement)).await
    }

    fn bell(&self) -> Box<dyn Bell> {
        Box::new(SilentBell { bell: self.store.bell(), line: Arc::clone(&self.line) })
    }
}

crate::pass_on!(SilentStore);

#[async_trait]
impl<S: OutboxSource> OutboxSource for Silent<S> {
    type Connection = S::Connection;
    type Transaction = S::Transaction;

    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(SilentStore { store: self.source.open().await?, line: Arc::clone(&self.line) }))
    }

    fn clock(&self) -> Clock {
        self.source.clock()
    }

    async fn begin(&self, effect: Effect<'_>) -> Result<(Self::Transaction, Vec<bool>)> {
        self.source.begin(effect).await
    }

    async fn commit(transaction: Self::Transaction) -> Result<()> {
        S::commit(transaction).await
    }

    async fn rollback(transaction: Self::Transaction) -> Result<()> {
        S::rollback(transaction).await
    }

    async fn mark_in(&self, connection: &mut Self::Connection, consumer: &str, id: Uuid) -> Result<bool> {
        self.source.mark_in(connection, consumer, id).await
    }

    async fn record_in(&self, connection: &mut Self::Connection, event: &NewEvent) -> Result<Uuid> {
        self.source.record_in(connection, event).await
    }

    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid> {
        self.source.record_alone(event).await
    }

    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        self.source.recorded(after, limit).await
    }

    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>> {
        self.source.handled(consumer, events).await
    }
}
