//! The defaults of a relay, a subscription and a consumer.

use std::time::Duration;

use postrider_core::Delivery;

/// [`Relay::lease`](crate::Relay::lease).
pub const LEASE: Duration = Duration::from_secs(30);
/// [`Relay::poll_interval`](crate::Relay::poll_interval).
pub const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// [`Relay::shutdown_grace`](crate::Relay::shutdown_grace).
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// [`Relay::figures_every`](crate::Relay::figures_every).
pub const FIGURES_EVERY: Duration = Duration::from_secs(15);
/// [`Subscriber::concurrency`](crate::Subscriber::concurrency).
pub const CONCURRENCY: usize = Delivery::CONCURRENCY;
/// [`Subscriber::timeout`](crate::Subscriber::timeout).
pub const TIMEOUT: Duration = Delivery::TIMEOUT;
/// [`Subscriber::patience`](crate::Subscriber::patience).
pub const PATIENCE: Duration = Duration::from_secs(1);
/// [`Subscriber::longest_pause`](crate::Subscriber::longest_pause).
pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// [`Subscriber::max_deaths`](crate::Subscriber::max_deaths).
pub const MAX_DEATHS: u32 = 3;
