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
//! *Unclear* is the endpoint's trouble for as long as no other key succeeds: no event loses an attempt, none dies, and the
//! endpoint is asked with one event at a time. Which status is which is a setting ([`HttpBuilder::status`]).
//!
//! [`failure`] judges an error of `reqwest` in the same way, for handlers that call a service.

mod answer;
mod builder;
mod client;
mod failure;
mod request;
mod signature;
mod sink;
mod trouble;

// For the binary, which tells people over HTTP, too.
pub use answer::Blame;
pub use builder::HttpBuilder;
#[doc(hidden)]
pub use client::client;
pub use failure::failure;
pub use request::Format;
pub use signature::Secret;
pub use sink::Http;
#[doc(hidden)]
pub use trouble::reason;
