//! An event as a handler receives it.

use std::ops::Deref;
use std::sync::Arc;

use postrider_core::Recorded;

/// An event as a handler receives it: its payload, decoded, and everything else beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Received<T> {
    payload: T,
    event: Arc<Recorded>,
    attempt: u32,
}

impl<T> Received<T> {
    /// An event with its decoded payload; made by the dispatcher, and by tests of handlers.
    pub fn new(payload: T, event: Arc<Recorded>, attempt: u32) -> Self {
        Self { payload, event, attempt }
    }

    /// The event as it stands in the log.
    pub fn event(&self) -> &Recorded {
        &self.event
    }

    /// Which try this is, counted from 1.
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
