//! What a log has really seen.

use std::collections::{BTreeMap, HashSet};

use postrider_core::{EventQuery, Inspect, OffsetDateTime, Recorded, Result};

use crate::model::{CatalogFile, EventEntry};

/// How many rows one look reads.
const PAGE: u32 = 5_000;

/// The events of one type and version that a log has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The event type.
    pub name: String,
    /// The version.
    pub version: u32,
    /// The stream of the newest of them.
    pub stream: String,
    /// How many there are.
    pub count: u64,
    /// When the first of them was recorded.
    pub first: OffsetDateTime,
    /// When the last of them was recorded.
    pub last: OffsetDateTime,
}

/// What a look into a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogContents {
    /// By type and version.
    pub seen: Vec<Seen>,
    /// The rows that were read, newest first.
    pub rows: u64,
    /// Whether the whole log and archive was read.
    pub complete: bool,
    /// When the oldest event that was read was recorded.
    pub since: Option<OffsetDateTime>,
    /// When the newest was.
    pub until: Option<OffsetDateTime>,
}

impl LogContents {
    /// Reads the newest rows of a log and its archive, `most` of them.
    ///
    /// *Guarantees*: reads in short statements and changes nothing. *On failure*: the error of the store.
    pub async fn read(log: &dyn Inspect, most: u64) -> Result<Self> {
        let mut contents = Self::default();
        let mut by_type = BTreeMap::new();
        let mut query = EventQuery { limit: PAGE, rows: PAGE, ..EventQuery::default() };
        loop {
            let page = log.events(&query).await?;
            contents.rows += page.looked;
            contents.complete = page.complete;
            for found in &page.events {
                contents.count(&found.event, &mut by_type);
            }
            match page.reached {
                Some((reached, _)) if !page.complete && page.looked > 0 && contents.rows < most => {
                    query.before = Some(reached);
                }
                _ => break,
            }
        }
        contents.seen = by_type.into_values().collect();
        Ok(contents)
    }

    fn count(&mut self, event: &Recorded, by_type: &mut BTreeMap<(String, u32), Seen>) {
        let at = event.recorded_at;
        self.since = Some(self.since.map_or(at, |since| since.min(at)));
        self.until = Some(self.until.map_or(at, |until| until.max(at)));
        let version = event.headers.schema_version();
        let seen = by_type.entry((event.event_type.to_string(), version)).or_insert_with(|| Seen {
            name: event.event_type.to_string(),
            version,
            stream: event.stream.to_string(),
            count: 0,
            first: at,
            last: at,
        });
        seen.count += 1;
        seen.first = seen.first.min(at);
        seen.last = seen.last.max(at);
    }

    /// Events of one kind per day, over the time that was read. Nothing if that was less than a minute.
    pub fn per_day(&self, seen: &Seen) -> Option<f64> {
        let seconds = (self.until? - self.since?).as_seconds_f64();
        #[allow(clippy::cast_precision_loss)]
        (seconds >= 60.0).then(|| seen.count as f64 * 86_400.0 / seconds)
    }

    /// What the log has and the catalog does not know: a type, or a version that it neither has nor converts.
    pub fn unknown<'c>(&'c self, catalog: &'c CatalogFile) -> impl Iterator<Item = &'c Seen> {
        let mut known: HashSet<(&str, u32)> = HashSet::with_capacity(catalog.events.len());
        for event in &catalog.events {
            let versions = event.upcast_from.iter().chain([&event.version]);
            known.extend(versions.map(|version| (event.name.as_str(), *version)));
        }
        self.seen.iter().filter(move |seen| !known.contains(&(seen.name.as_str(), seen.version)))
    }

    /// The names of the events that the catalog has and the log has not seen.
    pub fn unseen<'c>(&'c self, catalog: &'c CatalogFile) -> impl Iterator<Item = &'c str> {
        let seen: HashSet<&str> = self.seen.iter().map(|seen| seen.name.as_str()).collect();
        let mut named = HashSet::new();
        let names = catalog.events.iter().map(|event| event.name.as_str());
        names.filter(move |name| !seen.contains(name) && named.insert(*name))
    }

    /// The versions of events that the catalog has and the log has not seen, although it has others of the same name.
    pub fn unseen_versions<'c>(&'c self, catalog: &'c CatalogFile) -> impl Iterator<Item = &'c EventEntry> {
        let names: HashSet<&str> = self.seen.iter().map(|seen| seen.name.as_str()).collect();
        let seen: HashSet<(&str, u32)> =
            self.seen.iter().map(|seen| (seen.name.as_str(), seen.version)).collect();
        catalog.events.iter().filter(move |event| {
            names.contains(event.name.as_str()) && !seen.contains(&(event.name.as_str(), event.version))
        })
    }
}
