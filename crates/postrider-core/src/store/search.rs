//! Looking for events: what is wanted, how far a look got, what it found.

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{Error, ErrorKind, Pattern, Recorded};

/// Which events to show. What is not set does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// This one only. The only query that is answered by an index.
    pub event_id: Option<Uuid>,
    /// Of aggregates of this type.
    pub aggregate_type: Option<String>,
    /// Of aggregates with this id.
    pub aggregate_id: Option<String>,
    /// Ordered by this key, be it the aggregate's (`type:id`) or one of its own.
    pub key: Option<String>,
    /// Of types that fit this.
    pub event_type: Option<Pattern>,
    /// Of streams that fit this.
    pub stream: Option<Pattern>,
    /// Recorded then or later.
    pub from: Option<OffsetDateTime>,
    /// Recorded before that.
    pub until: Option<OffsetDateTime>,
    /// With this correlation id.
    pub correlation_id: Option<String>,
    /// Only those that say what caused them.
    pub caused: bool,
    /// With an id above this.
    pub after: Option<i64>,
    /// With an id below this.
    pub before: Option<i64>,
    /// The oldest first, not the newest.
    pub oldest_first: bool,
    /// At most this many; 0 means 100.
    pub limit: u32,
    /// Look at no more rows than this; 0 means 100,000.
    pub rows: u32,
}

impl EventQuery {
    /// Whether it wants an event, ids aside.
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

/// An event, and whether it is still in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// The event.
    pub event: Recorded,
    /// Whether it is in the archive, from where nothing is delivered.
    pub archived: bool,
}

/// What a look found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The events, in the order that was asked for.
    pub events: Vec<LoggedEvent>,
    /// How many rows were looked at.
    pub looked: u64,
    /// How far the look got: the last id that it has seen, and when that was recorded. To go on, ask for what is before it,
    /// or after it if the oldest come first.
    pub reached: Option<(i64, OffsetDateTime)>,
    /// Whether all there is was looked at. If not, the limit or the number of rows ended it.
    pub complete: bool,
}

/// A walk through the log, page by page, for stores to carry out.
#[derive(Debug)]
pub struct Search<'q> {
    query: &'q EventQuery,
    found: EventPage,
}

/// How far clocks may have gone back: a page beyond the wanted times by more than this ends a walk.
const SLACK: Duration = Duration::HOUR;

impl<'q> Search<'q> {
    /// A walk that has not begun.
    pub fn new(query: &'q EventQuery) -> Self {
        Self { query, found: EventPage::default() }
    }

    /// The next page: look at ids above the first and below the second, this many rows. Nothing when the walk is over.
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

    /// Takes what a page of `asked` rows had: those that are wanted, how many rows were looked at, and the last of them.
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

    /// What was found.
    pub fn found(self) -> EventPage {
        self.found
    }

    fn limit(&self) -> usize {
        if self.query.limit == 0 { 100 } else { self.query.limit as usize }
    }
}

/// An event with what caused it and what followed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// What caused it: the first cause first.
    pub causes: Vec<LoggedEvent>,
    /// The event.
    pub event: LoggedEvent,
    /// What followed from it, directly or not, by id.
    pub followed: Vec<LoggedEvent>,
    /// A cause that is neither in the log nor in the archive: retention has taken it, or it is of another system.
    pub lost_cause: Option<Uuid>,
    /// How many rows were looked at for what followed.
    pub looked: u64,
    /// Whether all was looked at.
    pub complete: bool,
}

impl Chain {
    /// At most so many causes are followed up.
    pub const MOST_CAUSES: usize = 100;
    /// At most so many rows are looked at for what followed.
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
