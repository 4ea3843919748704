//! The bell: how an idle relay learns that there are events to read.

use std::time::Duration;

use async_trait::async_trait;

use crate::Result;

/// Wakes the reader of one lane. Made by [`EventLog::bell`](crate::EventLog::bell).
///
/// *Guarantees*: an event that was committed before or during a [`wait`](Bell::wait) ends the wait almost at once if the
/// database can notify, and within `longest` if it can't. *Caller must*: read after every return, call
/// [`worked`](Bell::worked) if that read found events, and `wait` again otherwise; a wait may be dropped at any time. *On
/// failure*: nothing is held; wait again.
#[async_trait]
pub trait Bell: Send {
    /// Sleeps until there may be something to read, at most `longest`. It may return early.
    async fn wait(&mut self, longest: Duration) -> Result<()>;

    /// Tells the bell that the last read found events, so that it reacts quickly again.
    fn worked(&mut self);
}
