//! A subscription with one lane, its lease and a clock to turn: the scene of promises about deliveries.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::{
    DeliveryChange, DeliveryFailure, Due, DueBatch, EventRef, EventState, Lease, LeaseStatus, ManualClock,
    OnDead, Order, ResolveDead, Settlement, StateQuery, Store, Subscription, Uuid,
};

use crate::harness::{Harness, TestLog};
use crate::relay::{claim, commit_one, log_with_clock, read};

pub(super) const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn failure() -> DeliveryFailure {
    DeliveryFailure::new("timeout", "the destination took too long")
}

pub(super) fn due_ids(due: &[Due]) -> Vec<Uuid> {
    due.iter().map(|due| due.event.event_id).collect()
}

pub(super) struct Scene {
    pub(super) log: Arc<dyn TestLog>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: ManualClock,
    pub(super) lease: Lease,
}

impl Scene {
    pub(super) async fn new(harness: &dyn Harness, order: Order, on_dead: OnDead) -> Self {
        let (log, clock) = log_with_clock(harness).await;
        let store = log.store();
        store.subscribe(&Subscription::new("s").order(order).on_dead(on_dead)).await.expect("subscribe");
        let lease = claim(&*store, "s").await;
        Self { log, store, clock, lease }
    }

    /// Records and reads events of these aggregates and settles them with what `outcome` says of each.
    pub(super) async fn batch(
        &mut self,
        aggregates: &[&str],
        outcome: impl Fn(usize, EventRef) -> Option<DeliveryChange>,
    ) -> Vec<Uuid> {
        for aggregate in aggregates {
            commit_one(&*self.log, aggregate).await;
        }
        let batch = read(&*self.store, &self.lease, 100).await;
        assert_eq!(batch.events.len(), aggregates.len());
        let mut settlement = Settlement::of(&batch);
        let changes =
            batch.events.iter().enumerate().filter_map(|(n, read)| outcome(n, (&read.event).into()));
        settlement.deliveries.extend(changes);
        assert_eq!(self.store.settle(&mut self.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
        batch.events.iter().map(|read| read.event.event_id).collect()
    }

    pub(super) async fn look(&self) -> DueBatch {
        self.store.due(&self.lease, 100).await.expect("due")
    }

    pub(super) async fn due(&self) -> Vec<Due> {
        self.look().await.deliveries
    }

    /// Settles due deliveries with what `outcome` says of each.
    pub(super) async fn settle_due(&mut self, due: &[Due], outcome: impl Fn(&Due) -> DeliveryChange) {
        let mut settlement = Settlement::at(self.lease.position.clone());
        settlement.deliveries.extend(due.iter().map(outcome));
        assert_eq!(self.store.settle(&mut self.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    }

    pub(super) async fn state(&self, event_id: Uuid) -> EventState {
        let query = StateQuery { event_id: Some(event_id), ..StateQuery::default() };
        self.store.states(&query).await.expect("states").remove(0)
    }

    pub(super) async fn resolve_dead(&self, action: ResolveDead) -> u64 {
        self.store.resolve_dead(&action).await.expect("resolve")
    }
}

pub(super) fn delivered(due: &Due) -> DeliveryChange {
    DeliveryChange::delivered(&due.event, due.attempts + 1)
}
