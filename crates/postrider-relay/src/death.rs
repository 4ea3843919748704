//! The hook for when an event dies.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use postrider_core::{DeliveryFailure, Recorded};
use tokio::sync::mpsc::{self, error::TrySendError};

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

/// How many deaths may wait for the hook. One more is said in the log, and not told.
const QUEUE: usize = 10_000;

/// Called once an event's death is settled.
#[derive(Clone, Default)]
pub(crate) struct OnDeath(Option<mpsc::Sender<Death>>);

impl OnDeath {
    /// The hook, and the task that calls it, one death after the other, beside the work of the lanes. The task ends when
    /// everybody who could tell it of a death is gone.
    pub(crate) fn new<F, Fut>(hook: F) -> (Self, BoxFuture<'static, ()>)
    where
        F: Fn(Death) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (sender, mut receiver) = mpsc::channel::<Death>(QUEUE);
        let task = async move {
            while let Some(death) = receiver.recv().await {
                let event_id = death.event.event_id;
                let call = AssertUnwindSafe(async { hook(death).await }).catch_unwind();
                if call.await.is_err() {
                    tracing::error!(event_id = %event_id, "the hook for deaths panicked");
                }
            }
        };
        (Self(Some(sender)), Box::pin(task))
    }

    /// Tells of a death, without waiting.
    pub(crate) fn tell(&self, death: Death) {
        if let Some(Err(TrySendError::Full(death))) = self.0.as_ref().map(|hook| hook.try_send(death)) {
            tracing::error!(subscription = %death.subscription, event_id = %death.event.event_id,
                "the hook for deaths is too slow; this one is not told");
        }
    }
}
