//! What a subscription wants of the log, told apart event by event, as a read does it.

use std::borrow::Cow;
use std::collections::HashMap;

use postrider_core::{Filter, Result};

use crate::columns::Columns;
use crate::subscription::filter;

/// How many events are looked at in one go.
pub const PAGE: i64 = 10_000;

/// What it takes to tell whose an event is.
pub struct Address<'r> {
    /// Its number.
    pub number: i64,
    /// Its stream.
    pub stream: Cow<'r, str>,
    /// Its type.
    pub event_type: Cow<'r, str>,
    /// When it was recorded, in microseconds.
    pub recorded_at: i64,
    /// What it is ordered by.
    pub key: Cow<'r, str>,
}

impl<'r> Address<'r> {
    /// From a row that has the id, the stream, the type, the time and the key.
    pub fn of(row: &'r impl Columns, number: i64, recorded_at: i64, op: &'static str) -> Result<Self> {
        let (stream, event_type) = (row.text(1, op)?, row.text(2, op)?);
        Ok(Self { number, stream, event_type, recorded_at, key: row.text(4, op)? })
    }
}

/// A lane: up to where it has settled, and up to where its holder is reading.
#[derive(Clone, Copy)]
pub(crate) struct LaneProgress {
    pub(crate) position: i64,
    pub(crate) reading: i64,
}

/// A subscription, with what it takes to count its unread events.
pub struct ReadProgress {
    filter: Filter,
    since: Option<i64>,
    lanes: u32,
    lane_of: fn(&str, u32) -> u32,
    progress: HashMap<u32, LaneProgress>,
}

impl ReadProgress {
    /// From the row of a subscription and those of its lanes (figures_lanes.sql).
    pub fn of<R: Columns>(
        row: &R,
        lanes: &[R],
        lane_of: fn(&str, u32) -> u32,
        op: &'static str,
    ) -> Result<Self> {
        let progress = lanes.iter().map(|lane| {
            let progress =
                LaneProgress { position: lane.number("position", op)?, reading: lane.number("reading", op)? };
            Ok((lane.small("lane", op)?, progress))
        });
        Ok(Self {
            filter: filter(row, op)?,
            since: row.maybe_number("since", op)?,
            lanes: row.small("lanes", op)?,
            lane_of,
            progress: progress.collect::<Result<_>>()?,
        })
    }

    /// The position of the lane that is furthest behind; nothing if there are no lanes.
    pub fn behind(&self) -> Option<i64> {
        self.progress.values().map(|progress| progress.position).min()
    }

    /// The position of the lane that is furthest ahead.
    pub fn furthest(&self) -> i64 {
        self.progress.values().map(|progress| progress.position).max().unwrap_or(0)
    }

    /// Whether the filter lets an event through.
    pub(crate) fn wants(&self, event: &Address<'_>) -> bool {
        self.since.is_none_or(|since| event.recorded_at >= since)
            && self.filter.wants(&event.stream, &event.event_type)
    }

    /// The lane of an event.
    pub(crate) fn lane(&self, event: &Address<'_>) -> Option<LaneProgress> {
        self.progress.get(&(self.lane_of)(&event.key, self.lanes)).copied()
    }
}
