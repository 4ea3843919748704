//! The hook that is called when an event dies.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use postrider_core::{BATCH_BYTES, DeliveryFailure, Recorded};
use tokio::sync::mpsc::{self, error::TrySendError};

/// An event that is dead for a subscription, until an operator acts.
///
/// ```
/// use postrider::{Death, Relay, testing::Outbox};
///
/// async fn alarm(death: Death) {
///     let Death { subscription, event, failure, .. } = death;
///     eprintln!("{} {} is dead for {subscription}: {}", event.event_type, event.event_id, failure.code);
/// }
///
/// let relay = Relay::new(&Outbox::new()).on_death(alarm);
/// ```
#[derive(Debug, Clone)]
pub struct Death {
    /// The subscription.
    pub subscription: Arc<str>,
    /// The event.
    pub event: Arc<Recorded>,
    /// Why the last attempt failed.
    pub failure: DeliveryFailure,
    /// Number of attempts.
    pub attempts: u32,
}

/// How many deaths may wait for the hook, and how many bytes of their events. Beyond that a death is only logged.
const QUEUE: usize = 10_000;
const QUEUE_BYTES: u64 = BATCH_BYTES;

/// Called once an event's death is settled.
#[derive(Clone, Default)]
pub(crate) struct OnDeath(Option<(mpsc::Sender<Death>, Arc<AtomicU64>)>);

impl OnDeath {
    /// The hook, and the task that calls it, one death after the other, beside the work of the lanes. The task ends when
    /// everybody who could tell it of a death is gone.
    pub(crate) fn new<F, Fut>(hook: F) -> (Self, BoxFuture<'static, ()>)
    where
        F: Fn(Death) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (sender, mut receiver) = mpsc::channel::<Death>(QUEUE);
        let waiting = Arc::new(AtomicU64::new(0));
        let taken = Arc::clone(&waiting);
        let task = async move {
            while let Some(death) = receiver.recv().await {
                let event_id = death.event.event_id;
                taken.fetch_sub(death.event.size(), Ordering::AcqRel);
                let call = AssertUnwindSafe(async { hook(death).await }).catch_unwind();
                if call.await.is_err() {
                    tracing::error!(event_id = %event_id, "the on_death hook panicked");
                }
            }
        };
        (Self(Some((sender, waiting))), Box::pin(task))
    }

    /// Tells of a death, without waiting.
    pub(crate) fn tell(&self, death: Death) {
        let Some((hook, waiting)) = &self.0 else { return };
        let (subscription, event_id, size) =
            (Arc::clone(&death.subscription), death.event.event_id, death.event.size());
        let before = waiting.fetch_add(size, Ordering::AcqRel);
        let fits = before == 0 || before + size <= QUEUE_BYTES;
        let refused = if fits { hook.try_send(death).err() } else { Some(TrySendError::Full(death)) };
        let Some(refused) = refused else { return };
        waiting.fetch_sub(size, Ordering::AcqRel);
        if matches!(refused, TrySendError::Full(_)) {
            tracing::error!(%subscription, %event_id, "the on_death hook is too slow; it is not called for this event");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::work::tests::event;

    #[tokio::test]
    async fn deaths_that_wait_for_a_slow_hook_are_bounded_by_bytes() {
        let told = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&told);
        let (hook, task) = OnDeath::new(move |_| {
            counted.fetch_add(1, Ordering::AcqRel);
            std::future::ready(())
        });
        let payload = postrider_core::Payload::Json("1".repeat(5 << 20));
        let event = Arc::new(Recorded { payload, ..event("a") });
        for _ in 0..8 {
            let failure = DeliveryFailure::new("no", "never");
            hook.tell(Death { subscription: "s".into(), event: Arc::clone(&event), failure, attempts: 1 });
        }
        drop(hook);
        task.await;
        assert_eq!(told.load(Ordering::Acquire), 3, "as many as fit");
    }
}
