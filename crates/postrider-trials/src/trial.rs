//! A trial: a ground, its riders, and what to wait for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider::{EventState, Figures, Source, State, StateQuery, Store, Uuid};
use tokio::time::Instant;

use crate::ground::{Ground, Keep};
use crate::ride::Ride;
use crate::rider::{Rider, Said};
use crate::verdict::{Death, Verdict};
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
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + patience();
    while !condition().await {
        assert!(Instant::now() < end, "it did not come to pass in time that {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A ground and what happens on it.
pub struct Trial<G: Ground> {
    /// The ground.
    pub ground: G,
    program: &'static str,
    store: Arc<dyn Store>,
    riders: Mutex<Vec<(String, Said)>>,
    /// Dropped last.
    _keep: Keep,
}

impl<G: Ground> Trial<G> {
    /// A trial on new ground, with riders of this program.
    pub async fn new(program: &'static str) -> Self {
        let (ground, keep) = G::make().await;
        Self::on(program, ground, keep).await
    }

    /// A trial on this ground.
    pub async fn on(program: &'static str, ground: G, keep: Keep) -> Self {
        let store = ground.outbox().open().await.expect("the log");
        Self { ground, program, store, riders: Mutex::default(), _keep: keep }
    }

    /// Starts a rider, on a ride changed by `change`.
    pub fn start(&self, change: impl FnOnce(&mut Ride)) -> Rider {
        let mut riders = self.riders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ride = self.ground.ride(&format!("rider {}", riders.len() + 1));
        change(&mut ride);
        let rider = Rider::start(self.program, &ride);
        riders.push((rider.name.clone(), rider.said()));
        rider
    }

    /// Starts a rider and waits until its relay works.
    pub async fn ride(&self, change: impl FnOnce(&mut Ride)) -> Rider {
        let mut rider = self.start(change);
        rider.ready().await;
        rider
    }

    /// Waits until a rider has left so many rows.
    pub async fn until_it_left(&self, rider: &Rider, rows: i64) {
        let what = format!("{} left {rows} rows", rider.name);
        until(&what, || async { self.ground.rows_of(&rider.name).await.is_ok_and(|left| left >= rows) })
            .await;
    }

    /// Waits until a rider has left so many more rows than it has now.
    pub async fn until_it_left_more(&self, rider: &Rider, rows: i64) {
        let left = self.ground.rows_of(&rider.name).await.expect("the rider's rows");
        self.until_it_left(rider, left + rows).await;
    }

    /// Waits until a rider holds a lane of a subscription.
    pub async fn until_it_holds(&self, rider: &Rider, subscription: &str) {
        until(&format!("{} holds a lane of {subscription}", rider.name), async || {
            let holders = self.ground.holders().await.expect("the holders");
            let own = |owner: &Option<String>| owner.as_ref() == Some(&rider.name);
            holders.iter().any(|holder| holder.subscription == subscription && own(&holder.owner))
        })
        .await;
    }

    /// Freezes a rider at a moment when that does not freeze the whole database.
    pub async fn freeze(&self, rider: &Rider) {
        until(&format!("{} can be frozen outside of a transaction", rider.name), async || {
            rider.signal("STOP");
            let apart = self.ground.can_be_written().await;
            if !apart {
                rider.signal("CONT");
            }
            apart
        })
        .await;
    }

    /// Kills a rider that rides alone, looks at what it had settled, and lets its leases run out: nobody has to wait for that.
    pub async fn kill(&self, mut rider: Rider) -> Death {
        rider.kill();
        // Of what it saw itself.
        let first = self.ground.first_seen_by(&rider.name).await.expect("what it saw");
        let settled = match first {
            Some(first) => self.states(PLAIN, State::Done, first - 1).await,
            None => Vec::new(),
        };
        let settled = settled.into_iter().map(|state| state.event_id).collect();
        self.bury(&rider).await;
        Death { rider: rider.name.clone(), settled }
    }

    /// Kills a rider beside another one, who takes over when the leases have run out, and may have settled what this one had
    /// before anybody can look.
    pub fn kill_beside(&self, mut rider: Rider) -> Death {
        rider.kill();
        Death { rider: rider.name.clone(), settled: HashSet::new() }
    }

    /// Lets the leases of a rider that died run out.
    pub async fn bury(&self, rider: &Rider) {
        self.ground.expire(&rider.name).await.expect("its leases run out");
    }

    /// What a subscription is done with, while riders go on.
    pub async fn done(&self, subscription: &str) -> HashSet<Uuid> {
        const PAGE: u32 = 10_000;
        let (subscription, state) = (Some(subscription.to_owned()), Some(State::Done));
        let mut query = StateQuery { subscription, state, limit: PAGE, ..StateQuery::default() };
        let mut done = HashSet::new();
        loop {
            let page = self.store.states(&query).await.expect("the states");
            query.after = page.last().map_or(query.after, |last| last.id);
            done.extend(page.iter().map(|state| state.event_id));
            // Not until there is none: riders get done with more, as fast as it is asked for.
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
    pub async fn until_quiet(&self, rider: &Rider) {
        let end = Instant::now() + patience();
        while !self.is_quiet().await {
            assert!(
                Instant::now() < end,
                "{} did not deliver everything in time: {:?}",
                rider.name,
                (self.store.figures(PLAIN).await, self.store.figures(EFFECTS).await)
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until everything is delivered, the log is read to its end, and the lanes were given back: nothing more is written
    /// then.
    pub async fn until_idle(&self, rider: &Rider) {
        self.until_quiet(rider).await;
        until("the log is read to its end and all lanes are given back", async || {
            let is_read = self.ground.is_read().await.expect("how far it is read");
            let holders = self.ground.holders().await.expect("the holders");
            is_read && holders.iter().all(|holder| holder.owner.is_none())
        })
        .await;
    }

    /// Waits until everything is delivered, stops the rider, and looks.
    pub async fn finish(&self, rider: Rider) -> Verdict {
        self.until_quiet(&rider).await;
        assert_eq!(rider.stop().await, Some(0), "a stopped rider ends well");
        Verdict::on(&self.ground).await
    }
}

/// A trial that failed shows what its last riders said.
impl<G: Ground> Drop for Trial<G> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let riders = self.riders.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, said) in &riders[riders.len().saturating_sub(3)..] {
                eprintln!("--- {name} said:\n{}", said.text());
            }
        }
    }
}
