//! From a record in a topic to a handler, and to the offset that is committed.
//!
//! An application describes a `consumer`; `start` checks it and joins the group; `running` is the thread that polls. `group` knows
//! which partitions are held. Each has its `partition` and a `worker`, which turns what has `arrived` into events, delivers them
//! as a `partition_batch` and looks for missing `sequence` numbers. What a worker gives up is the business of `dead_letter`.

pub(crate) mod arrived;
pub(crate) mod consumer;
pub(crate) mod group;
pub(crate) mod line;
pub(crate) mod metrics;
pub(crate) mod partition;
pub(crate) mod partition_batch;
pub(crate) mod running;
pub(crate) mod sequence;
pub(crate) mod start;
pub(crate) mod unique;
pub(crate) mod worker;
