//! Policies: what a subscription receives, when it retries, what is kept and for how long.

mod archive;
mod backoff;
mod mask;
mod retry;
mod retry_settings;
pub(crate) mod subscription;
mod sweep;

pub use archive::{ArchiveOptions, ArchiveTable, Field};
pub use backoff::Backoff;
#[doc(hidden)]
pub use backoff::chance;
pub use mask::Mask;
pub use retry::{FailedAttempt, Retry, RetryDecision};
pub use retry_settings::RetrySettings;
pub use subscription::{Filter, OnDead, Order, Pattern, Start, Subscription};
pub use sweep::{Pacing, Sweep, Sweepable, Swept, month_of};
