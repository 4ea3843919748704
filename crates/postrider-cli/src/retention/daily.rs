//! The day's retention: at its time, by one relay, once.

use std::time::{Duration, Instant};

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use postrider::store::Backoff;
use postrider::{Error, ErrorKind, OffsetDateTime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Ended, LEASE_NAME, Sweeper, Task, metrics, owner};
use crate::Failure;
use crate::config::{Config, Retention, Store};
use crate::database::{self, SharedStore};

#[cfg(test)]
mod tests;

/// How long to wait after a failure, at first and at most; and how long to sleep at most, since clocks are set.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);
const LONGEST_SLEEP: Duration = Duration::from_secs(10 * 60);
/// How long a batch may take to end once the process is to end.
const GRACE: Duration = Duration::from_secs(10);

/// What the relay does every day.
pub(crate) struct Daily {
    store: Store,
    retention: Retention,
    owner: String,
    lease: Duration,
    longest_sleep: Duration,
}

/// What came of a look at the clock.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// It is done, for today; the next one is due in so long.
    Waiting(Duration),
    /// Another process is at it.
    Elsewhere,
    /// The process is to end.
    Stopped,
}

impl Daily {
    /// What the settings ask for.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let retention = config.retention.clone()?;
        let owner = owner(config.relay.name.as_deref());
        Some(Self {
            // One batch after the other, and the lease beside it.
            store: Store { connections: 2, ..config.store.clone() },
            retention,
            owner,
            lease: config.relay.lease,
            longest_sleep: LONGEST_SLEEP,
        })
    }

    /// Does it every day until the process is to end.
    pub(crate) async fn run(self, mut ended: watch::Receiver<bool>) {
        metrics::begin(Task::daily(&self.retention).iter().map(Task::what));
        let mut log = None;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let wait = match self.look(&mut log, &ended).await {
                Ok(Look::Stopped) => return,
                Ok(Look::Elsewhere) => self.lease,
                Ok(Look::Waiting(wait)) => {
                    backoff.reset();
                    wait.min(self.longest_sleep)
                }
                Err(failure) => {
                    metrics::failed();
                    let wait = backoff.next_delay();
                    let again = crate::config::duration::show(wait);
                    tracing::warn!("retention failed, retrying in {again}: {failure}");
                    wait
                }
            };
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn look(
        &self,
        log: &mut Option<SharedStore>,
        ended: &watch::Receiver<bool>,
    ) -> Result<Look, Failure> {
        let log = match log {
            Some(log) => log,
            None => log.insert(database::open(&self.store).await?),
        };
        let looked = self.work(log, ended).await;
        // Whatever came of it, another may try.
        let left = log.release_leader_lease(LEASE_NAME, &self.owner).await;
        let look = looked?;
        left?;
        Ok(look)
    }

    async fn work(&self, log: &SharedStore, ended: &watch::Receiver<bool>) -> Result<Look, Error> {
        let Some(leader) = log.acquire_leader_lease(LEASE_NAME, &self.owner, self.lease).await? else {
            return Ok(Look::Elsewhere);
        };
        let (day, next) = due(leader.at, self.retention.at, &self.retention.zone)?;
        if leader.note.is_some_and(|last| *last >= *day.to_string()) {
            return Ok(Look::Waiting(next));
        }
        let began = Instant::now();
        let mut sweeper =
            Sweeper::new(log.clone(), self.owner.clone(), self.lease, self.retention.pacing, ended.clone());
        tracing::info!("retention started");
        let mut counts = Vec::new();
        for task in Task::daily(&self.retention) {
            let mut taken = 0;
            let done = sweeper.sweep(&task, |rows| {
                taken += rows;
                metrics::taken(task.what(), rows);
            });
            match done.await? {
                Ended::Done => counts.push(taken),
                Ended::Stopped => {
                    tracing::info!(taken, "retention stopped; another relay continues it");
                    return Ok(Look::Stopped);
                }
                Ended::Lost => {
                    tracing::warn!(
                        "another process has taken over retention, because this one extended its lease too late"
                    );
                    return Ok(Look::Elsewhere);
                }
            }
        }
        if !log.save_leader_note(LEASE_NAME, &self.owner, &day.to_string()).await? {
            tracing::warn!(
                "another process has taken over retention, because this one extended its lease too late"
            );
            return Ok(Look::Elsewhere);
        }
        self.tell(&counts, began.elapsed());
        Ok(Look::Waiting(next))
    }

    fn tell(&self, counts: &[u64], took: Duration) {
        metrics::done(took, OffsetDateTime::now_utc().unix_timestamp());
        let of = |what| {
            let tasks = Task::daily(&self.retention);
            let counted = tasks.iter().zip(counts).filter(|(task, _)| task.what() == what);
            counted.map(|(_, count)| *count).sum::<u64>()
        };
        tracing::info!(
            events = of("events"),
            how = if self.retention.archive { "archived" } else { "deleted" },
            marks = of("marks"),
            dropped = of("archived"),
            seconds = format!("{:.1}", took.as_secs_f64()),
            "retention finished"
        );
    }
}

/// The last day on which it became due by a time of a zone, and how long it is until the next one. A time that a change of clocks
/// leaves out is the one after the change, and of one that comes twice the first counts.
fn due(now: OffsetDateTime, at: u32, zone: &TimeZone) -> Result<(Date, Duration), Error> {
    let beyond = |error: jiff::Error| {
        Error::new(ErrorKind::Invalid, "retention", format!("the clock is beyond the calendar: {error}"))
    };
    let now = Timestamp::from_nanosecond(now.unix_timestamp_nanos()).map_err(beyond)?;
    let time = Time::midnight().saturating_add(i64::from(at).minutes());
    let begins = |day: Date| Ok(day.to_datetime(time).to_zoned(zone.clone())?.timestamp());
    let today = now.to_zoned(zone.clone()).date();
    let day =
        if begins(today).map_err(beyond)? <= now { today } else { today.yesterday().map_err(beyond)? };
    let next = day.tomorrow().and_then(begins).map_err(beyond)?;
    Ok((day, Duration::try_from(next.duration_since(now)).unwrap_or_default()))
}

/// Waits for the batch that is under way.
pub(crate) async fn ended(daily: JoinHandle<()>) {
    let stop = daily.abort_handle();
    if tokio::time::timeout(GRACE, daily).await.is_err() {
        // Its transaction is rolled back: nothing of it has happened.
        stop.abort();
    }
}
