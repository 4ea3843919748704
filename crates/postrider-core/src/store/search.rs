//! Searching for events: the query, one page of results, and where to continue.

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{Error, ErrorKind, Pattern, Recorded};

/// Filters events. A field that is not set does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only this event. The only filter with an index.
    pub event_id: Option<Uuid>,
    /// Only aggregates of this type.
    pub aggregate_type: Option<String>,
    /// Only aggregates with this id.
    pub aggregate_id: Option<String>,
    /// Only events with this key: an ordering key, or the aggregate as `type:id`.
    pub key: Option<String>,
    /// Only types that match this.
    pub event_type: Option<Pattern>,
    /// Only streams that match this.
    pub stream: Option<Pattern>,
    /// Recorded at this time or later.
    pub from: Option<OffsetDateTime>,
    /// Recorded before this time.
    pub until: Option<OffsetDateTime>,
    /// With this correlation id.
    pub correlation_id: Option<String>,
    /// Only events that name their cause.
    pub caused: bool,
    /// With an id above this.
    pub after: Option<i64>,
    /// With an id below this.
    pub before: Option<i64>,
    /// Oldest first. Default: newest first.
    pub oldest_first: bool,
    /// Maximum number of results; 0 means 100.
    pub limit: u32,
    /// Maximum number of rows to scan; 0 means 100,000.
    pub rows: u32,
}

impl EventQuery {
    /// Whether it matches an event, apart from ids.
    pub fn wants(&self, event: &Recorded) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        let fits = |pattern: &Option<Pattern>, name: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
        };
        self.event_id.is_none_or(|wanted| wanted == event.event_id)
            && is(&self.aggregate_type, &event.aggregate_type)
            && is(&self.aggregate_id, &event.aggregate_id)
            && is(&self.key, &event.key())
            && fits(&self.event_type, &event.event_type)
            && fits(&self.stream, &event.stream)
            && self.from.is_none_or(|from| event.recorded_at >= from)
            && self.until.is_none_or(|until| event.recorded_at < until)
            && (self.correlation_id.is_none()
                || self.correlation_id.as_deref() == event.headers.correlation_id())
            && (!self.caused || event.headers.causation_id().is_some())
    }
}

/// An event, and whether it is in the log or the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// The event.
    pub event: Recorded,
    /// Whether it is in the archive. Archived events are not delivered.
    pub archived: bool,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The events, in the requested order.
    pub events: Vec<LoggedEvent>,
    /// Rows that were scanned.
    pub looked: u64,
    /// How far the search got: the last id that it scanned, and when that was recorded. To continue, search before it, or after it
    /// with the oldest first.
    pub reached: Option<(i64, OffsetDateTime)>,
    /// Whether everything was searched. If not, a limit ended the search.
    pub complete: bool,
}

/// A search through the log, page by page, for stores to run.
#[derive(Debug)]
pub struct Search<'q> {
    query: &'q EventQuery,
    found: EventPage,
}

/// How far clocks may have gone back: a page beyond the wanted times by more than this ends a walk.
const SLACK: Duration = Duration::HOUR;

impl<'q> Search<'q> {
    /// A new search.
    pub fn new(query: &'q EventQuery) -> Self {
        Self { query, found: EventPage::default() }
    }

    /// The next page: scan ids above the first and below the second number, this many rows. `None` when the search is over.
    pub fn page(&self) -> Option<(i64, i64, u32)> {
        let EventPage { events, looked, reached, complete } = &self.found;
        let rows = if self.query.rows == 0 { 100_000 } else { self.query.rows };
        let left = u64::from(rows).saturating_sub(*looked);
        if *complete || left == 0 || events.len() >= self.limit() {
            return None;
        }
        let (mut after, mut before) = (self.query.after.unwrap_or(0), self.query.before.unwrap_or(i64::MAX));
        match reached {
            Some((id, _)) if self.query.oldest_first => after = *id,
            Some((id, _)) => before = *id,
            None => {}
        }
        let page = if *looked == 0 { 1_000 } else { 5_000 };
        Some((after, before, u32::try_from(left.min(page)).unwrap_or(u32::MAX)))
    }

    /// Adds the result of a page of `asked` rows: the events that match, the number of rows scanned, and the last of them.
    pub fn take(
        &mut self,
        wanted: Vec<LoggedEvent>,
        looked: u64,
        last: Option<(i64, OffsetDateTime)>,
        asked: u32,
    ) {
        let (limit, query, found) = (self.limit(), self.query, &mut self.found);
        found.looked += looked;
        found.events.extend(wanted);
        let beyond = last.is_some_and(|(_, at)| {
            if query.oldest_first {
                query.until.is_some_and(|until| at - until > SLACK)
            } else {
                query.from.is_some_and(|from| from - at > SLACK)
            }
        });
        found.complete = looked < u64::from(asked) || beyond;
        found.reached = last.or(found.reached);
        if found.events.len() > limit {
            found.events.truncate(limit);
            found.complete = false;
            found.reached = found.events.last().map(|last| (last.event.id, last.event.recorded_at));
        }
    }

    /// The result.
    pub fn found(self) -> EventPage {
        self.found
    }

    fn limit(&self) -> usize {
        if self.query.limit == 0 { 100 } else { self.query.limit as usize }
    }
}

/// An event with its causes and effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Its causes, the first cause first.
    pub causes: Vec<LoggedEvent>,
    /// The event.
    pub event: LoggedEvent,
    /// Its direct and indirect effects, by id.
    pub followed: Vec<LoggedEvent>,
    /// A cause that is not in the log or the archive: retention has removed it, or it belongs to another system.
    pub lost_cause: Option<Uuid>,
    /// Rows that were scanned for effects.
    pub looked: u64,
    /// Whether everything was scanned.
    pub complete: bool,
}

impl Chain {
    /// Maximum number of causes that are followed.
    pub const MOST_CAUSES: usize = 100;
    /// Maximum number of rows that are scanned for effects.
    pub const MOST_ROWS: u32 = 200_000;

    pub(crate) fn of(event: LoggedEvent) -> Self {
        Self { causes: Vec::new(), event, followed: Vec::new(), lost_cause: None, looked: 0, complete: true }
    }

    pub(crate) fn next_cause(&self) -> Option<Uuid> {
        self.causes.first().unwrap_or(&self.event).event.headers.causation_id()
    }

    pub(crate) fn unknown(event_id: Uuid) -> Error {
        let message = format!("there is no event {event_id} in the log or in the archive");
        Error::new(ErrorKind::NotFound, "chain", message)
    }
}
