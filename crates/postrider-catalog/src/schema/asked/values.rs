//! Strings, integers and arrays: rules that look like types, and types that have rules of their own.

use serde_json::{Map, Value, json};

use super::reached::{self, Reached};
use super::{Asked, set};
use crate::schema::sample::integer;
use crate::schema::{ANY_LENGTH, ANY_TEXT, AT_MOST, REFUSED, Schema, Text, ZERO, integers, probes, text};

/// The longest list that is tried.
const LONGEST: usize = 10_000;

/// Marks what a schema does not tell about them.
pub(super) fn mark(schema: &mut Value, asked: Asked<'_>, is_read: bool) {
    let mut marks = Vec::new();
    for (pointer, reached) in &reached::all(schema) {
        let Some(Value::Object(node)) = schema.pointer(pointer) else { continue };
        if node.contains_key("const") || node.contains_key("enum") {
            continue;
        }
        let reads = |value: &Value| asked(&reached.with(value)).is_ok();
        let mark = match () {
            () if is_of(node, "string") => {
                let writes = |text: &Value| writes(asked, reached, text);
                if is_read || text(node) != Text::Free {
                    text_mark(node, &reads)
                } else {
                    text_mark(node, &writes)
                }
            }
            () if is_of(node, "integer") => integer_mark(node, &reads),
            () if is_of(node, "number") => number_mark(&reads),
            () if is_of(node, "array") => length_mark(schema, pointer, reached, asked),
            () => None,
        };
        marks.extend(mark.map(|(keyword, value)| (pointer.clone(), keyword, value)));
    }
    for (pointer, keyword, value) in marks {
        set(schema, &pointer, keyword, value);
    }
}

/// Whether the type writes a text as it reads it. One that it reads and writes otherwise is none that it writes.
fn writes(asked: Asked<'_>, reached: &Reached, text: &Value) -> bool {
    match asked(&reached.with(text)) {
        Ok(Some(written)) => reached.value_in(&written).is_none_or(|same| same == text),
        Ok(None) => true,
        Err(_) => false,
    }
}

fn is_of(node: &Map<String, Value>, kind: &str) -> bool {
    match node.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|name| name == kind),
        Some(name) => name == kind,
        None => false,
    }
}

type Mark = Option<(&'static str, Value)>;

fn text_mark(node: &Map<String, Value>, reads: &impl Fn(&Value) -> bool) -> Mark {
    let known = text(node);
    if probes::ANY.iter().all(|text| reads(&json!(text))) {
        return (known != Text::Free).then_some((ANY_TEXT, json!(true)));
    }
    if known != Text::Free && reads(&crate::schema::Kind::Text(known).sample()) {
        return None;
    }
    let refused: Vec<Value> = probes::texts()
        .filter(|text| known.accepts(text))
        .map(Value::from)
        .filter(|text| !reads(text))
        .collect();
    (!refused.is_empty()).then_some((REFUSED, json!(refused)))
}

fn integer_mark(node: &Map<String, Value>, reads: &impl Fn(&Value) -> bool) -> Mark {
    let ranges = integers(node);
    let from_one = ranges.first().is_some_and(|(least, _)| *least == 1);
    if from_one && reads(&json!(0)) {
        return Some((ZERO, json!(true)));
    }
    let mut tried: Vec<Value> = Vec::new();
    for (least, most) in ranges {
        let near = [1, 0, -1, 2, 10, 100].into_iter().filter(|number| (least..=most).contains(number));
        // Without the format of a type it is not known how far it goes.
        let ends = [least, most].into_iter().filter(|end| ![i128::MIN, i128::MAX].contains(end));
        tried.extend(near.chain(ends).map(integer));
    }
    let refused: Vec<Value> = tried.into_iter().filter(|number| !reads(number)).collect();
    (!refused.is_empty()).then_some((REFUSED, json!(refused)))
}

fn number_mark(reads: &impl Fn(&Value) -> bool) -> Mark {
    let refused: Vec<Value> = probes::numbers().filter(|number| !reads(number)).collect();
    (!refused.is_empty()).then_some((REFUSED, json!(refused)))
}

/// Whether a list with a greatest length may have one more: then its length is only a rule.
fn length_mark(schema: &Value, pointer: &str, reached: &Reached, asked: Asked<'_>) -> Mark {
    let node = schema.pointer(pointer)?;
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_u64);
    let most = usize::try_from(bound("maxItems")?).ok().filter(|most| *most < LONGEST)?;
    if node.get("prefixItems").is_some() {
        return None;
    }
    let item = node.get("items").map_or(json!(1), |items| Schema::new(schema).at(items).sample());
    let reads = |length: usize| asked(&reached.with(&json!(vec![item.clone(); length]))).is_ok();
    let is_fixed = bound("minItems").unwrap_or(0) == bound("maxItems")?;
    match (is_fixed, reads(most + 1)) {
        (true, true) => Some((ANY_LENGTH, json!(true))),
        (false, false) if reads(most) => Some((AT_MOST, json!(true))),
        _ => None,
    }
}
