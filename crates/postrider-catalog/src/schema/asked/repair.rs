//! Makes a schema's sample readable: a type with a parser does not read the first text that comes to mind.

use serde_json::{Value, json};

use super::reached;
use super::{Asked, Unread};
use crate::schema::{REFUSED, Schema, probes};

/// The most steps.
const MOST: usize = 64;
/// The most items that a list gets in one step.
const MOST_ITEMS: usize = 2;

/// Marks what the type refuses of the sample, until it reads the rest. Whether it does.
pub(super) fn repair(schema: &mut Value, asked: Asked<'_>, is_read: bool) -> bool {
    let before = schema.clone();
    for _ in 0..MOST {
        let Err(unread) = asked(&Schema::new(schema).sample()) else { return true };
        let mended = is_read.then(|| with_missing_field(schema, asked, &unread)).flatten();
        match mended.or_else(|| with_other_value(schema, asked, &unread)) {
            Some(mended) => *schema = mended,
            None => break,
        }
    }
    // What was marked on the way led nowhere.
    *schema = before;
    false
}

/// The schema in which an optional field that the type demands is required.
fn with_missing_field(schema: &Value, asked: Asked<'_>, unread: &Unread) -> Option<Value> {
    let name = missing_field(&unread.said)?;
    let mut found = None;
    reached::places(schema, &mut String::new(), &mut |pointer, node| {
        if found.is_none() && is_optional(node, name) {
            let mut mended = schema.clone();
            require(&mut mended, pointer, name);
            let better = match asked(&Schema::new(&mended).sample()) {
                Ok(_) => true,
                Err(next) => next.said != unread.said,
            };
            found = better.then_some(mended);
        }
    });
    found
}

/// The field that an error misses.
pub(super) fn missing_field(said: &str) -> Option<&str> {
    said.strip_prefix("missing field `")?.split('`').next()
}

/// Whether an object has such a field that need not be there.
pub(super) fn is_optional(node: &Value, name: &str) -> bool {
    let required = node.get("required").and_then(Value::as_array);
    node.get("properties").is_some_and(|fields| fields.get(name).is_some())
        && !required.is_some_and(|required| required.iter().any(|field| field == name))
}

/// Makes a field required.
pub(super) fn require(schema: &mut Value, pointer: &str, name: &str) {
    if let Some(Value::Object(node)) = schema.pointer_mut(pointer)
        && let Some(required) = node.entry("required").or_insert_with(|| json!([])).as_array_mut()
    {
        required.push(json!(name));
    }
}

/// The schema in which the first value that the type refuses is one that it reads.
fn with_other_value(schema: &Value, asked: Asked<'_>, unread: &Unread) -> Option<Value> {
    let reached = reached::all(schema);
    let other = reached.iter().find_map(|(pointer, reached)| {
        let node = schema.pointer(pointer)?;
        let is_place = pointer == &reached.whole || node.get("type").is_some();
        let is_asked = is_place && node.get(REFUSED).is_none() && !is_one_of(node, &["array", "object"]);
        is_asked.then(|| with_other(schema, pointer, asked, unread)).flatten()
    });
    other.or_else(|| {
        reached.keys().find_map(|pointer| {
            let may_hold_more = is_one_of(schema.pointer(pointer)?, &["array", "object"]);
            may_hold_more.then(|| with_more(schema, pointer, asked, unread)).flatten()
        })
    })
}

fn is_one_of(node: &Value, kinds: &[&str]) -> bool {
    node.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
}

/// The same with another value at this place.
fn with_other(schema: &Value, pointer: &str, asked: Asked<'_>, unread: &Unread) -> Option<Value> {
    let before = Schema::new(schema).sample();
    let place = Schema::new(schema).at(schema.pointer(pointer)?);
    let mut refused = vec![place.sample()];
    for value in probes::values().filter(|value| place.accepts(value)) {
        let mut mended = schema.clone();
        super::set(&mut mended, pointer, REFUSED, json!(refused));
        let sample = Schema::new(&mended).sample();
        if sample == before {
            // It is no part of the sample, or has no other value.
            break;
        }
        match asked(&sample) {
            Ok(_) => return Some(mended),
            // Nearer to the end, and not because what comes after it is shorter now.
            Err(next) if next.left < unread.left && next.said != unread.said => return Some(mended),
            Err(_) => refused.push(value),
        }
    }
    None
}

/// The same with more items in a list, or with an entry in a map. An item may be refused for a reason of its own: it is mended next.
fn with_more(schema: &Value, pointer: &str, asked: Asked<'_>, unread: &Unread) -> Option<Value> {
    let mut mended = schema.clone();
    for _ in 0..MOST_ITEMS {
        let before = Schema::new(&mended).sample();
        let place = Schema::new(&mended).at(mended.pointer(pointer)?);
        let refused = place.get(REFUSED).and_then(Value::as_array).cloned().unwrap_or_default();
        let refused: Vec<Value> = refused.into_iter().chain([place.sample()]).collect();
        super::set(&mut mended, pointer, REFUSED, json!(refused));
        let sample = Schema::new(&mended).sample();
        if sample == before {
            break;
        }
        match asked(&sample) {
            Ok(_) => return Some(mended),
            Err(next) if without_place(&next.said) != without_place(&unread.said) => return Some(mended),
            Err(_) => {}
        }
    }
    None
}

/// An error without its place in the text, which moves with what stands before it.
fn without_place(said: &str) -> &str {
    said.rsplit_once(" at line ").map_or(said, |(said, _)| said)
}
