//! Reading again what was read.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, ErrorKind};

/// What is to be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The subscription.
    pub subscription: String,
    /// From where on.
    pub from: ReplayFrom,
    /// Whether it may go back to events that the inbox has forgotten: their effects happen again.
    pub effects_may_repeat: bool,
    /// Only count.
    pub dry_run: bool,
}

/// Where a replay begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayFrom {
    /// With what was recorded then or later.
    Time(OffsetDateTime),
    /// With this event.
    Event(Uuid),
}

/// What a replay does, or, in a dry run, would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    /// How many events come again: those that were read and are wanted.
    pub events: u64,
    /// Whether that is all of them; otherwise counting ended there.
    pub counted: bool,
    /// When the first of them was recorded.
    pub first_recorded_at: Option<OffsetDateTime>,
}

impl Replayed {
    /// At most so many events are looked at to count.
    pub const MOST: u32 = 1_000_000;
}

/// What stands in the way of a replay, in the words that every store uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayRefusal {
    /// There is no such event in the log or in the archive.
    NoEvent(Uuid),
    /// The subscription forbids it.
    Forbidden,
    /// Its lanes are being changed.
    Changing,
    /// Retention has taken events up to one that was recorded then; the log is whole from the other time on.
    Gone(OffsetDateTime, Option<OffsetDateTime>),
    /// The inbox has forgotten what was handled up to then.
    Forgotten(OffsetDateTime),
}

impl ReplayRefusal {
    /// The error that says so.
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
