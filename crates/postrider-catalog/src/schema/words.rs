//! Kinds of values in words.

use super::{Array, Kind, Text};

/// A kind in words.
pub(crate) fn named(kind: &Kind<'_>) -> String {
    match kind {
        Kind::Any => "any value".into(),
        Kind::Null => "null".into(),
        Kind::Bool => "a boolean".into(),
        Kind::Integer { .. } => "an integer".into(),
        Kind::Number => "a number".into(),
        Kind::Text(Text::Free) => "a string".into(),
        Kind::Text(Text::OneCharacter) => "a single character".into(),
        Kind::Text(Text::Format(format)) => format!("a {format} string"),
        Kind::Constant(value) => value.to_string(),
        Kind::Array(Array { length: Some(length), .. }) => format!("an array of {length}"),
        Kind::Array(_) => "an array".into(),
        Kind::Object(_) | Kind::OtherVariant { .. } => "an object".into(),
    }
}

/// The kinds in words.
pub(crate) fn list(kinds: &[Kind<'_>]) -> String {
    let mut words: Vec<String> = kinds.iter().map(named).collect();
    words.dedup();
    match words.pop() {
        None => "nothing".into(),
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} or {last}", words.join(", ")),
    }
}
