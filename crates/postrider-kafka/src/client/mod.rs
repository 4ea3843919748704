//! librdkafka: how a client is configured, which of its properties must not change, and what its errors mean.
//!
//! Nothing here knows of events, except `config`, which holds all settings of a sink.

pub(crate) mod blocking;
pub(crate) mod client_error;
pub(crate) mod config;
pub(crate) mod error_class;
pub(crate) mod invalid;
pub(crate) mod locked_properties;
pub(crate) mod offsets;
pub(crate) mod security;
pub(crate) mod topic_metadata;
