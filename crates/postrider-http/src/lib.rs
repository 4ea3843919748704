//! Postrider to HTTP endpoints: each event (or a batch) is a POST of CloudEvents, signed as Standard Webhooks.
//!
//! | answer | outcome |
//! |---|---|
//! | 2xx | delivered |
//! | 408, 425, 429, 5xx | retry, not before `Retry-After` |
//! | other 4xx, and 3xx: redirects are not followed | reject |
//! | none in time | retry |
//! | no connection | the destination is unavailable |

mod answer;
mod client;
mod request;
mod signature;
mod sink;
mod trouble;

// For the binary, which tells people over HTTP, too.
#[doc(hidden)]
pub use client::client;
pub use request::Format;
pub use signature::Secret;
pub use sink::{Http, HttpBuilder};
#[doc(hidden)]
pub use trouble::reason;
