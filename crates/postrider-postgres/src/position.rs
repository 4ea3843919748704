//! The snapshot position: how far a lane has read, and what it still owes.

use std::fmt;

use postrider_core::{Error, ErrorKind, Position, Result};

/// A list of transactions as `pg_snapshot` prints it: `xmin:xmax:xip,xip,…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    xmin: u64,
    xmax: u64,
    xip: Vec<u64>,
}

impl Snapshot {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let xmin = parts.next()?.parse().ok()?;
        let xmax = parts.next()?.parse().ok()?;
        let list = parts.next()?;
        let xip =
            list.split(',').filter(|part| !part.is_empty()).map(str::parse).collect::<Result<_, _>>().ok()?;
        parts.next().is_none().then_some(Self { xmin, xmax, xip })
    }

    /// The transactions below `bound` that this snapshot does not show: those it lists as running, and those
    /// that began at or after its xmax. As text, for `xid8[]`.
    pub(crate) fn in_flight(&self, bound: u64) -> Vec<String> {
        self.xip.iter().copied().chain(self.xmax..bound).map(|xid| xid.to_string()).collect()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        for (n, xid) in self.xip.iter().enumerate() {
            write!(f, "{}{xid}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Everything with an id up to `frontier` that `snapshot` shows has been read. What it does not show and
/// began before `bound` may still appear there, late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The cluster whose transaction ids these are.
    pub(crate) system: i64,
    pub(crate) frontier: i64,
    pub(crate) snapshot: Snapshot,
    pub(crate) bound: u64,
    /// Where it is within late rows that are too many for one read.
    pub(crate) part: Option<Part>,
}

/// Of the late rows that `snapshot` shows, those up to id `after` have been read. When all are, the position
/// moves to that snapshot and its bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) after: i64,
    /// The cluster whose snapshot it is: a dump may have come in between.
    pub(crate) system: i64,
    pub(crate) snapshot: Snapshot,
    pub(crate) bound: u64,
}

impl LogPosition {
    pub(crate) fn parse(position: &Position) -> Result<Self> {
        Self::from_text(position.as_str()).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                "read",
                format!("{:?} is not a position of this store", position.as_str()),
            )
        })
    }

    fn from_text(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split('/').collect();
        let (head, part) = match fields.as_slice() {
            [_, _, _, _] => (&fields[..], None),
            [_, _, _, _, after, system, snapshot, bound] => {
                let part = Part {
                    after: after.parse().ok()?,
                    system: system.parse().ok()?,
                    snapshot: Snapshot::parse(snapshot)?,
                    bound: bound.parse().ok()?,
                };
                (&fields[..4], Some(part))
            }
            _ => return None,
        };
        Some(Self {
            system: head[0].parse().ok()?,
            frontier: head[1].parse().ok()?,
            snapshot: Snapshot::parse(head[2])?,
            bound: head[3].parse().ok()?,
            part,
        })
    }

    /// The transactions whose events may still appear at or below the frontier.
    pub(crate) fn in_flight(&self) -> Vec<String> {
        self.snapshot.in_flight(self.bound)
    }

    /// The same position, with the late rows of `snapshot` read up to `after`.
    pub(crate) fn within(&self, after: i64, system: i64, snapshot: Snapshot, bound: u64) -> Self {
        Self { part: Some(Part { after, system, snapshot, bound }), ..self.clone() }
    }
}

impl From<&LogPosition> for Position {
    fn from(position: &LogPosition) -> Self {
        let LogPosition { system, frontier, snapshot, bound, part } = position;
        Self::new(match part {
            None => format!("{system}/{frontier}/{snapshot}/{bound}"),
            Some(part) => {
                let Part { after, system: seen_in, snapshot: seen, bound: until } = part;
                format!("{system}/{frontier}/{snapshot}/{bound}/{after}/{seen_in}/{seen}/{until}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_as_it_was_written() {
        for text in ["7/12/5:9:5,7/11", "-7/0/3:3:/3", "7/12/5:9:/11/4/8/9:12:10/13"] {
            let position = LogPosition::parse(&Position::new(text)).expect("a position");
            assert_eq!(Position::from(&position).as_str(), text);
        }
    }

    #[test]
    fn what_is_not_a_position_is_refused() {
        for text in ["", "1", "1/2/3/4", "1/2/3:4:/x", "1/2/3:4:5:6/7", "1/2/3:4:/5/6"] {
            assert!(LogPosition::parse(&Position::new(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn in_flight_are_the_listed_ones_and_those_between_xmax_and_the_bound() {
        let position = LogPosition::parse(&Position::new("7/12/5:9:5,7/11")).expect("a position");
        assert_eq!(position.in_flight(), ["5", "7", "9", "10"]);
    }
}
