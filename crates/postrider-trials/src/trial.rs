//! A trial: a test store, its relays, and what to wait for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider::Uuid;
use postrider::store::{EventState, Figures, OutboxSource, State, StateQuery, Store};
use postrider_testkit::until_within;
use tokio::time::Instant;

use crate::relay_options::RelayOptions;
use crate::relay_process::{Errors, RelayProcess};
use crate::test_store::{Keep, TestStore};
use crate::trial_report::{Kill, TrialReport};
use crate::{EFFECTS, PLAIN};

/// How long anything may take that is waited for.
fn patience() -> Duration {
    Duration::from_secs(if is_soak() { 300 } else { 60 })
}

/// Whether the long forms are asked for.
pub fn is_soak() -> bool {
    std::env::var_os("POSTRIDER_SOAK").is_some()
}

/// Waits until a condition holds; fails the test when that takes too long.
pub async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    until_within(what, patience(), condition).await;
}

/// A test store and what happens on it.
pub struct Trial<G: TestStore> {
    /// The test store.
    pub test_store: G,
    program: &'static str,
    store: Arc<dyn Store>,
    relay_processes: Mutex<Vec<(String, Errors)>>,
    /// Dropped last.
    _keep: Keep,
}

impl<G: TestStore> Trial<G> {
    /// A trial on a new store, with relays of this program.
    pub async fn new(program: &'static str) -> Self {
        let (test_store, keep) = G::make().await;
        Self::on(program, test_store, keep).await
    }

    /// A trial on this store.
    pub async fn on(program: &'static str, test_store: G, keep: Keep) -> Self {
        let store = test_store.outbox().open().await.expect("the log");
        Self { test_store, program, store, relay_processes: Mutex::default(), _keep: keep }
    }

    /// Starts a relay, with options changed by `change`.
    pub fn start(&self, change: impl FnOnce(&mut RelayOptions)) -> RelayProcess {
        let mut relay_processes = self.relay_processes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options =
            self.test_store.relay_options(&format!("relay_process {}", relay_processes.len() + 1));
        change(&mut options);
        let relay_process = RelayProcess::start(self.program, &options);
        relay_processes.push((relay_process.name.clone(), relay_process.errors()));
        relay_process
    }

    /// Starts a relay and waits until it works.
    pub async fn start_ready(&self, change: impl FnOnce(&mut RelayOptions)) -> RelayProcess {
        let mut relay_process = self.start(change);
        relay_process.ready().await;
        relay_process
    }

    /// Waits until a relay has left so many rows.
    pub async fn until_it_left(&self, relay_process: &RelayProcess, rows: i64) {
        let what = format!("{} left {rows} rows", relay_process.name);
        until(&what, || async {
            self.test_store.rows_of(&relay_process.name).await.is_ok_and(|left| left >= rows)
        })
        .await;
    }

    /// Waits until a relay has left so many more rows than it has now.
    pub async fn until_it_left_more(&self, relay_process: &RelayProcess, rows: i64) {
        let left = self.test_store.rows_of(&relay_process.name).await.expect("the relay_process's rows");
        self.until_it_left(relay_process, left + rows).await;
    }

    /// Waits until a relay holds a lane of a subscription.
    pub async fn until_it_holds(&self, relay_process: &RelayProcess, subscription: &str) {
        until(&format!("{} holds a lane of {subscription}", relay_process.name), async || {
            let holders = self.test_store.holders().await.expect("the holders");
            let own = |owner: &Option<String>| owner.as_ref() == Some(&relay_process.name);
            holders.iter().any(|holder| holder.subscription == subscription && own(&holder.owner))
        })
        .await;
    }

    /// Freezes a relay at a moment when that does not freeze the whole database.
    pub async fn freeze(&self, relay_process: &RelayProcess) {
        until(&format!("{} can be frozen outside of a transaction", relay_process.name), async || {
            relay_process.signal("STOP");
            let apart = self.test_store.can_be_written().await;
            if !apart {
                relay_process.signal("CONT");
            }
            apart
        })
        .await;
    }

    /// Kills a relay that runs alone, looks at what it had settled, and lets its leases run out: nobody has to wait for that.
    pub async fn kill(&self, mut relay_process: RelayProcess) -> Kill {
        relay_process.kill();
        // Of what it saw itself.
        let first = self.test_store.first_seen_by(&relay_process.name).await.expect("what it saw");
        let settled = match first {
            Some(first) => self.states(PLAIN, State::Done, first - 1).await,
            None => Vec::new(),
        };
        let settled = settled.into_iter().map(|state| state.event_id).collect();
        self.bury(&relay_process).await;
        Kill { relay_process: relay_process.name.clone(), settled }
    }

    /// Kills a relay beside another one, who takes over when the leases have run out, and may have settled what this one had
    /// before anybody can look.
    pub fn kill_beside(&self, mut relay_process: RelayProcess) -> Kill {
        relay_process.kill();
        Kill { relay_process: relay_process.name.clone(), settled: HashSet::new() }
    }

    /// Lets the leases of a relay that died run out.
    pub async fn bury(&self, relay_process: &RelayProcess) {
        self.test_store.expire(&relay_process.name).await.expect("its leases run out");
    }

    /// What a subscription is done with, while relays go on.
    pub async fn done(&self, subscription: &str) -> HashSet<Uuid> {
        const PAGE: u32 = 10_000;
        let (subscription, state) = (Some(subscription.to_owned()), Some(State::Done));
        let mut query = StateQuery { subscription, state, limit: PAGE, ..StateQuery::default() };
        let mut done = HashSet::new();
        loop {
            let page = self.store.states(&query).await.expect("the states");
            query.after = page.last().map_or(query.after, |last| last.id);
            done.extend(page.iter().map(|state| state.event_id));
            // Not until there is none: relays get done with more, as fast as it is asked for.
            if page.len() < PAGE as usize {
                return done;
            }
        }
    }

    /// Waits until a subscription has nothing undelivered.
    pub async fn until_delivered(&self, subscription: &str) {
        until(&format!("{subscription} has delivered everything"), async || {
            let figures = self.store.figures(subscription).await;
            figures.is_ok_and(|figures| figures.iter().map(Figures::undelivered).sum::<u64>() == 0)
        })
        .await;
    }

    /// What a subscription has given up.
    pub async fn dead(&self, subscription: &str) -> Vec<EventState> {
        self.states(subscription, State::Dead, 0).await
    }

    async fn states(&self, subscription: &str, state: State, after: i64) -> Vec<EventState> {
        let subscription = Some(subscription.to_owned());
        let mut query = StateQuery { subscription, state: Some(state), after, ..StateQuery::default() };
        let mut states = Vec::new();
        loop {
            let page = self.store.states(&query).await.expect("the states");
            let Some(last) = page.last() else { return states };
            query.after = last.id;
            states.extend(page);
        }
    }

    /// Where one event stands.
    pub async fn state(&self, subscription: &str, event_id: Uuid) -> EventState {
        let query = StateQuery {
            subscription: Some(subscription.to_owned()),
            event_id: Some(event_id),
            ..StateQuery::default()
        };
        self.store.states(&query).await.expect("the states").pop().expect("the event's state")
    }

    /// Whether there is nothing undelivered; a database that does not answer may have something.
    pub async fn is_quiet(&self) -> bool {
        for subscription in [PLAIN, EFFECTS] {
            match self.store.figures(subscription).await {
                Ok(figures) if figures.iter().map(Figures::undelivered).sum::<u64>() == 0 => {}
                _ => return false,
            }
        }
        true
    }

    /// Waits until everything is delivered.
    pub async fn until_quiet(&self, relay_process: &RelayProcess) {
        let end = Instant::now() + patience();
        while !self.is_quiet().await {
            assert!(
                Instant::now() < end,
                "{} did not deliver everything in time: {:?}",
                relay_process.name,
                (self.store.figures(PLAIN).await, self.store.figures(EFFECTS).await)
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until everything is delivered, the log is read to its end, and the lanes were given back: nothing more is written
    /// then.
    pub async fn until_idle(&self, relay_process: &RelayProcess) {
        self.until_quiet(relay_process).await;
        until("the log is read to its end and all lanes are given back", async || {
            let is_read = self.test_store.is_read().await.expect("how far it is read");
            let holders = self.test_store.holders().await.expect("the holders");
            is_read && holders.iter().all(|holder| holder.owner.is_none())
        })
        .await;
    }

    /// Waits until everything is delivered, stops the relay, and looks.
    pub async fn finish(&self, relay_process: RelayProcess) -> TrialReport {
        self.until_quiet(&relay_process).await;
        assert_eq!(relay_process.stop().await, Some(0), "a stopped relay_process ends well");
        TrialReport::of(&self.test_store).await
    }
}

/// A trial that failed shows what its last relays said.
impl<G: TestStore> Drop for Trial<G> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let relay_processes = self.relay_processes.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, said) in &relay_processes[relay_processes.len().saturating_sub(3)..] {
                eprintln!("--- {name} said:\n{}", said.text());
            }
        }
    }
}
