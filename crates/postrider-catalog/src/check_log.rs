//! The events that are really there, read by the types that are there now.

use std::collections::BTreeMap;
use std::fmt;

use postrider_core::{EventQuery, Headers, Inspect, OffsetDateTime, Payload, Recorded, Result, Uuid};
use serde_json::Value;

use crate::Catalog;

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
        let tried: usize = self.tried.values().sum();
        let whole = if self.complete { "" } else { "; older rows were not read" };
        format!("{skipped}{tried} events of the log tried, {} can't be read{whole}", self.unreadable.len())
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
    let mut report = LogReport::default();
    let mut query = EventQuery { from: options.from, limit: PAGE, rows: PAGE, ..EventQuery::default() };
    loop {
        let page = log.events(&query).await?;
        report.rows += page.looked;
        for found in &page.events {
            catalog.try_event(&found.event, found.archived, options, &mut report);
        }
        report.complete = page.complete;
        match page.reached {
            Some((reached, _)) if !page.complete && page.looked > 0 && report.rows < options.rows => {
                query.before = Some(reached);
            }
            _ => return Ok(report),
        }
    }
}

impl Catalog {
    fn try_event(&self, event: &Recorded, archived: bool, options: &LogCheck, report: &mut LogReport) {
        let version = event.headers.schema_version();
        let Some((newest, reader)) = self.reader(&event.event_type) else {
            if self.file().event(&event.event_type).is_none() {
                *report.unknown.entry(event.event_type.to_string()).or_default() += 1;
            }
            return;
        };
        if version < newest && self.needs_the_application(&event.event_type, version) {
            report.skipped += 1;
            return;
        }
        let tried = report.tried.entry((event.event_type.to_string(), version)).or_default();
        if *tried >= options.per_version {
            return;
        }
        *tried += 1;
        let outcome = match version.cmp(&newest) {
            std::cmp::Ordering::Equal => reader(event, None),
            std::cmp::Ordering::Greater => {
                Err(format!("it has version {version}, and the catalog has up to {newest}"))
            }
            std::cmp::Ordering::Less => event
                .payload
                .as_json()
                .and_then(|json| serde_json::from_str(json).ok())
                .ok_or_else(|| "its payload is not JSON".to_owned())
                .and_then(|old: Value| self.convert(&event.event_type, version, newest, old))
                .and_then(|new| reader(event, Some(new))),
        };
        if let Err(reason) = outcome {
            report.unreadable.push(Unreadable {
                event_id: event.event_id,
                event_type: event.event_type.to_string(),
                version,
                archived,
                reason,
            });
        }
    }

    /// Whether the application has upcasters from this version that are not linked in here.
    fn needs_the_application(&self, name: &str, version: u32) -> bool {
        self.file().event(name).is_some_and(|event| {
            event.upcast_from.contains(&version)
                && !self.converters().versions(name, event.version).contains(&version)
        })
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
