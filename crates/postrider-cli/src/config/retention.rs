//! What leaves the log, and when: `[retention]`.

use std::time::Duration;

use super::{Problem, Section};

/// What leaves the log, and when.
#[derive(Debug, Clone)]
pub(crate) struct Retention {
    /// How long delivered events stay in the log.
    pub(crate) delivered: Duration,
    /// Whether they move to the archive then.
    pub(crate) archive: bool,
    /// How long they stay in the archive; for ever unless set.
    pub(crate) archived: Option<Duration>,
    /// How long an inbox remembers.
    pub(crate) inbox: Duration,
    /// At what time of the day (UTC), in minutes since midnight.
    pub(crate) at: u32,
    /// How many rows at once.
    pub(crate) batch: u32,
    /// How long to wait between two batches.
    pub(crate) pause: Duration,
    /// Fields of payloads that are masked on the way into the archive.
    pub(crate) mask: Vec<String>,
}

impl Retention {
    /// Reads it.
    pub(crate) fn read(mut section: Section<'_>) -> Result<Self, Problem> {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let retention = Self {
            delivered: section.duration("delivered")?.unwrap_or(days(30)),
            archive: section.parsed("archive", "true or false")?.unwrap_or(false),
            archived: section.duration("archived")?,
            inbox: section.duration("inbox")?.unwrap_or(days(30)),
            at: at(&mut section)?,
            batch: section.parsed("batch", "a number of rows, 1 or more")?.unwrap_or(1000),
            pause: section.duration("pause")?.unwrap_or(Duration::from_millis(50)),
            mask: section.list("mask")?.unwrap_or_default(),
        };
        if retention.batch == 0 {
            return Err(section.problem("batch", "it is 1 or more"));
        }
        if !retention.archive && (retention.archived.is_some() || !retention.mask.is_empty()) {
            return Err(section
                .problem("archive", "it is off, so that archived and mask say nothing; set it to true"));
        }
        section.finish()?;
        Ok(retention)
    }
}

fn at(section: &mut Section<'_>) -> Result<u32, Problem> {
    let Some(text) = section.text("at")? else { return Ok(2 * 60) };
    let minutes = text.split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.get(..2)?.parse().ok()?);
        (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
    });
    minutes.ok_or_else(|| section.problem("at", format!("{text:?} is no time of the day, as \"02:00\" is")))
}
