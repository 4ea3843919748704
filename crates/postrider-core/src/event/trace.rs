//! The trace of an event, read when it is recorded.

use std::fmt;
use std::sync::Arc;

/// Returns the trace context of the running code. Outboxes hold one; clones share it.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::Trace;
///
/// // With OpenTelemetry, the closure asks the current span.
/// let trace = Trace::new(|| Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()));
/// assert!(trace.current().is_some());
/// ```
#[derive(Clone)]
pub struct Trace(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl Trace {
    /// Calls `current` each time.
    pub fn new(current: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(current))
    }

    /// The trace context, if there is one that a database can store. It never makes recording fail.
    pub fn current(&self) -> Option<String> {
        (self.0)().filter(|trace| !trace.is_empty() && !trace.contains('\0'))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_no_database_can_keep_is_none() {
        let current = |trace: &'static str| Trace::new(move || Some(trace.to_owned())).current();
        assert_eq!(current("00-1-2-01").as_deref(), Some("00-1-2-01"));
        assert_eq!((current(""), current("a\0b")), (None, None));
    }
}
