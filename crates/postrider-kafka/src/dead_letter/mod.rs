//! Records that were given up: the topic they go to, the headers that say why, and the way back.
//!
//! `giving_up` is the worker's last step; `dead_letters` is the tool that lists and requeues, by way of a `topic_reader`. Key and value are never changed.

pub(crate) mod address;
pub(crate) mod dead_letters;
pub(crate) mod giving_up;
pub(crate) mod letter;
pub(crate) mod record;
pub(crate) mod topic_reader;
