//! Values that one side writes and the other does not read.

use serde_json::{Value, json};

use super::Mismatch;
use crate::schema::sample::{integer, unlike};
use crate::schema::words::list;
use crate::schema::{Kind, Schema, Text, probes};

/// An integer that the writer's range has and none of the reader's. A rule of the writer's type may leave none.
pub(super) fn range((least, most): (i128, i128), writes: Schema<'_>, readable: &[Kind<'_>]) -> Vec<Mismatch> {
    let mut ranges = Vec::new();
    for kind in readable {
        match kind {
            Kind::Number => return Vec::new(),
            Kind::Integer { least, most } => ranges.push((*least, *most)),
            // An enum of numbers.
            Kind::Constant(Value::Number(number)) => {
                ranges.extend(number.as_i128().map(|number| (number, number)));
            }
            _ => {}
        }
    }
    let unread =
        |number: &i128| !ranges.iter().any(|(lowest, highest)| lowest <= number && number <= highest);
    let edges = ranges
        .iter()
        .flat_map(|(lowest, highest)| [highest.checked_add(1), lowest.checked_sub(1)])
        .flatten()
        .filter(|edge| (least..=most).contains(edge));
    let sample = 1.clamp(least, most);
    let has_rule = writes.refused().iter().any(|value| value.is_number());
    let known = probes::integers().filter(|number| has_rule && (least..=most).contains(number));
    let candidates = edges.chain([sample, least, most]).chain(known);
    let mut candidates =
        candidates.filter(unread).filter(|number| !has_rule || writes.writes(&integer(*number))).peekable();
    let is_asked = |number: &i128| {
        !has_rule || [least, most].contains(number) || probes::integers().any(|asked| asked == *number)
    };
    let first = candidates.peek().copied();
    let asked = candidates.find(is_asked);
    let Some(beyond) = asked.or(first) else { return Vec::new() };
    if ranges.is_empty() {
        let reason = format!("may hold an integer, but the reader takes {}", list(readable));
        return Mismatch::new(reason, integer(beyond));
    }
    let ranges: Vec<String> = ranges
        .iter()
        .map(
            |(lowest, highest)| {
                if lowest == highest { lowest.to_string() } else { format!("from {lowest} to {highest}") }
            },
        )
        .collect();
    let reason = format!("may hold {beyond}, but the reader takes integers {}", ranges.join(" or "));
    let found = Mismatch::new(reason, integer(beyond)).into_iter();
    found.map(|found| if asked.is_some() { found } else { found.unshown() }).collect()
}

/// The texts of a type with a parser. Only those that it reads are known to be written.
pub(super) fn parsed(writes: Schema<'_>, readable: &[Kind<'_>]) -> Vec<Mismatch> {
    let is_text = |kind: &Kind<'_>| matches!(kind, Kind::Text(_) | Kind::Constant(Value::String(_)));
    if readable.iter().any(|kind| matches!(kind, Kind::Text(Text::Free))) {
        return Vec::new();
    }
    let mut written = probes::texts().map(Value::from).filter(|text| writes.writes(text));
    if let Some(text) = written.find(|text| !readable.iter().any(|kind| kind.accepts(text))) {
        let reason = format!("may hold {text}, but the reader takes {}", list(readable));
        return Mismatch::new(reason, text);
    }
    let reason = format!(
        "holds strings that its type parses; the reader may not accept all of them (it expects {})",
        list(readable)
    );
    let unknown = Mismatch::new(reason, writes.sample()).into_iter().map(Mismatch::unshown);
    // No text at all is read by a reader that takes none.
    unknown.map(|wrong| Mismatch { certain: !readable.iter().any(is_text), ..wrong }).collect()
}

/// A value of a kind that none of the reader's takes.
pub(super) fn other_than(written: &Kind<'_>, writes: Schema<'_>, readable: &[Kind<'_>]) -> Value {
    let known: Vec<&str> = readable
        .iter()
        .filter_map(|kind| if let Kind::Constant(value) = kind { value.as_str() } else { None })
        .collect();
    match written {
        Kind::Text(Text::Free) if !known.is_empty() => json!(unlike(&known)),
        _ => {
            let known = std::iter::once(written.sample()).chain(probes::values());
            let mut known = known.filter(|value| written.accepts(value) && writes.writes(value));
            known.next().unwrap_or_else(|| written.sample())
        }
    }
}

/// A value that the reader's type refuses although its schema allows it, and that the writer writes.
pub(super) fn refused(writes: Schema<'_>, reads: Schema<'_>) -> Vec<Mismatch> {
    let refused = reads.refused();
    let unread = refused.into_iter().find(|value| writes.writes(value));
    let mismatch = |value: &Value| {
        Mismatch::new(format!("may hold {value}, which the reader's type refuses"), value.clone())
    };
    unread.map(mismatch).unwrap_or_default()
}
