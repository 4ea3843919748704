//! A handler that some orders hang in, for promises about slow events.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postrider::store::OutboxSource;
use postrider::{Received, Running};
use tokio::sync::Semaphore;

use super::{OrderChanged, Seen, relay, until};

/// How long a batch waits for its last events, here.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

/// A handler that some orders hang in until they are let go, and what it saw.
#[derive(Clone)]
pub(super) struct HangingHandler {
    /// The orders that hang.
    pub(super) slow: Arc<HashSet<&'static str>>,
    /// What came to the handler, in order.
    pub(super) began: Seen,
    /// What the handler was done with, in order.
    pub(super) done: Seen,
    pub(super) gate: Arc<Semaphore>,
    pub(super) under_way: Arc<AtomicUsize>,
    pub(super) most: Arc<AtomicUsize>,
}

impl HangingHandler {
    pub(super) fn new(slow: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            slow: Arc::new(slow.into_iter().collect()),
            began: Seen::default(),
            done: Seen::default(),
            gate: Arc::new(Semaphore::new(0)),
            under_way: Arc::default(),
            most: Arc::default(),
        }
    }

    pub(super) async fn handle(self, event: Received<OrderChanged>) {
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.began.note(&event);
        let _leave = Leave(Arc::clone(&self.under_way));
        if self.slow.contains(event.order.as_str()) {
            self.gate.acquire().await.expect("open").forget();
        }
        self.done.note(&event);
    }

    pub(super) fn handler(
        &self,
    ) -> impl Fn(Received<OrderChanged>) -> HandledBy + Clone + Send + Sync + 'static {
        let hanging = self.clone();
        move |event| Box::pin(hanging.clone().handle(event)) as HandledBy
    }

    /// Lets so many that hang go.
    pub(super) fn let_go(&self, events: usize) {
        self.gate.add_permits(events);
    }

    pub(super) async fn is_begun(&self, order: &str, version: i64) {
        let began = self.began.clone();
        until(&format!("{order}{version} is begun"), async || began.versions(order).contains(&version)).await;
    }

    pub(super) async fn is_done(&self, order: &str, version: i64) {
        let done = self.done.clone();
        until(&format!("{order}{version} is done"), async || done.versions(order).contains(&version)).await;
    }
}

type HandledBy = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) async fn start<S: OutboxSource>(
    outbox: &S,
    hanging: &HangingHandler,
    also: impl FnOnce(postrider::Subscriber<S>) -> postrider::Subscriber<S>,
) -> Running {
    let handler = hanging.handler();
    relay(outbox).subscribe("s", |s| also(s.on(handler).patience(PATIENCE))).start().await.expect("started")
}
