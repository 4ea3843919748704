//! The gauges of a subscription: counted from time to time, beside the work, by the relay that has its first lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider_core::ErrorKind;
use tokio::task::JoinHandle;

use crate::engine::runtime::SubscriptionRuntime;
use crate::observe::metrics::Gauges;

/// The gauges of a subscription, shown until this is dropped.
pub(crate) struct GaugeReporter {
    is_ours: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl GaugeReporter {
    pub(crate) fn new(runtime: &Arc<SubscriptionRuntime>) -> Self {
        let is_ours = Arc::new(AtomicBool::new(false));
        let task = runtime
            .settings
            .figures
            .map(|every| tokio::spawn(show(Arc::clone(runtime), Arc::clone(&is_ours), every)));
        Self { is_ours, task }
    }

    /// Whether this relay has the first lane, and so shows how the subscription is doing.
    pub(crate) fn is_ours(&self, ours: bool) {
        self.is_ours.store(ours, Ordering::Release);
    }
}

impl Drop for GaugeReporter {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

async fn show(runtime: Arc<SubscriptionRuntime>, is_ours: Arc<AtomicBool>, every: Duration) {
    let mut gauges = Gauges::default();
    loop {
        tokio::time::sleep(every).await;
        if !is_ours.load(Ordering::Acquire) {
            // Another relay shows them now.
            gauges.show(&runtime.name, &[]);
            continue;
        }
        match runtime.inspect.figures(&runtime.name).await {
            Ok(figures) => gauges.show(&runtime.name, &figures),
            // It was removed, and all that waited for it.
            Err(error) if error.kind() == ErrorKind::NotFound => gauges.show(&runtime.name, &[]),
            Err(error) => {
                tracing::debug!(subscription = %runtime.name, error = %error, "could not count events for the gauges");
            }
        }
    }
}
