//! A position in a log whose events are numbered in the order of their commits: the last number that was passed.

use postrider_core::{Error, ErrorKind, Position, Result};

/// The position behind an event.
pub fn position(number: i64) -> Position {
    Position::new(number.to_string())
}

/// The number that a position stands for.
pub fn number_of(position: &Position, op: &'static str) -> Result<i64> {
    position.as_str().parse().map_err(|_| {
        let message = format!("{:?} is not a position of this store", position.as_str());
        Error::new(ErrorKind::Invalid, op, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_of_another_store_is_refused() {
        assert_eq!(number_of(&position(42), "read").expect("ours"), 42);
        assert!(number_of(&Position::new("7/10:20:"), "read").is_err());
    }
}
