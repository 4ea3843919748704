//! Makes a schema's sample readable: a type with a parser does not read the first text that comes to mind.

use serde_json::{Value, json};

use super::reached::{self, Reached};
use super::{Asked, Unread};
use crate::schema::{REFUSED, Schema, probes};

/// The most steps.
const MOST: usize = 64;

/// Marks what the type refuses of the sample, until it reads the rest. Whether it does.
pub(super) fn repair(schema: &mut Value, asked: Asked<'_>, is_read: bool) -> bool {
    for _ in 0..MOST {
        let Err(unread) = asked(&Schema::new(schema).sample()) else { return true };
        let mended = is_read.then(|| with_missing_field(schema, asked, &unread)).flatten();
        match mended.or_else(|| with_other_value(schema, asked, &unread)) {
            Some(mended) => *schema = mended,
            None => return false,
        }
    }
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
    let before = Schema::new(schema).sample();
    for (pointer, Reached { whole, .. }) in &reached::all(schema) {
        let node = schema.pointer(pointer)?;
        if pointer != whole && node.get("type").is_none() || node.get(REFUSED).is_some() {
            continue;
        }
        let place = Schema::new(schema).at(node);
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
                Err(next) if next.left < unread.left && next.column != unread.column => return Some(mended),
                Err(_) => refused.push(value),
            }
        }
    }
    None
}
