//! How a relay learns of new events: the server can't call, but it can be asked cheaply.
//!
//! One call numbers what is committed and says where the log ends. All bells of a process share the answers, so an idle
//! process asks four times a second, however many subscriptions it has; after work it asks every millisecond or two, and
//! slows down by half as much again each time. Whoever records through this process hurries it up. So an event of this
//! process is seen within milliseconds, one of another within a quarter of a second when nothing happened for a while.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{Bell, Result};
use postrider_sql::Pace;
use postrider_sql::session::within;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::number::{Rounds, Step};
use crate::pools::Pools;
use crate::sql::Sql;

const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(250);
/// How long the server may take to answer: without a limit, a relay could wait and never wake up.
const ANSWER: Duration = Duration::from_secs(5);
const OP: &str = "wait";

/// Who asks, for all bells of a store.
#[derive(Debug)]
pub(crate) struct LogPoller {
    pools: Pools,
    rounds: Arc<Rounds>,
    asked: Mutex<Option<Asked>>,
    recorded: Notify,
}

/// An answer, and when it was asked for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Instant,
    heard: Heard,
}

/// Where the log ended, and how often relays were woken without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heard {
    seq: i64,
    rings: i64,
}

impl LogPoller {
    pub(crate) fn new(pools: &Pools, rounds: &Arc<Rounds>) -> Self {
        Self {
            pools: pools.clone(),
            rounds: Arc::clone(rounds),
            asked: Mutex::default(),
            recorded: Notify::new(),
        }
    }

    /// This process recorded an event and will probably commit soon.
    pub(crate) fn recorded(&self) {
        self.recorded.notify_waiters();
    }

    /// The end of the log, at most `age` old; `None` if another process held the lock on the numbers.
    async fn heard(&self, age: Duration) -> Result<Option<Heard>> {
        let begun = Instant::now();
        let mut asked = self.asked.lock().await;
        if let Some(asked) = *asked
            && asked.at + age >= begun
        {
            return Ok(Some(asked.heard));
        }
        let at = Instant::now();
        let step = async {
            let mut conn = self.pools.conn(OP).await?;
            self.rounds.step(Sql::default(), &mut conn, OP).await
        };
        let step = within(ANSWER, OP, step).await?;
        let Some(Step { seq, rings, .. }) = step else { return Ok(None) };
        let heard = Heard { seq, rings };
        *asked = Some(Asked { at, heard });
        Ok(Some(heard))
    }
}

/// The bell of one lane's reader.
pub(crate) struct MySqlBell {
    poller: Arc<LogPoller>,
    /// What was heard when the last wait ended, and so before the read after it began.
    seen: Option<Heard>,
    pace: Pace,
}

impl MySqlBell {
    pub(crate) fn new(poller: Arc<LogPoller>) -> Self {
        Self { poller, seen: None, pace: Pace::new(SHORTEST, LONGEST) }
    }
}

#[async_trait]
impl Bell for MySqlBell {
    async fn wait(&mut self, longest: Duration) -> Result<()> {
        let poller = Arc::clone(&self.poller);
        let end = Pace::end(longest);
        let mut age = Duration::ZERO;
        loop {
            let recorded = poller.recorded.notified();
            let heard = poller.heard(age).await?;
            let changed = heard.is_some() && heard != self.seen;
            self.seen = heard.or(self.seen);
            if changed || Instant::now() >= end {
                return Ok(());
            }
            age = self.pace.rest(end, recorded).await.map_or(Duration::ZERO, |pause| pause / 2);
        }
    }

    fn worked(&mut self) {
        self.pace.worked();
    }
}
