//! An event as a handler receives it.

use std::ops::Deref;
use std::sync::Arc;

use postrider_core::Recorded;

/// An event as a handler receives it: the decoded payload and everything else.
///
/// It dereferences to the payload:
///
/// ```
/// use postrider::{Event, Failure, Received};
///
/// #[derive(serde::Serialize, serde::Deserialize, Event)]
/// #[event(aggregate = "Order", id = order)]
/// struct OrderPaid {
///     order: i64,
/// }
///
/// async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> {
///     println!("order {}, event {}, attempt {}", event.order, event.event().event_id, event.attempt());
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Received<T> {
    payload: T,
    event: Arc<Recorded>,
    attempt: u32,
}

impl<T> Received<T> {
    /// An event with its decoded payload. The dispatcher makes it, and tests of handlers do.
    pub fn new(payload: T, event: Arc<Recorded>, attempt: u32) -> Self {
        Self { payload, event, attempt }
    }

    /// The recorded event.
    pub fn event(&self) -> &Recorded {
        &self.event
    }

    /// The number of this attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The payload alone.
    pub fn into_inner(self) -> T {
        self.payload
    }
}

impl<T> Deref for Received<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.payload
    }
}
