//! Replay: a subscription reads events again.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, ErrorKind};

/// A replay of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The subscription.
    pub subscription: String,
    /// Where it starts.
    pub from: ReplayFrom,
    /// Whether to allow events that the inbox has forgotten: their effects happen again.
    pub effects_may_repeat: bool,
    /// Only count.
    pub dry_run: bool,
}

/// Where a replay starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayFrom {
    /// With events that were recorded at this time or later.
    Time(OffsetDateTime),
    /// With this event.
    Event(Uuid),
}

/// The result of a replay, or what it would be in a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Events that are delivered again: those that were read and that the filter matches.
    pub events: u64,
    /// Whether these are all; otherwise counting stopped there.
    pub counted: bool,
    /// When the first of them was recorded.
    pub first_recorded_at: Option<OffsetDateTime>,
}

impl Replayed {
    /// Maximum number of events that are counted.
    pub const MOST: u32 = 1_000_000;
}

/// Why a replay is not possible, with the same message in every store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayRefusal {
    /// There is no such event in the log or in the archive.
    NoEvent(Uuid),
    /// The subscription forbids it.
    Forbidden,
    /// Its lanes are being changed.
    Changing,
    /// Retention has removed events that were recorded up to the first time; the log is complete from the second time on.
    Gone(OffsetDateTime, Option<OffsetDateTime>),
    /// The inbox has forgotten events that were handled up to this time.
    Forgotten(OffsetDateTime),
}

impl ReplayRefusal {
    /// The error with this reason.
    pub fn error(&self, subscription: &str) -> Error {
        let kind = if matches!(self, Self::NoEvent(_)) { ErrorKind::NotFound } else { ErrorKind::Refused };
        let message = match self {
            Self::NoEvent(event) => format!("there is no event {event} in the log"),
            Self::Forbidden => {
                format!("the subscription {subscription:?} forbids replay; allow it in its settings first")
            }
            Self::Changing => {
                format!("the lanes of {subscription:?} are being changed; try again when the change is done")
            }
            Self::Gone(until, whole) => {
                let from = match whole {
                    Some(from) => format!("you can replay from {} on", shown(*from)),
                    None => "there is nothing left to replay".to_owned(),
                };
                format!("retention has removed events recorded up to {}; {from}", shown(*until))
            }
            Self::Forgotten(until) => format!(
                "the inbox of {subscription:?} has forgotten events that were handled up to {}, so their effects would \
                 happen again; replay from a later time, or allow that effects may repeat",
                shown(*until)
            ),
        };
        Error::new(kind, "replay", message)
    }
}

fn shown(time: OffsetDateTime) -> String {
    time.format(&time::format_description::well_known::Rfc3339).unwrap_or_else(|_| time.to_string())
}
