//! What leaves the log, and when: `[retention]`.

use std::time::Duration;

use jiff::tz::{self, TimeZone};
use postrider::store::{ArchiveOptions, ArchiveTable, Field, Mask, Pacing, nearest};

use super::{Problem, Section};

/// The defaults.
pub(crate) const DELIVERED: Duration = Duration::from_secs(30 * 86_400);
pub(crate) const ARCHIVE: bool = false;
pub(crate) const INBOX: Duration = Duration::from_secs(30 * 86_400);
/// In minutes since midnight.
pub(crate) const AT: u32 = 2 * 60;
pub(crate) const ZONE: &str = "UTC";
pub(crate) const BY_MONTH: bool = false;
/// The default first.
pub(crate) const EXISTING: [(&str, bool); 2] = [("fail", false), ("skip", true)];

/// What leaves the log, and when.
#[derive(Debug, Clone)]
pub(crate) struct Retention {
    /// How long delivered events stay in the log.
    pub(crate) delivered: Duration,
    /// Whether they move to the archive then.
    pub(crate) archive: bool,
    /// How long ago they were recorded when they leave the archive; never unless set.
    pub(crate) archived: Option<Duration>,
    /// How long an inbox remembers.
    pub(crate) inbox: Duration,
    /// At what time of the day, in minutes since midnight.
    pub(crate) at: u32,
    /// Of the day in this time zone.
    pub(crate) zone: TimeZone,
    /// How they follow each other.
    pub(crate) pacing: Pacing,
    /// What is masked on the way into the archive, and where it is.
    pub(crate) archiving: ArchiveOptions,
}

impl Retention {
    /// Reads it.
    pub(crate) fn read(mut section: Section<'_>) -> Result<Self, Problem> {
        let retention = Self {
            delivered: section.duration("delivered")?.unwrap_or(DELIVERED),
            archive: section.parsed("archive", "true or false")?.unwrap_or(ARCHIVE),
            archived: section.duration("archived")?,
            inbox: section.duration("inbox")?.unwrap_or(INBOX),
            at: at(&mut section)?,
            zone: zone(&mut section)?,
            pacing: pacing(&mut section)?,
            archiving: archiving(&mut section)?,
        };
        let archiving = &retention.archiving;
        if !retention.archive && (retention.archived.is_some() || !archiving.is_plain() || archiving.by_month)
        {
            return Err(section.problem(
                "archive",
                "archived, mask, by_month and target have no effect without it; set it to true",
            ));
        }
        if retention.archived.is_some_and(|archived| archived < retention.delivered) {
            return Err(section.problem(
                "archived",
                "it must not be shorter than delivered: nothing would stay in the archive",
            ));
        }
        if retention.archived.is_some() && retention.archiving.target.is_some() {
            return Err(section.problem(
                "archived",
                "it can't be used with target, because Postrider never deletes from your table; leave it out",
            ));
        }
        section.finish()?;
        Ok(retention)
    }
}

fn pacing(section: &mut Section<'_>) -> Result<Pacing, Problem> {
    let usual = Pacing::USUAL;
    let pacing = Pacing {
        batch: section.parsed("batch", "a number of rows, 1 or more")?.unwrap_or(usual.batch),
        pause: section.duration("pause")?.unwrap_or(usual.pause),
        share: section.parsed("share", "a fraction such as 0.25")?.unwrap_or(usual.share),
    };
    if pacing.batch == 0 || pacing.batch > 100_000 {
        return Err(section.problem("batch", "it must be between 1 and 100000"));
    }
    if !(0.01..=1.0).contains(&pacing.share) {
        return Err(section.problem("share", "it must be between 0.01 and 1"));
    }
    Ok(pacing)
}

fn archiving(section: &mut Section<'_>) -> Result<ArchiveOptions, Problem> {
    let mask = Mask::new(section.list("mask")?.unwrap_or_default());
    let mask = mask.map_err(|error| section.problem("mask", error.message()))?;
    let target = section.section("target")?.map(target).transpose()?;
    let by_month = section.parsed("by_month", "true or false")?.unwrap_or(BY_MONTH);
    if by_month && target.is_some() {
        let what = "it can't be used with target, because events go to your table and not to the archive; leave it out";
        return Err(section.problem("by_month", what));
    }
    Ok(ArchiveOptions { mask, target, by_month })
}

fn target(mut section: Section<'_>) -> Result<ArchiveTable, Problem> {
    let table = section.need("table", "audit.events")?;
    let mut columns = Vec::new();
    for (column, field) in section.texts("columns")? {
        let field: Field = field.parse().map_err(|error: postrider::Error| {
            section.problem(&format!("columns.{column}"), error.message())
        })?;
        columns.push((column, field));
    }
    if columns.is_empty() {
        let what = "it is required; for example columns = { id = \"event_id\", body = \"payload\" }";
        return Err(section.problem("columns", what));
    }
    let target = ArchiveTable::new(&table, columns).map_err(|error| section.own_problem(error.message()))?;
    let skip = section.word("existing", &EXISTING)?.unwrap_or(EXISTING[0].1);
    section.finish()?;
    Ok(if skip { target.skip_existing() } else { target })
}

fn at(section: &mut Section<'_>) -> Result<u32, Problem> {
    let Some(text) = section.text("at")? else { return Ok(AT) };
    let minutes = text.split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.get(..2)?.parse().ok()?);
        (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
    });
    minutes.ok_or_else(|| section.problem("at", format!("{text:?} is not a time of day such as \"02:00\"")))
}

fn zone(section: &mut Section<'_>) -> Result<TimeZone, Problem> {
    let Some(name) = section.text("zone")? else { return Ok(TimeZone::UTC) };
    TimeZone::get(&name).map_err(|_| {
        let known: Vec<String> = tz::db().available().map(|known| known.to_string()).collect();
        let what = match nearest(&name, known.iter().map(String::as_str)) {
            Some(meant) => format!("there is no time zone {name:?}; did you mean {meant:?}?"),
            None => format!(
                "there is no time zone {name:?}; it must be a name of the IANA database, as in \"Asia/Seoul\""
            ),
        };
        section.problem("zone", what)
    })
}
