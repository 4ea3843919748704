//! Postrider to HTTP endpoints: each event (or a batch) is a POST of CloudEvents, signed as Standard Webhooks.
//!
//! | answer | outcome |
//! |---|---|
//! | 2xx | delivered |
//! | 400, 409, 413, 415, 422 | unclear; rejected where other keys succeed |
//! | all others, 3xx too: redirects are not followed | unclear; tried again where other keys succeed, not before `Retry-After` |
//! | none in time, or the connection breaks | unclear; tried again where other keys succeed |
//! | no connection | the destination is unavailable |
//!
//! *Unclear* means that the endpoint is blamed while no other key succeeds: no event loses an attempt, none dies, and the
//! endpoint is asked with one event at a time. Which status is which is a setting ([`HttpBuilder::status`]).
//!
//! [`failure`] judges an error of `reqwest` in the same way, for handlers that call a service.

mod answer;
mod builder;
mod client;
mod connect_error;
mod failure;
mod request;
mod signature;
mod sink;

// For the binary, which tells people over HTTP, too.
pub use answer::StatusRule;
pub use builder::HttpBuilder;
#[doc(hidden)]
pub use client::client;
#[doc(hidden)]
pub use connect_error::reason;
pub use failure::failure;
pub use request::Format;
pub use signature::Secret;
pub use sink::Http;
