//! A subscription as data, for the catalog.

use std::collections::BTreeMap;

use crate::handlers::dispatcher::HandlerInfo;

/// A subscription as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberInfo {
    /// Its name.
    pub name: String,
    /// The streams that it reads. Empty: all.
    pub streams: Vec<String>,
    /// The event types that it reads. Empty: all.
    pub types: Vec<String>,
    /// Its handlers, by event type.
    pub handlers: BTreeMap<String, HandlerInfo>,
    /// The sink that it delivers to, in the words of [`shown`](crate::Subscriber::shown). Absent: to its handlers.
    pub destination: Option<String>,
    /// The topics that it consumes, if it is a consumer of a broker; or the one that its sink sends to, possibly a template.
    pub topics: Vec<String>,
    /// The topics of the event types that its sink sends elsewhere.
    pub topics_by_type: BTreeMap<String, String>,
}
