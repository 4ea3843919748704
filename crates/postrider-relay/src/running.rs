//! A relay at work: waiting for what it does, and stopping it.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Result, Store, Uuid};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::observe::presence::Health;
use crate::wait;

/// How long a report that is under way may take when the relay ends.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Completes when the process gets SIGTERM, SIGINT, or SIGHUP, which a terminal sends when it is closed. On Linux, a SIGHUP that was ignored
/// at the start, as under `nohup`, stays ignored; other Unix systems do not tell, and it ends there.
///
/// ```
/// # async fn example(relay: postrider::Running) -> postrider::Result<()> {
/// // The last lines of `main`.
/// postrider::asked_to_end().await;
/// relay.stop().await
/// # }
/// ```
pub async fn asked_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            let mut hangup = if ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
                Some(_) = async { hangup.as_mut()?.recv().await } => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Whether this process ignores SIGHUP. Only Linux tells; elsewhere the answer is no.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is number 1, the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// A running relay. Dropping it asks it to stop, without waiting.
///
/// ```
/// use postrider::testing::Outbox;
/// use postrider::{Failure, NewEvent, Raw, Received, Relay};
///
/// async fn greet(event: Received<Raw>) -> Result<(), Failure> {
///     println!("event {}", event.event().event_id);
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> postrider::Result<()> {
/// let outbox = Outbox::new();
/// let relay = Relay::new(&outbox).subscribe("greetings", |s| s.on_type("GuestArrived", greet)).start().await?;
///
/// let mut tx = outbox.begin().await?;
/// let id = outbox.record(&mut tx, &NewEvent::of("guests", "GuestArrived", "Guest", "7", "hello")?).await?;
/// tx.commit().await?;
///
/// relay.delivered("greetings", id, std::time::Duration::from_secs(5)).await?;
/// relay.stop().await?; // lets deliveries end, and frees the lanes
/// # Ok(())
/// # }
/// ```
pub struct Running {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) managers: JoinSet<()>,
    pub(crate) hook: Option<(JoinHandle<()>, Duration)>,
    pub(crate) health: Health,
    /// What the relay is known by, and who reports on it.
    pub(crate) relay: Uuid,
    pub(crate) reporter: (JoinHandle<()>, Arc<Notify>),
}

impl Running {
    /// Stops: deliveries in flight finish, or are returned to the log after the grace period; lanes are released. Nothing that
    /// finished is delivered again.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.send_replace(true);
        let mut result = Ok(());
        while let Some(ended) = self.managers.join_next().await {
            if let Err(error) = ended {
                result = Err(ended_by_itself("stop", Some(&error)));
            }
        }
        if let Some((hook, grace)) = self.hook.take()
            && tokio::time::timeout(grace, hook).await.is_err()
        {
            tracing::warn!("the on_death hook did not finish within the grace period");
        }
        // It may be in the middle of a report, which must not come after the last word.
        self.reporter.1.notify_one();
        if tokio::time::timeout(LAST_WORD, &mut self.reporter.0).await.is_err() {
            self.reporter.0.abort();
        }
        if let Err(error) = self.store.deregister(self.relay).await {
            tracing::debug!(error = %error, "could not report that this relay stops; it counts as gone after a minute");
        }
        result
    }

    /// Completes when the task of a subscription has ended although the relay was not stopped, which is a bug. Its events are not
    /// delivered from then on: stop the relay and start another. It is cancel-safe; without a subscription it never completes.
    pub async fn failed(&mut self) -> Error {
        first_end(&mut self.managers).await
    }

    /// Problems that stop deliveries although the database answers.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The log.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Waits until an event was delivered to a subscription, to read your own writes. See [`wait::delivered`].
    pub async fn delivered(&self, subscription: &str, event_id: Uuid, within: Duration) -> Result<()> {
        wait::delivered(&*self.store, subscription, event_id, within).await
    }
}

async fn first_end(managers: &mut JoinSet<()>) -> Error {
    match managers.join_next().await {
        Some(ended) => ended_by_itself("run", ended.err().as_ref()),
        None => std::future::pending().await,
    }
}

fn ended_by_itself(operation: &'static str, why: Option<&JoinError>) -> Error {
    let message = match why {
        // What a panic says may quote an event.
        Some(error) if error.is_panic() => "a subscription's task panicked",
        _ => "a subscription's task ended unexpectedly",
    };
    Error::new(ErrorKind::Internal, operation, message)
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.managers.detach_all();
        self.reporter.0.abort();
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Running({} subscriptions)", self.managers.len())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_manager_that_panics_is_noticed_while_the_others_work() {
        let mut managers = JoinSet::new();
        managers.spawn(std::future::pending());
        managers.spawn(async { panic!("of order 4711") });
        let error = first_end(&mut managers).await;
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "a subscription's task panicked");
        assert_eq!(managers.len(), 1, "the other one goes on");
    }

    #[tokio::test]
    async fn a_manager_that_just_ends_is_noticed() {
        let mut managers = JoinSet::new();
        managers.spawn(async {});
        assert_eq!(first_end(&mut managers).await.message(), "a subscription's task ended unexpectedly");
    }

    #[tokio::test]
    async fn a_relay_whose_managers_work_has_not_failed() {
        let mut managers = JoinSet::new();
        assert!(first_end(&mut managers).now_or_never().is_none(), "without any");
        managers.spawn(std::future::pending());
        tokio::task::yield_now().await;
        assert!(first_end(&mut managers).now_or_never().is_none());
    }
}
