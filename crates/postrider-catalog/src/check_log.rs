//! The events that are really there, read by the types that are there now.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use postrider_core::{EventQuery, Headers, Inspect, OffsetDateTime, Payload, Recorded, Result, Uuid};
use serde_json::Value;

use crate::Catalog;
use crate::model::EventEntry;

/// How many rows one look reads.
const PAGE: u32 = 5_000;

/// How much of a log a check reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCheck {
    /// The most events of each type and version. Default: 1,000.
    pub per_version: usize,
    /// The most rows of the log and the archive to read. Default: 1,000,000.
    pub rows: u64,
    /// Only events that were recorded at this time or later.
    pub from: Option<OffsetDateTime>,
}

impl Default for LogCheck {
    fn default() -> Self {
        Self { per_version: 1_000, rows: 1_000_000, from: None }
    }
}

/// What a check of a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogReport {
    /// The number of events that were tried, by type and version.
    pub tried: BTreeMap<(String, u32), usize>,
    /// The events that can't be read.
    pub unreadable: Vec<Unreadable>,
    /// The number of events whose type the catalog does not have, by type.
    pub unknown: BTreeMap<String, usize>,
    /// The number of events of older versions that were not tried: their upcasters are not linked in.
    pub skipped: u64,
    /// The number of events that the catalog has and nothing here can read, by type: their types are not linked in, or have no schema.
    pub unlinked: BTreeMap<String, u64>,
    /// The events of the catalog of which none was tried, although older rows were not read: they may have some.
    pub not_reached: Vec<String>,
    /// The rows that were read.
    pub rows: u64,
    /// Whether the whole log and archive was read.
    pub complete: bool,
}

/// An event that can't be read. It does not hold the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The event.
    pub event_id: Uuid,
    /// Its type.
    pub event_type: String,
    /// The version that it was recorded with.
    pub version: u32,
    /// Whether it is in the archive.
    pub archived: bool,
    /// Why, without a value of the payload.
    pub reason: String,
}

impl LogReport {
    /// Whether everything that was tried can be read.
    pub fn passed(&self) -> bool {
        self.unreadable.is_empty()
    }

    /// How much was read, without the events themselves.
    pub fn summary(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(
                "note: {skipped} events of older versions need the upcasters of the application; check them there\n"
            ),
        };
        let unlinked: u64 = self.unlinked.values().sum();
        let unlinked = match self.unlinked.keys().cloned().collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => String::new(),
            names => format!(
                "note: {unlinked} events were not checked, because no type is registered for: {names}\n"
            ),
        };
        let not_reached = match self.not_reached.join(", ") {
            names if names.is_empty() => String::new(),
            names => format!("note: the rows read contain no {names}; older rows may\n"),
        };
        let tried: usize = self.tried.values().sum();
        let whole = if self.complete { "" } else { "; older rows were not read" };
        format!(
            "{skipped}{unlinked}{not_reached}{tried} events of the log tried, {} can't be read{whole}",
            self.unreadable.len()
        )
    }
}

impl fmt::Display for LogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.unreadable {
            let place = if event.archived { " (in the archive)" } else { "" };
            let Unreadable { event_id, event_type, version, reason, .. } = event;
            writeln!(f, "error: event {event_id}{place}: {event_type} version {version}: {reason}")?;
        }
        for (name, count) in &self.unknown {
            writeln!(
                f,
                "warning: the log has {count} events of type {name}, which the catalog does not have"
            )?;
        }
        f.write_str(&self.summary())
    }
}

/// Runs the payloads of the log and of the archive through the current upcasters and types, and reports which of them fail.
///
/// The newest events of each type and version are tried, up to [`LogCheck::per_version`]. Only an application can do this, because it
/// has the types: link it into a small program of yours, or into a test.
///
/// *Guarantees*: reads in short statements and changes nothing; the report holds no payload. *On failure*: the error of the store.
pub async fn check_log(catalog: &Catalog, log: &dyn Inspect, options: &LogCheck) -> Result<LogReport> {
    let mut check = Check {
        catalog,
        newest: catalog.file().newest(),
        per_version: options.per_version,
        report: LogReport::default(),
    };
    let mut query = EventQuery { from: options.from, limit: PAGE, rows: PAGE, ..EventQuery::default() };
    loop {
        let page = log.events(&query).await?;
        check.report.rows += page.looked;
        for found in &page.events {
            check.try_event(&found.event, found.archived);
        }
        check.report.complete = page.complete;
        match page.reached {
            Some((reached, _)) if !page.complete && page.looked > 0 && check.report.rows < options.rows => {
                query.before = Some(reached);
            }
            _ => break,
        }
    }
    if !check.report.complete {
        check.report.not_reached = check.not_reached();
    }
    Ok(check.report)
}

/// A check that is under way.
struct Check<'c> {
    catalog: &'c Catalog,
    newest: HashMap<&'c str, &'c EventEntry>,
    per_version: usize,
    report: LogReport,
}

impl Check<'_> {
    /// The events that can be read here and of which none was met.
    fn not_reached(&self) -> Vec<String> {
        let met: HashSet<&str> = self.report.tried.keys().map(|(name, _)| name.as_str()).collect();
        let names = self.newest.keys().filter(|name| self.catalog.reader(name).is_some());
        let mut names: Vec<String> =
            names.filter(|name| !met.contains(**name)).map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    }

    fn try_event(&mut self, event: &Recorded, archived: bool) {
        let version = event.headers.schema_version();
        let name: &str = &event.event_type;
        let entry = self.newest.get(name).copied();
        let Some((newest, _)) = self.catalog.reader(name) else {
            match entry {
                None => *self.report.unknown.entry(name.to_owned()).or_default() += 1,
                Some(_) => *self.report.unlinked.entry(name.to_owned()).or_default() += 1,
            }
            return;
        };
        if version < newest && entry.is_some_and(|entry| self.catalog.needs_the_application(entry, version)) {
            self.report.skipped += 1;
            return;
        }
        let tried = self.report.tried.entry((name.to_owned(), version)).or_default();
        if *tried >= self.per_version {
            return;
        }
        *tried += 1;
        if let Err(reason) = self.try_to_read(event, version, newest) {
            self.report.unreadable.push(Unreadable {
                event_id: event.event_id,
                event_type: event.event_type.to_string(),
                version,
                archived,
                reason,
            });
        }
    }

    /// Reads an event as the type of its version, if that is linked in, and as the newest, if upcasters lead there.
    fn try_to_read(&self, event: &Recorded, version: u32, newest: u32) -> std::result::Result<(), String> {
        let name: &str = &event.event_type;
        let own = self.catalog.reader_of(name, version);
        if let Some(reader) = own {
            reader(event, None)?;
        }
        let is_converted = self.newest.get(name).is_some_and(|event| event.upcast_from.contains(&version));
        match (own, version.cmp(&newest)) {
            (_, Ordering::Equal) => Ok(()),
            (_, Ordering::Greater) => {
                Err(format!("it has version {version}, and the catalog has up to {newest}"))
            }
            (Some(_), Ordering::Less) if !is_converted => Ok(()),
            (_, Ordering::Less) => {
                let Some(reader) = self.catalog.reader_of(name, newest) else { return Ok(()) };
                let json = event.payload.as_json().and_then(|json| serde_json::from_str(json).ok());
                let old: Value = json.ok_or_else(|| "its payload is not JSON".to_owned())?;
                reader(event, Some(self.catalog.convert(name, version, newest, old)?))
            }
        }
    }
}

/// An event with this payload, as a reader gets it.
pub(crate) fn recorded(name: &str, version: u32, payload: &Value) -> Recorded {
    let mut headers = Headers::new();
    headers.set_schema_version(version);
    Recorded {
        id: 1,
        event_id: Uuid::nil(),
        stream: "events".into(),
        event_type: name.into(),
        aggregate_type: "Aggregate".into(),
        aggregate_id: "1".into(),
        ordering_key: None,
        sequence: None,
        payload: Payload::Json(crate::report::exact_text(payload)),
        headers,
        occurred_at: OffsetDateTime::UNIX_EPOCH,
        recorded_at: OffsetDateTime::UNIX_EPOCH,
        max_attempts: None,
    }
}
