//! Times as people write them: `5m`, `1h30m`, `500ms`; the grammar is the library's.

use std::time::Duration;

pub(crate) use postrider::duration::show;

/// Reads a time; nothing if it is none.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    postrider::duration::parse(text).ok()
}
