//! The hook for when an event dies.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use postrider_core::{DeliveryFailure, Recorded};

/// An event that was given up by a subscription, until an operator acts.
#[derive(Debug, Clone)]
pub struct Death {
    /// The subscription.
    pub subscription: Arc<str>,
    /// The event.
    pub event: Arc<Recorded>,
    /// Why the last try failed.
    pub failure: DeliveryFailure,
    /// How often it was tried.
    pub attempts: u32,
}

/// Called once an event's death is settled.
#[derive(Clone, Default)]
pub(crate) struct OnDeath(Option<Hook>);

type Hook = Arc<dyn Fn(Death) -> BoxFuture<'static, ()> + Send + Sync>;

impl OnDeath {
    pub(crate) fn new<F, Fut>(hook: F) -> Self
    where
        F: Fn(Death) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self(Some(Arc::new(move |death| Box::pin(hook(death)))))
    }

    /// Calls it beside the lane's work, which does not wait for it.
    pub(crate) fn tell(&self, death: Death) {
        if let Some(hook) = &self.0 {
            tokio::spawn(hook(death));
        }
    }
}
