//! The ports: what the services need of the outside.

use std::fmt;
use std::future::Future;

use uuid::Uuid;

use crate::domain::{About, Attempt, Intent, Message, Placed, Reason, Reply, Signal, Status, Timestamp};

/// Why something could not be done, by what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It may work later: the network, a timeout, 5xx, the database is away.
    Retry(String),
    /// Trying again can't help: a policy, data that contradict each other.
    Reject(String),
    /// What is asked for can't be: a value that is out of its range, a text that can't be kept. Trying again can't help.
    Invalid(String),
    /// What the message is about is not there. Where messages are sent before their transaction commits, it may be soon; elsewhere
    /// trying again can't help.
    Missing(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(message)
            | Self::Reject(message)
            | Self::Invalid(message)
            | Self::Missing(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Fault {}

/// What a port answers.
pub type Answer<T> = Result<T, Fault>;

/// Where messages are published: the outbox of this transaction, or a broker.
pub trait EventBus: Send {
    /// Publishes a message, and returns its id.
    fn publish<M: Message>(
        &mut self,
        message: &M,
        about: &About,
    ) -> impl Future<Output = Answer<Uuid>> + Send;
}

/// Opens transactions.
pub trait Transactions: Clone + Send + Sync + 'static {
    /// A transaction.
    type Work: Work;
    /// Begins one. It is rolled back unless it is committed.
    fn begin(&self) -> impl Future<Output = Answer<Self::Work>> + Send;
}

/// A transaction: changes and messages, all of them or none.
pub trait Work: EventBus + Sized {
    /// Writes a signal and its intent. False if the signal is known already.
    fn open_intent(&mut self, signal: &Signal, now: Timestamp) -> impl Future<Output = Answer<bool>> + Send;
    /// An intent.
    fn intent(&mut self, id: Uuid) -> impl Future<Output = Answer<Option<Intent>>> + Send;
    /// An intent, which nobody else locks until this transaction ends: what its attempts are, stays so.
    fn lock_intent(&mut self, id: Uuid) -> impl Future<Output = Answer<Option<Intent>>> + Send;
    /// An attempt.
    fn attempt(&mut self, identifier: &str) -> impl Future<Output = Answer<Option<Attempt>>> + Send;
    /// The attempts of an intent, the newest first.
    fn attempts(&mut self, intent: Uuid) -> impl Future<Output = Answer<Vec<Attempt>>> + Send;
    /// Writes a new attempt. False if its number or its identifier is taken.
    fn open_attempt(
        &mut self,
        intent: Uuid,
        no: i32,
        state: (Status, Reason),
        now: Timestamp,
    ) -> impl Future<Output = Answer<bool>> + Send;
    /// Moves an attempt from one state to another. False if it was not in the first one.
    fn move_attempt(
        &mut self,
        attempt: &Attempt,
        to: (Status, Reason),
        order_id: Option<&str>,
        now: Timestamp,
    ) -> impl Future<Output = Answer<bool>> + Send;
    /// The attempts that are not settled: unknown, or requested.
    fn unsettled(&mut self) -> impl Future<Output = Answer<Vec<Attempt>>> + Send;
    /// The attempts that the exchange has, and whose volume is not booked completely.
    fn unfilled(&mut self) -> impl Future<Output = Answer<Vec<Attempt>>> + Send;
    /// Books how much of an attempt was executed since the last time, here and in the position, and returns it. `executed` is all of it
    /// so far. Nothing if there is nothing new, or if somebody else has just booked it.
    fn fill(
        &mut self,
        intent: &Intent,
        identifier: &str,
        executed: i64,
        now: Timestamp,
    ) -> impl Future<Output = Answer<Option<i64>>> + Send;
    /// Whether no order may be placed.
    fn kill_switch(&mut self) -> impl Future<Output = Answer<bool>> + Send;
    /// Turns the kill switch.
    fn set_kill_switch(&mut self, engaged: bool, now: Timestamp) -> impl Future<Output = Answer<()>> + Send;
    /// Writes into the log of notices. False if the event is there already.
    fn log_notice(
        &mut self,
        event_id: Uuid,
        text: &str,
        now: Timestamp,
    ) -> impl Future<Output = Answer<bool>> + Send;
    /// Writes into the log of operations. False if the event is there already.
    fn log_operation(
        &mut self,
        event_id: Uuid,
        text: &str,
        now: Timestamp,
    ) -> impl Future<Output = Answer<bool>> + Send;
    /// Writes a backtest that is to be run.
    fn open_job(&mut self, id: Uuid, market: &str, now: Timestamp)
    -> impl Future<Output = Answer<()>> + Send;
    /// Whether a backtest has its result; nothing if there is no such backtest.
    fn has_result(&mut self, id: Uuid) -> impl Future<Output = Answer<Option<bool>>> + Send;
    /// Writes the result of a backtest. False if it has one, or does not exist.
    fn finish_job(
        &mut self,
        id: Uuid,
        profit: i64,
        now: Timestamp,
    ) -> impl Future<Output = Answer<bool>> + Send;
    /// Commits.
    fn commit(self) -> impl Future<Output = Answer<()>> + Send;
}

/// The exchange.
pub trait Exchange: Clone + Send + Sync + 'static {
    /// Places an order. Every way to fail is a [`Reply`]: whoever calls must not call again.
    fn place(&self, identifier: &str, intent: &Intent) -> impl Future<Output = Reply> + Send;
    /// The order with an identifier, if the exchange has one.
    fn find(&self, identifier: &str) -> impl Future<Output = Answer<Option<Placed>>> + Send;
    /// Prices of the past, in KRW.
    fn candles(&self, market: &str) -> impl Future<Output = Answer<Vec<i64>>> + Send;
}

/// Notices on the owner's devices.
pub trait Push: Clone + Send + Sync + 'static {
    /// Sends one.
    fn send(&self, text: &str) -> impl Future<Output = Answer<()>> + Send;
}

/// A step of the executor, where a test may kill it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The command is here, and nothing is written.
    Received,
    /// The attempt is written as requested, and nothing is sent.
    Requested,
    /// The exchange has answered, and the answer is not written.
    Answered,
    /// The answer is written, and the command is not marked as done.
    Settled,
}

/// Is told of each step. In production it does nothing.
pub trait Steps: Clone + Send + Sync + 'static {
    /// A step is reached.
    fn reach(&self, step: Step) -> impl Future<Output = ()> + Send;
}
