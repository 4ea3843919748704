//! The events that are really there, read by the types that are there now.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    /// How many events of each type and version are tried: half of them the newest, the others drawn from all rows that are older.
    /// What is drawn is tried at once, so it is a few times this number where a log is long. Default: 1,000.
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
    /// The number of events that were read and not tried, because enough of their type and version were: see
    /// [`LogCheck::per_version`].
    pub passed_over: BTreeMap<(String, u32), u64>,
    /// The events of the catalog, with each version that can be read, of which no row was met, although older rows were not read: they
    /// may have some.
    pub not_reached: Vec<(String, u32)>,
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
        let named = |(name, version): &(String, u32)| format!("{name} version {version}");
        let passed_over: String = self
            .passed_over
            .iter()
            .map(|(event, count)| {
                let tried = self.tried.get(event).copied().unwrap_or_default();
                format!("note: {tried} of {} events of {} were tried\n", count + tried as u64, named(event))
            })
            .collect();
        let not_reached = match self.not_reached.iter().map(named).collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => String::new(),
            names => format!("note: the rows read contain no {names}; older rows may\n"),
        };
        let tried: usize = self.tried.values().sum();
        let whole = if self.complete { "" } else { "; older rows were not read" };
        format!(
            "{skipped}{unlinked}{passed_over}{not_reached}{tried} events of the log tried, {} can't be read{whole}",
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
/// Of each type and version, the newest events are tried and some of all others: see [`LogCheck::per_version`]. The same log gives the
/// same report. Only an application can do this, because it
/// has the types: link it into a small program of yours, or into a test.
///
/// *Guarantees*: reads in short statements and changes nothing; the report holds no payload. *On failure*: the error of the store.
pub async fn check_log(catalog: &Catalog, log: &dyn Inspect, options: &LogCheck) -> Result<LogReport> {
    let mut check = Check {
        catalog,
        newest: catalog.file().newest(),
        per_version: options.per_version,
        met: HashMap::new(),
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
    /// The rows of each type and version.
    met: HashMap<(String, u32), u64>,
    report: LogReport,
}

impl Check<'_> {
    /// The events, with their versions, that can be read here and of which none was met.
    fn not_reached(&self) -> Vec<(String, u32)> {
        let mut events = BTreeSet::new();
        for event in &self.catalog.file().events {
            if self.catalog.reader_of(&event.name, event.version).is_some() {
                let versions = event.upcast_from.iter().copied().chain([event.version]);
                events.extend(versions.map(|version| (event.name.clone(), version)));
            }
        }
        events.into_iter().filter(|event| !self.met.contains_key(event)).collect()
    }

    /// Whether the next event of this type and version is tried: the newest are, and some of all others, each as likely.
    fn is_drawn(&self, event: &(String, u32)) -> bool {
        let met = self.met.get(event).copied().unwrap_or_default();
        let newest = self.per_version.div_ceil(2) as u64;
        let drawn = self.per_version as u64 - newest.min(self.per_version as u64);
        match met.checked_sub(newest + 1) {
            None => true,
            Some(older) => scattered(older) % (older + 1) < drawn,
        }
    }

    fn try_event(&mut self, event: &Recorded, archived: bool) {
        let version = event.headers.schema_version();
        let name: &str = &event.event_type;
        let subject = (name.to_owned(), version);
        *self.met.entry(subject.clone()).or_default() += 1;
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
        if !self.is_drawn(&subject) {
            *self.report.passed_over.entry(subject).or_default() += 1;
            return;
        }
        *self.report.tried.entry(subject).or_default() += 1;
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

/// A number that looks random, and is always the same for the same number (SplitMix64).
fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
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
