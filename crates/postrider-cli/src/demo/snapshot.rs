//! How things stand while the demo runs: what the screen shows, and what the script waits for.

use postrider::store::{Figures, OpenDeliveryQuery};

use super::demo_store::DemoStore;
use super::handlers::SUBSCRIPTIONS;
use crate::Failure;
use crate::database::SharedStore;

/// How things stand at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) recorded: u64,
    pub(crate) rolled_back: u64,
    /// In the order of [`SUBSCRIPTIONS`].
    pub(crate) subscriptions: Vec<SubscriptionProgress>,
    /// How many lanes relays A and B hold.
    pub(crate) lanes: [usize; 2],
    /// Whether relay A was killed.
    pub(crate) killed: bool,
    /// What was given up: how often it was tried, and why.
    pub(crate) dead: Vec<(u32, String)>,
}

/// How one subscription stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct SubscriptionProgress {
    pub(crate) name: &'static str,
    pub(crate) delivered: u64,
    pub(crate) retrying: u64,
    pub(crate) undelivered: u64,
    pub(crate) dead: u64,
}

impl Snapshot {
    /// Looks once.
    pub(crate) async fn take(
        store: &impl DemoStore,
        log: &SharedStore,
        relays: [&str; 2],
    ) -> Result<Self, Failure> {
        let count = async |statement, texts: &[&str]| -> Result<u64, Failure> {
            Ok(u64::try_from(store.count(statement, texts).await?)?)
        };
        let mut snapshot = Self {
            recorded: count("select count(*) from changed", &[]).await?,
            rolled_back: count("select count(*) from rolled_back", &[]).await?,
            ..Self::default()
        };
        let delivered = "select count(distinct event_id) from effect where subscription = ?";
        for name in SUBSCRIPTIONS {
            let mut progress = SubscriptionProgress { name, ..SubscriptionProgress::default() };
            progress.delivered = count(delivered, &[name]).await?;
            // Before a relay has made the subscription there is nothing to count.
            for figures in log.figures(name).await.unwrap_or_default() {
                progress.retrying += figures.retrying;
                progress.undelivered += Figures::undelivered(&figures);
                progress.dead += figures.dead;
            }
            snapshot.subscriptions.push(progress);
        }
        for lane in log.subscriptions().await?.into_iter().flat_map(|info| info.lanes) {
            if let Some(relay) = relays.iter().position(|relay| lane.owner.as_deref() == Some(*relay)) {
                snapshot.lanes[relay] += 1;
            }
        }
        if snapshot.subscriptions.iter().any(|progress| progress.dead > 0) {
            let open = log.open_deliveries(&OpenDeliveryQuery::default()).await?;
            snapshot.dead = open
                .into_iter()
                .map(|delivery| (delivery.attempts, delivery.error_message.unwrap_or_default()))
                .collect();
        }
        Ok(snapshot)
    }

    /// Whether there is nothing left to do.
    pub(crate) fn is_quiet(&self) -> bool {
        self.subscriptions.iter().all(|progress| progress.undelivered == 0)
    }

    pub(crate) fn of(&self, subscription: &str) -> SubscriptionProgress {
        self.subscriptions.iter().find(|progress| progress.name == subscription).cloned().unwrap_or_default()
    }
}

/// How many events a relay has handled and not settled.
pub(crate) async fn in_hand(store: &impl DemoStore, relay: &str) -> Result<i64, Failure> {
    store.count(include_str!("../../sql/demo/in_hand.sql"), &[relay]).await
}
