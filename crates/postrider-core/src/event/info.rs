//! The description of an event type, as data.

use crate::Event;

/// An event type as its mapping describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventInfo {
    /// The event type.
    pub name: String,
    /// The version of the payload's schema.
    pub version: u32,
    /// The stream.
    pub stream: String,
    /// The type of the aggregate.
    pub aggregate: String,
    /// The field that is the ordering key, or [`COMPUTED`](EventInfo::COMPUTED). Absent: the aggregate.
    pub ordering_key: Option<String>,
    /// Whether the events are numbered within their ordering key.
    pub sequenced: bool,
    /// What the event means, in a sentence.
    pub summary: Option<String>,
}

impl EventInfo {
    /// The ordering key of a mapping that makes the key by a function and does not say of which field.
    pub const COMPUTED: &'static str = "computed";

    /// What the mapping of a type says.
    pub fn of<E: Event>() -> Self {
        Self {
            name: E::NAME.into(),
            version: E::VERSION,
            stream: E::STREAM.into(),
            aggregate: E::AGGREGATE.into(),
            ordering_key: E::KEY_FIELD.map(Into::into),
            sequenced: E::SEQUENCED,
            summary: E::SUMMARY.map(Into::into),
        }
    }
}
