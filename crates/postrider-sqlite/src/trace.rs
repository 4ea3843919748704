//! The trace that an event belongs to, asked for when it is recorded.

use std::fmt;
use std::sync::Arc;

/// Says which trace the code that is running belongs to.
#[derive(Clone)]
pub(crate) struct Trace(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl Trace {
    pub(crate) fn new(current: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(current))
    }

    /// The trace, if there is one that a database can keep: it is never a reason not to record.
    pub(crate) fn current(&self) -> Option<String> {
        (self.0)().filter(|trace| !trace.is_empty() && !trace.contains('\0'))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}
