//! Runs: events whose numbers follow each other, and whose ids do, so that one row of the database stands for thousands of them.
//!
//! This module owns the way from numbers to events: which runs there are, and reading what is in them.

use postrider_core::{Result, Witness};
use postrider_sql::{Columns, statement};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::number::MOST;
use crate::sql::{Call, Sql};

/// How many runs are asked for at once.
const PAGE: i64 = 64;
/// Runs are read one after the other if they are few, or at least so long; others are read event by event.
const FEW: usize = 4;
const LONG: i64 = 50;

/// All of an event, as [`crate::row::recorded`] reads it.
pub(crate) const EVENT: &str = "e.id, e.event_id, e.stream, e.event_type, e.aggregate_type, e.aggregate_id, e.ordering_key, \
     e.sequence, e.payload, e.content_type, e.content, e.headers, e.occurred_at, e.recorded_at, e.max_attempts";
/// What it takes to tell whose an event is.
pub(crate) const ADDRESS: &str = "e.id, e.stream, e.event_type, e.recorded_at, \
     coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id)) as ordering_key";
const OF_LANE: &str =
    "and crc32(coalesce(e.ordering_key, concat(e.aggregate_type, ':', e.aggregate_id))) % ?3 = ?4";

/// A run, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The number of its last event.
    pub(crate) last: i64,
    /// The id of its last event.
    id: i64,
    /// How many numbers it has.
    pub(crate) length: i64,
    /// Whether it had its numbers after a higher id had one.
    late: bool,
    /// The whole run's last number, and the mark of the step that gave its numbers.
    witness: Witness,
}

/// An event that was read: its number, whether it is late, and its columns.
pub(crate) struct Numbered {
    pub(crate) number: i64,
    pub(crate) late: bool,
    pub(crate) row: MySqlRow,
}

impl Run {
    fn of(row: &MySqlRow, op: &'static str) -> Result<Self> {
        let column = |column: &str| row.number(column, op);
        Ok(Self {
            last: column("seq")?,
            id: column("id")?,
            length: column("length")?,
            late: row.flag("late", op)?,
            witness: Witness { number: column("seq")?, id: row.text("mark", op)?.into_owned() },
        })
    }

    /// The number before its first event.
    pub(crate) fn before(&self) -> i64 {
        self.last - self.length
    }

    /// The ids of its first and its last event.
    pub(crate) fn ids(&self) -> (i64, i64) {
        (self.first_id(), self.id)
    }

    fn first_id(&self) -> i64 {
        self.id - self.length + 1
    }

    fn number_of(&self, id: i64) -> i64 {
        self.last - (self.id - id)
    }

    /// What it has after a number and up to another.
    fn within(self, after: i64, upto: i64) -> Option<Self> {
        let (after, last) = (after.max(self.before()), upto.min(self.last));
        let id = self.id - (self.last - last);
        (after < last).then_some(Self { last, id, length: last - after, ..self })
    }
}

/// The runs of the first so many numbers after one and up to another, as they are found.
pub(crate) struct Gathered {
    pub(crate) runs: Vec<Run>,
    after: i64,
    upto: i64,
    at: i64,
    left: i64,
}

impl Gathered {
    pub(crate) fn new(after: i64, upto: i64, limit: i64) -> Self {
        Self { runs: Vec::new(), after, upto, at: after, left: limit }
    }

    /// After which number they begin, and up to which they go.
    pub(crate) fn range(&self) -> (i64, i64) {
        (self.after, self.upto)
    }

    /// How many runs are asked for next.
    pub(crate) fn page(&self) -> i64 {
        self.left.min(PAGE)
    }

    /// Takes the next page, and says whether there may be another.
    pub(crate) fn take(&mut self, rows: &[MySqlRow], op: &'static str) -> Result<bool> {
        let whole = rows.len() as i64 >= PAGE;
        for row in rows {
            let run = Run::of(row, op)?;
            self.at = run.last;
            let start = self.after.max(run.before());
            if let Some(run) = run.within(start, self.upto.min(start.saturating_add(self.left))) {
                self.left -= run.length;
                self.runs.push(run);
            }
        }
        Ok(whole && self.left > 0)
    }

    /// The rest of them.
    pub(crate) async fn finish(
        &mut self,
        sql: Sql,
        conn: &mut MySqlConnection,
        op: &'static str,
    ) -> Result<()> {
        loop {
            let look = sql.query(statement!("read_runs.sql")).bind(self.at).bind(self.upto).bind(self.page());
            if !self.take(&look.fetch_all(conn, op).await?, op)? {
                return Ok(());
            }
        }
    }

    /// What proves that these numbers are those of a log; empty if there are none.
    pub(crate) fn witness(&self) -> Option<Witness> {
        self.runs.last().map(|run| run.witness.clone())
    }

    /// How many numbers there are, and the last of them.
    pub(crate) fn reach(&self) -> (i64, i64) {
        (self.runs.iter().map(|run| run.length).sum(), self.runs.last().map_or(self.after, |run| run.last))
    }
}

/// The runs of the first `limit` numbers after one and up to another.
pub(crate) async fn after(
    sql: Sql,
    conn: &mut MySqlConnection,
    after: i64,
    upto: i64,
    limit: i64,
    op: &'static str,
) -> Result<Vec<Run>> {
    let mut gathered = Gathered::new(after, upto, limit);
    gathered.finish(sql, conn, op).await?;
    Ok(gathered.runs)
}

/// The runs of the last `limit` numbers before one and after another, the last one first.
pub(crate) async fn back(
    sql: Sql,
    conn: &mut MySqlConnection,
    before: i64,
    behind: i64,
    limit: i64,
    op: &'static str,
) -> Result<Vec<Run>> {
    let (mut runs, mut at, mut left) = (Vec::new(), before, limit);
    while left > 0 {
        let look = sql.query(statement!("read_runs_back.sql")).bind(at).bind(behind);
        let look = look.bind(at.saturating_add(MOST)).bind(PAGE);
        let rows = look.fetch_all(conn, op).await?;
        for row in &rows {
            let run = Run::of(row, op)?;
            let last = run.last.min(before - 1);
            at = run.before() + 1;
            if let Some(run) = run.within(behind.max(last.saturating_sub(left)), last) {
                left -= run.length;
                runs.push(run);
            }
        }
        if (rows.len() as i64) < PAGE {
            break;
        }
    }
    Ok(runs)
}

/// The events of some runs, of one lane or of all of them, by their numbers.
pub(crate) async fn read(
    sql: Sql,
    conn: &mut MySqlConnection,
    runs: &[Run],
    columns: &str,
    lane: Option<(u32, u32)>,
    op: &'static str,
) -> Result<Vec<Numbered>> {
    let mut events = Vec::new();
    let all = |event| {
        events.push(event);
        Ok(true)
    };
    read_each(sql, conn, runs, columns, lane, op, all).await?;
    events.sort_unstable_by_key(|event| event.number);
    Ok(events)
}

/// Gives each of these events to `take`, until it wants no more: the runs in their order, but within many short ones in any. Whether
/// it had them all: otherwise the connection must be given up.
pub(crate) async fn read_each(
    sql: Sql,
    conn: &mut MySqlConnection,
    runs: &[Run],
    columns: &str,
    lane: Option<(u32, u32)>,
    op: &'static str,
    mut take: impl FnMut(Numbered) -> Result<bool>,
) -> Result<bool> {
    let of_lane = |call: Call| match lane {
        Some((lanes, lane)) => call.with("{lane}", OF_LANE).bind(lanes).bind(lane),
        None => call.with("{lane}", ""),
    };
    let numbers: i64 = runs.iter().map(|run| run.length).sum();
    if runs.len() <= FEW || numbers >= LONG.saturating_mul(runs.len() as i64) {
        for run in runs {
            let read = sql.query(statement!("read.sql")).with("{columns}", columns);
            let read = of_lane(read.bind(run.first_id()).bind(run.id));
            let each = |row: MySqlRow| {
                let number = run.number_of(row.number(0, op)?);
                take(Numbered { number, late: run.late, row })
            };
            if !read.fetch_each(&mut *conn, op, each).await? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let ids = runs.iter().flat_map(|run| run.first_id()..=run.id);
    let read = sql.query(statement!("read_some.sql")).with("{columns}", columns);
    let read = read.bind(serde_json::Value::from_iter(ids).to_string()).bind(None::<i64>);
    let mut by_id = runs.to_vec();
    by_id.sort_unstable_by_key(|run| run.id);
    let each = |row: MySqlRow| {
        let id = row.number(0, op)?;
        match by_id.get(by_id.partition_point(|run| run.id < id)) {
            Some(run) => take(Numbered { number: run.number_of(id), late: run.late, row }),
            None => Ok(true),
        }
    };
    of_lane(read).fetch_each(conn, op, each).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let witness = Witness { number: 20, id: "0A".to_owned() };
        Run { last: 20, id: 120, length: 10, late: false, witness }
    }

    #[test]
    fn a_part_of_a_run_keeps_the_numbers_of_its_events() {
        let part = run().within(12, 15).expect("three numbers");
        assert_eq!((part.before(), part.last, part.first_id(), part.id), (12, 15, 113, 115));
        assert_eq!((part.number_of(113), run().number_of(113)), (13, 13));
        assert_eq!(run().within(0, i64::MAX), Some(run()));
    }

    #[test]
    fn outside_of_a_run_there_is_nothing() {
        assert_eq!(run().within(20, 30), None);
        assert_eq!(run().within(0, 10), None);
        assert_eq!(run().within(15, 15), None);
    }
    #[test]
    fn the_witness_of_a_part_is_the_whole_run() {
        let part = run().within(12, 15).expect("three numbers");
        let gathered = Gathered { runs: vec![part], after: 12, upto: 15, at: 15, left: 0 };
        assert_eq!(gathered.witness(), Some(Witness { number: 20, id: "0A".to_owned() }));
    }
}
