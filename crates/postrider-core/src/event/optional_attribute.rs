//! The attributes of a CloudEvent that are written only when a sink is asked for them.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind};

/// A CloudEvents attribute that repeats what a reader can derive, or that says the default. No sink writes it unless asked: these
/// attributes are as large as a small payload.
///
/// `"stream".parse()` reads a name. An unknown name is an error that lists the valid ones.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::{CloudEvents, OptionalAttribute};
///
/// // A reader in another program wants to know the stream of each event.
/// let format = CloudEvents::default().with_optional([OptionalAttribute::Stream]);
/// assert_eq!("stream".parse::<OptionalAttribute>().ok(), Some(OptionalAttribute::Stream));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OptionalAttribute {
    /// `aggregatetype`: what kind of thing the event happened to. Also written, unasked, where a `sequence` counts within the aggregate.
    AggregateType,
    /// `partitionkey`: the ordering key. Also written, unasked, where it differs from `subject`.
    PartitionKey,
    /// `recordedtime`: when the event was recorded. A Kafka record has the time of its producing.
    RecordedTime,
    /// `schemaversion`: the version of the payload's schema. Also written, unasked, where it is not 1.
    SchemaVersion,
    /// `stream`: the stream of the event. A Kafka topic has its name unless the sink is told otherwise.
    Stream,
}

/// Attributes that are always written for an event that has them.
const ALWAYS: [&str; 14] = [
    "specversion",
    "id",
    "source",
    "type",
    "eventtype",
    "subject",
    "time",
    "datacontenttype",
    "sequence",
    "sequencetype",
    "traceparent",
    "correlationid",
    "causationid",
    "tenant",
];

impl OptionalAttribute {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::AggregateType, Self::PartitionKey, Self::RecordedTime, Self::SchemaVersion, Self::Stream];

    /// Its name in CloudEvents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AggregateType => "aggregatetype",
            Self::PartitionKey => "partitionkey",
            Self::RecordedTime => "recordedtime",
            Self::SchemaVersion => "schemaversion",
            Self::Stream => "stream",
        }
    }
}

impl fmt::Display for OptionalAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OptionalAttribute {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if let Some(known) = Self::ALL.into_iter().find(|known| known.as_str() == name) {
            return Ok(known);
        }
        let what = if ALWAYS.contains(&name) { "is always written" } else { "is not an optional attribute" };
        let known = Self::ALL.map(|known| format!("{:?}", known.as_str())).join(", ");
        let message = format!("{name:?} {what}; the optional attributes are {known}");
        Err(Error::new(ErrorKind::Invalid, "cloud event", message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_names_that_there_are() {
        for known in OptionalAttribute::ALL {
            assert_eq!(known.to_string().parse::<OptionalAttribute>().expect("known"), known);
        }
        let refusal =
            |name: &str| name.parse::<OptionalAttribute>().expect_err("refused").message().to_owned();
        let known = "the optional attributes are \"aggregatetype\", \"partitionkey\", \"recordedtime\", \"schemaversion\", \"stream\"";
        assert_eq!(refusal("strem"), format!("\"strem\" is not an optional attribute; {known}"));
        assert_eq!(refusal("time"), format!("\"time\" is always written; {known}"));
    }
}
