//! The keys of maps: a schema says little about them.

use serde_json::{Value, json};

use super::reached::{self, Reached};
use super::{Asked, set};
use crate::schema::sample::FORMATS;
use crate::schema::{INTEGERS, KEYS, REFUSED, Schema, probes};

/// A key that no map has.
const KEY: &str = "\u{1}key";

/// Marks the keys of maps that are no free text.
pub(super) fn mark(schema: &mut Value, asked: Asked<'_>) {
    let mut marks = Vec::new();
    for (pointer, reached) in &reached::all(schema) {
        let keys =
            payload_with_key(schema, pointer, reached, asked).and_then(|payload| keys(&payload, asked));
        marks.extend(keys.map(|keys| (pointer.clone(), keys)));
    }
    for (pointer, keys) in marks {
        set(schema, &pointer, KEYS, keys);
    }
}

/// A payload in which a map has the key, with a value that the type reads under some key, if one is found.
fn payload_with_key(schema: &Value, pointer: &str, reached: &Reached, asked: Asked<'_>) -> Option<Value> {
    let values = map_values(schema.pointer(pointer)?)?;
    let payload = with_value(schema, pointer, reached, values.clone())?;
    if is_readable(&payload, asked) {
        return Some(payload);
    }
    let place = Schema::new(schema).at(values);
    let other = probes::values().filter(|value| place.accepts(value)).find_map(|value| {
        let payload = with_value(schema, pointer, reached, json!({ "const": value }))?;
        is_readable(&payload, asked).then_some(payload)
    });
    Some(other.unwrap_or(payload))
}

fn is_readable(payload: &Value, asked: Asked<'_>) -> bool {
    let reads = |key: &str| asked(&renamed(payload, key)).is_ok();
    probes::texts().any(&reads) || asked(payload).is_err_and(|unread| !names(&unread.said, &reads).is_empty())
}

/// A payload in which a map has the key with such a value.
fn with_value(schema: &Value, pointer: &str, reached: &Reached, value: Value) -> Option<Value> {
    let mut node = schema.pointer(pointer)?.clone();
    let object = node.as_object_mut()?;
    object.remove("patternProperties");
    object.remove("additionalProperties");
    object.entry("properties").or_insert_with(|| json!({})).as_object_mut()?.insert(KEY.into(), value);
    object.entry("required").or_insert_with(|| json!([])).as_array_mut()?.push(KEY.into());
    let found = reached.kinds(schema, pointer, node).into_iter().find(|value| value.get(KEY).is_some())?;
    Some(reached.with(&found))
}

/// The schema of a map's values.
fn map_values(node: &Value) -> Option<&Value> {
    let patterns = node.get("patternProperties").and_then(Value::as_object);
    let by_pattern = patterns.and_then(|patterns| patterns.values().next());
    by_pattern.or_else(|| node.get("additionalProperties").filter(|values| *values != &json!(false)))
}

/// The keys that a map reads; nothing if they are free text.
fn keys(payload: &Value, asked: Asked<'_>) -> Option<Value> {
    let reads = |key: &str| asked(&renamed(payload, key)).is_ok();
    if probes::ANY.iter().all(|text| reads(text)) {
        return None;
    }
    if let Some(format) = integers(&reads) {
        return Some(json!({ "type": "integer", "format": format }));
    }
    if reads("c") && reads("é") && !reads("text") {
        return Some(json!({ "type": "string", "minLength": 1, "maxLength": 1 }));
    }
    let read: Vec<&str> = FORMATS.iter().filter(|(_, key)| reads(key)).map(|(format, _)| *format).collect();
    let format = match read.as_slice() {
        // Both kinds of address are read.
        ["ip", "ipv4", "ipv6"] => Some("ip"),
        ["ip", "ipv4"] => Some("ipv4"),
        [only] => Some(*only),
        _ => None,
    };
    if let Some(format) = format {
        return Some(json!({ "type": "string", "format": format }));
    }
    let names = names(&asked(payload).err()?.said, &reads);
    if !names.is_empty() {
        return Some(json!({ "type": "string", "enum": names }));
    }
    let refused: Vec<&str> = probes::texts().filter(|text| !reads(text)).collect();
    Some(json!({ "type": "string", REFUSED: refused }))
}

fn integers(reads: &impl Fn(&str) -> bool) -> Option<&'static str> {
    let found = INTEGERS.iter().find(|(_, least, most)| {
        // The last is what stands for all that only a `u128` has.
        let beyond = [least.checked_sub(1), most.checked_add(1).filter(|beyond| *beyond != i128::MAX)];
        reads(&least.to_string())
            && reads(&most.to_string())
            && !beyond.into_iter().flatten().any(|key| reads(&key.to_string()))
    });
    found.map(|(format, ..)| *format)
}

/// The names that an error says it expects, as that of an enum does, if they are read.
fn names(said: &str, reads: &impl Fn(&str) -> bool) -> Vec<String> {
    let Some((_, expected)) = said.rsplit_once(", expected ") else { return Vec::new() };
    let quoted = expected.split('`').skip(1).step_by(2);
    quoted.filter(|name| reads(name)).map(str::to_owned).collect()
}

/// A payload with the key that no map has called otherwise.
fn renamed(payload: &Value, key: &str) -> Value {
    let name = |name: &String| if name == KEY { key.to_owned() } else { name.clone() };
    match payload {
        Value::Array(items) => items.iter().map(|item| renamed(item, key)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(field, value)| (name(field), renamed(value, key))).collect()
        }
        other => other.clone(),
    }
}
