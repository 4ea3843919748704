//! From an event to a record in a topic: which topic, which key and headers, and how it is sent and confirmed.
//!
//! `plan` finds the topic of each event; `sink` sends the batches of a subscription, each lane through a `producer` of its own; `receipt_producer` sends single records
//! (dead letters, what is put back, and what `bus` publishes). All of them write through `record` and `topic`. Nothing here
//! reads a topic.

pub(crate) mod bus;
pub(crate) mod plan;
pub(crate) mod producer;
pub(crate) mod receipt_producer;
pub(crate) mod record;
pub(crate) mod sink;
pub(crate) mod topic;
