//! How far a lane has read.

use std::fmt;

/// A position in the log, opaque to all but the store that made it.
///
/// Two positions are equal if and only if reading from them returns the same events. They have no order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Position(String);

impl Position {
    /// A position in a store's own notation.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The store's own notation.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Position({})", self.0)
    }
}
