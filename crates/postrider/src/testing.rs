//! Helpers for tests of applications: an outbox in memory, a destination that misbehaves on demand, and what to wait for.
//!
//! ```
//! use postrider::testing::{Destination, Outbox, until_quiet};
//! use postrider::{Event, Relay, assert_recorded};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize, Event)]
//! #[event(aggregate = "Order", id = order)]
//! struct OrderPaid {
//!     order: i64,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> postrider::Result<()> {
//! let outbox = Outbox::new();
//! let mut tx = outbox.begin().await?;
//! outbox.record(&mut tx, &OrderPaid { order: 7 }).await?;
//! tx.commit().await?;
//! assert_recorded!(outbox, OrderPaid, |event| event.order == 7);
//!
//! let shop = Destination::new();
//! let relay = Relay::new(&outbox).subscribe("shop", |s| s.sink(shop.clone())).start().await?;
//! until_quiet(&relay, "shop").await?;
//! assert_eq!(shop.delivered().len(), 1);
//! relay.stop().await
//! # }
//! ```
//!
//! Time stands still in [`ManualClock`] until a test turns it: `Outbox::builder().clock(Clock::Manual(clock.clone()))`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use postrider_core::{
    Attempt, Delivery, Event, HeldKeys, OutboxSource, Outcome, Recorded, Result, Sink, Unavailable,
};
pub use postrider_core::{Clock, ManualClock};
pub use postrider_memory::{Connection, Inbox, MemoryStore, Outbox, OutboxBuilder, Savepoint, Transaction};
use postrider_relay::{Decode, Running, wait};

/// The transaction of a handler of the outbox in memory.
pub type Tx = postrider_relay::Tx<Outbox>;

/// How long [`until_quiet`] waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until a subscription has nothing undelivered; an error after 30 s.
pub async fn until_quiet(relay: &Running, subscription: &str) -> Result<()> {
    wait::quiet(&**relay.store(), subscription, PATIENCE).await
}

/// All events in the log, on any store.
pub async fn recorded(outbox: &impl OutboxSource) -> Result<Vec<Recorded>> {
    outbox.recorded(0, u32::MAX).await
}

/// The recorded events of one type, decoded. What can't be decoded is left out.
pub async fn recorded_of<T: Event + Decode>(outbox: &impl OutboxSource) -> Result<Vec<T>> {
    let events = recorded(outbox).await?;
    let of_type = events.iter().filter(|event| &*event.event_type == T::NAME);
    Ok(of_type.filter_map(|event| T::decode(event, None).ok()).collect())
}

#[doc(hidden)]
pub fn any<T>(events: &[T], fits: impl Fn(&T) -> bool) -> bool {
    events.iter().any(fits)
}

/// Asserts that an event of a type was recorded, and that one of them fits: `assert_recorded!(outbox, OrderPaid)`,
/// `assert_recorded!(outbox, OrderPaid, |event| event.order == 7)`. It awaits, so it needs an async test.
#[macro_export]
macro_rules! assert_recorded {
    ($outbox:expr, $event:ty) => {
        $crate::assert_recorded!($outbox, $event, |_| true)
    };
    ($outbox:expr, $event:ty, $fits:expr) => {{
        let events = $crate::testing::recorded_of::<$event>(&$outbox).await;
        let events: Vec<$event> = events.unwrap_or_else(|error| panic!("the log can't be read: {error}"));
        assert!(
            $crate::testing::any::<$event>(&events, $fits),
            "no {} that fits {} was recorded; there are {} of that type",
            <$event as $crate::Event>::NAME,
            stringify!($fits),
            events.len(),
        );
    }};
}

/// A destination that accepts every event, until a test changes that.
///
/// ```
/// use postrider::store::{DeliveryFailure, Outcome};
/// use postrider::testing::Destination;
///
/// let shop = Destination::new();
/// // It rejects one event, and is then away altogether.
/// shop.decide(|attempt| match &*attempt.event.aggregate_id {
///     "7" => Outcome::reject(DeliveryFailure::new("unknown_order", "there is no such order")),
///     _ => Outcome::Delivered,
/// });
/// shop.unavailable(Some("down for maintenance"));
/// assert!(shop.delivered().is_empty());
/// ```
#[derive(Clone, Default)]
pub struct Destination(Arc<Mutex<Behavior>>);

type Script = Arc<dyn Fn(&Attempt) -> Outcome + Send + Sync>;

#[derive(Default)]
struct Behavior {
    script: Option<Script>,
    unavailable: Option<String>,
    pause: Duration,
    tried: Vec<(Attempt, Outcome)>,
}

impl Destination {
    /// A destination that accepts every event at once.
    pub fn new() -> Self {
        Self::default()
    }

    fn behavior<T>(&self, change: impl FnOnce(&mut Behavior) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on this decides the outcome of each event.
    pub fn decide(&self, script: impl Fn(&Attempt) -> Outcome + Send + Sync + 'static) {
        self.behavior(|behavior| behavior.script = Some(Arc::new(script)));
    }

    /// From now on it accepts every event.
    pub fn take_all(&self) {
        self.behavior(|behavior| behavior.script = None);
    }

    /// From now on it is unavailable, for this reason; `None` makes it available again.
    pub fn unavailable(&self, reason: Option<&str>) {
        self.behavior(|behavior| behavior.unavailable = reason.map(ToOwned::to_owned));
    }

    /// From now on it takes this long for each event.
    pub fn slow(&self, pause: Duration) {
        self.behavior(|behavior| behavior.pause = pause);
    }

    /// The events that it accepted, in order.
    pub fn delivered(&self) -> Vec<Recorded> {
        self.behavior(|behavior| {
            let taken = behavior.tried.iter().filter(|(_, outcome)| outcome.is_delivered());
            taken.map(|(attempt, _)| (*attempt.event).clone()).collect()
        })
    }

    /// Every attempt, with its outcome.
    pub fn tried(&self) -> Vec<(Attempt, Outcome)> {
        self.behavior(|behavior| behavior.tried.clone())
    }
}

#[async_trait]
impl Sink for Destination {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let mut stopped = HeldKeys::new(delivery.order);
        for (index, attempt) in delivery.events.iter().enumerate() {
            if stopped.holds(&attempt.event) {
                continue;
            }
            if !delivery.begin(index) {
                return Ok(());
            }
            let (script, unavailable, pause) = self
                .behavior(|behavior| (behavior.script.clone(), behavior.unavailable.clone(), behavior.pause));
            if let Some(reason) = unavailable {
                return Err(Unavailable::new(reason));
            }
            let began = Instant::now();
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let outcome = script.map_or(Outcome::Delivered, |script| script(attempt));
            delivery.requested(outcome.as_str(), began.elapsed());
            if !outcome.is_delivered() {
                stopped.failed(&attempt.event);
            }
            self.behavior(|behavior| behavior.tried.push((attempt.clone(), outcome.clone())));
            delivery.report(index, outcome);
        }
        Ok(())
    }
}
