//! A position of this store: how many events it has passed, in the order of their commits.

use postrider_core::{Error, ErrorKind, Position, Result};

/// A place in the log. An event gets its id when it is recorded and its place when it is committed, so nothing can ever
/// appear before a place that was passed. Two places are the same if their numbers are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// The number of the last event that was passed, by commits.
    pub(crate) number: i64,
    /// The highest id among those passed: what lies below it and comes later is late.
    pub(crate) frontier: i64,
}

impl Place {
    /// As everybody else is given it.
    pub(crate) fn position(self) -> Position {
        Position::new(format!("{}/{}", self.number, self.frontier))
    }

    /// The place that a position stands for.
    pub(crate) fn of(position: &Position, op: &'static str) -> Result<Self> {
        let parts = position.as_str().split_once('/');
        let place = parts.and_then(|(number, frontier)| {
            Some(Self { number: number.parse().ok()?, frontier: frontier.parse().ok()? })
        });
        place.ok_or_else(|| {
            let message = format!("{:?} is not a position of this store", position.as_str());
            Error::new(ErrorKind::Invalid, op, message)
        })
    }

    /// The place behind one more event.
    pub(crate) fn passing(self, number: i64, id: i64) -> Self {
        Self { number, frontier: self.frontier.max(id) }
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Place {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_of_another_store_is_refused() {
        let place = Place { number: 42, frontier: 57 };
        assert_eq!(Place::of(&place.position(), "read").expect("ours"), place);
        assert!(Place::of(&Position::new("42"), "read").is_err());
        assert!(Place::of(&Position::new("7/10:20:"), "read").is_err());
    }
}
