//! How a relay that has nothing to do learns that there is something to read.

use std::time::Duration;

use async_trait::async_trait;

use crate::Result;

/// What one lane's reader sleeps on. Made by [`Store::bell`](crate::Store::bell).
///
/// *Guarantees*: an event that was committed before [`wait`](Bell::wait) began, or is committed while it
/// lasts, ends the wait within moments where the database can ring, and within `longest` where it can't.
/// *Caller must*: read after every return, call [`worked`](Bell::worked) when that read found events, and
/// `wait` again otherwise; dropping a wait halfway is fine. *On failure*: nothing is held; wait again.
#[async_trait]
pub trait Bell: Send {
    /// Sleeps until there may be something to read, and never longer than `longest`. It may return early.
    async fn wait(&mut self, longest: Duration) -> Result<()>;

    /// The last read found something: be quick again.
    fn worked(&mut self);
}
