//! How a subscription is doing, in numbers, as they are being counted.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider_core::{Figures, Result};

use crate::clock::{micros_of, seconds_between};
use crate::columns::Columns;
use crate::unread::{Address, ReadProgress};

/// At most this many events that were not read yet are looked at unless fewer will do, a page at a time.
pub const MOST: i64 = 1_000_000;

/// What is counted of one stream.
#[derive(Default)]
struct Counted {
    figures: Figures,
    /// When its oldest undelivered event was recorded.
    oldest: Option<i64>,
    /// When its oldest pending event was recorded.
    oldest_pending: Option<i64>,
    /// How many of them were recorded before the limit.
    before: u64,
    /// When the next of those that failed is tried again.
    next_at: Option<i64>,
}

/// What was counted, and when.
pub struct Count {
    now: i64,
    limit: Option<i64>,
    streams: BTreeMap<String, Counted>,
}

impl Count {
    /// Nothing yet. Events that are older than `age`, if one is given, are counted apart.
    pub fn new(now: i64, age: Option<Duration>) -> Self {
        let limit = age.map(|age| now.saturating_sub(micros_of(age)));
        Self { now, limit, streams: BTreeMap::new() }
    }

    /// When it is counted.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The time before which events are counted apart.
    pub fn limit(&self) -> Option<i64> {
        self.limit
    }

    /// Counts what is open, from the rows of figures_open.sql. When the oldest was recorded is for `oldest` to know.
    pub fn open<R: Columns>(
        &mut self,
        rows: &[R],
        oldest: fn(&R, &'static str) -> Result<Option<i64>>,
        op: &'static str,
    ) -> Result<()> {
        for row in rows {
            let figures = Figures {
                processing: row.count("processing", op)?,
                retrying: row.count("retrying", op)?,
                dead: row.count("dead", op)?,
                attempts: row.count("attempts", op)?,
                waiting: row.count("waiting", op)?,
                due: row.count("due", op)?,
                ..Figures::default()
            };
            let (before, next_at) = (row.count("earlier", op)?, row.maybe_number("next_at", op)?);
            let oldest = oldest(row, op)?;
            let counted = Counted { figures, oldest, oldest_pending: None, before, next_at };
            self.streams.insert(row.text(0, op)?.into_owned(), counted);
        }
        Ok(())
    }

    /// Counts an event, if its lane has not settled it yet.
    pub fn unread(&mut self, progress: &ReadProgress, event: &Address<'_>) {
        let Some(lane) = progress.lane(event).filter(|lane| event.number > lane.position) else { return };
        if !progress.wants(event) {
            return;
        }
        if !self.streams.contains_key(&*event.stream) {
            self.streams.insert(event.stream.clone().into_owned(), Counted::default());
        }
        let Some(counted) = self.streams.get_mut(&*event.stream) else { return };
        if event.number <= lane.reading {
            counted.figures.processing += 1;
        } else {
            counted.figures.pending += 1;
            counted.oldest_pending = earlier(counted.oldest_pending, event.recorded_at);
        }
        counted.before += u64::from(self.limit.is_some_and(|limit| event.recorded_at < limit));
        counted.oldest = earlier(counted.oldest, event.recorded_at);
    }

    /// How many events of the subscription are where, by stream.
    pub fn figures(self, subscription: &str) -> Vec<Figures> {
        let now = self.now;
        let age = |oldest: Option<i64>| oldest.map_or(0.0, |oldest| seconds_between(oldest, now).max(0.0));
        let finished = |(stream, counted): (String, Counted)| Figures {
            subscription: subscription.to_owned(),
            stream,
            oldest_seconds: age(counted.oldest),
            oldest_pending_seconds: age(counted.oldest_pending),
            retry_in: counted.next_at.map(|next_at| seconds_between(now, next_at)),
            ..counted.figures
        };
        self.streams.into_iter().map(finished).collect()
    }

    /// How many undelivered events were recorded before the limit.
    pub fn before(&self) -> u64 {
        self.streams.values().map(|counted| counted.before).sum()
    }
}

/// The earlier of two times, the first of which may not be known.
fn earlier(known: Option<i64>, at: i64) -> Option<i64> {
    Some(known.map_or(at, |known| known.min(at)))
}
