//! What JSON Schema can't express, so the type itself is asked: it gets a payload to read, and the answer is marked in the schema.

use serde_json::{Value, json};

use super::sample::{FORMATS, unlike};
use super::{INTEGERS, KEYS, OTHER, Object, Schema, ZERO};

/// The most places that are asked about: a payload has few of them.
const MOST: usize = 200;
/// A key that no map has.
const KEY: &str = "\u{1}key";

/// Marks what a type reads: enums with a variant for all unknown ones (`serde(other)`), and what [`mark_values`] marks.
pub(crate) fn mark(schema: &mut Value, reads: impl Fn(&Value) -> bool) {
    if mark_values(schema, &reads) {
        ask(
            schema,
            &reads,
            |node| is_enum(node).then_some(()),
            |(), schema, pointer, reads| {
                reads(&unknown_variant(schema, pointer)?).then_some((OTHER, json!(true)))
            },
        );
    }
}

/// Marks the keys of maps that are no free text, and integers whose minimum is a rule: on both sides of a type. Whether it could be
/// asked: a type whose sample is not readable, such as one with rules of its own, tells nothing.
pub(crate) fn mark_values(schema: &mut Value, reads: &impl Fn(&Value) -> bool) -> bool {
    if !reads(&Schema::new(schema).sample()) {
        return false;
    }
    ask(
        schema,
        reads,
        |node| may_be_nonzero(node).then_some(()),
        |(), schema, pointer, reads| {
            let zero = payload_with(schema, pointer, &json!({ "const": 0 }), &|value| value == &json!(0))?;
            reads(&zero).then_some((ZERO, json!(true)))
        },
    );
    ask(schema, reads, map_values, |values, schema, pointer, reads| {
        Some((KEYS, keys(schema, pointer, &values, reads)?))
    });
    true
}

/// Asks about each place that `about` tells something of.
fn ask<T, R: Fn(&Value) -> bool>(
    schema: &mut Value,
    reads: &R,
    about: impl Fn(&Value) -> Option<T>,
    question: impl Fn(T, &Value, &str, &R) -> Option<(&'static str, Value)>,
) {
    let mut found = Vec::new();
    places(schema, &mut String::new(), &mut |pointer, node| {
        found.extend(about(node).map(|what| (pointer.to_owned(), what)));
    });
    for (pointer, what) in found.into_iter().take(MOST) {
        if let Some((mark, value)) = question(what, schema, &pointer, reads)
            && let Some(Value::Object(node)) = schema.pointer_mut(&pointer)
        {
            node.insert(mark.to_owned(), value);
        }
    }
}

/// All places of a schema, as JSON pointers.
fn places(node: &Value, at: &mut String, found: &mut impl FnMut(&str, &Value)) {
    let mut below = |child: &Value, step: &str| {
        let length = at.len();
        at.push('/');
        at.push_str(step);
        places(child, at, found);
        at.truncate(length);
    };
    match node {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| below(item, &index.to_string()));
        }
        Value::Object(fields) => {
            for (name, child) in fields {
                if !matches!(name.as_str(), "enum" | "const" | "default" | "examples" | "required") {
                    below(child, &name.replace('~', "~0").replace('/', "~1"));
                }
            }
            found(at, node);
        }
        _ => {}
    }
}

fn is_enum(node: &Value) -> bool {
    let parts = node.get("oneOf").and_then(Value::as_array);
    node.get("enum").is_some_and(Value::is_array) || parts.is_some_and(|parts| parts.iter().any(is_variant))
}

fn is_variant(part: &Value) -> bool {
    let object = part.as_object().map(|node| Object::of(Schema::new(part), node));
    object.and_then(|object| object.variant()).is_some_and(|variant| variant.tag.is_some())
}

/// Whether an integer is a `NonZero`, or has a rule that says the same.
fn may_be_nonzero(node: &Value) -> bool {
    let unsigned =
        node.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint"));
    unsigned && node.get("minimum").and_then(Value::as_u64) == Some(1)
}

/// The schema of a map's values.
fn map_values(node: &Value) -> Option<Value> {
    let patterns = node.get("patternProperties").and_then(Value::as_object);
    let by_pattern = patterns.and_then(|patterns| patterns.values().next());
    by_pattern.or_else(|| node.get("additionalProperties").filter(|values| *values != &json!(false))).cloned()
}

/// The keys that a map reads; nothing if they are free text, or not known.
fn keys(schema: &Value, pointer: &str, values: &Value, reads: &impl Fn(&Value) -> bool) -> Option<Value> {
    let mut node = schema.pointer(pointer)?.clone();
    let object = node.as_object_mut()?;
    object.remove("patternProperties");
    object.remove("additionalProperties");
    object
        .entry("properties")
        .or_insert_with(|| json!({}))
        .as_object_mut()?
        .insert(KEY.into(), values.clone());
    object.entry("required").or_insert_with(|| json!([])).as_array_mut()?.push(KEY.into());
    let payload = payload_with(schema, pointer, &node, &|value| value.get(KEY).is_some())?;
    let reads_key = |key: &str| reads(&renamed(&payload, key));
    if reads_key("key") {
        return None;
    }
    let integer = INTEGERS.iter().find(|(_, least, most)| {
        let beyond = [least.checked_sub(1), most.checked_add(1)];
        reads_key(&least.to_string())
            && reads_key(&most.to_string())
            && !beyond.into_iter().flatten().any(|key| reads_key(&key.to_string()))
    });
    if let Some((format, ..)) = integer {
        return Some(json!({ "type": "integer", "format": format }));
    }
    if reads_key("c") {
        return Some(json!({ "type": "string", "minLength": 1, "maxLength": 1 }));
    }
    let read: Vec<&str> =
        FORMATS.iter().filter(|(_, key)| reads_key(key)).map(|(format, _)| *format).collect();
    let format = match read.as_slice() {
        // Both kinds of address are read.
        ["ip", "ipv4", "ipv6"] => "ip",
        ["ip", "ipv4"] => "ipv4",
        [only] => only,
        _ => return None,
    };
    Some(json!({ "type": "string", "format": format }))
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

/// A payload with an unknown variant at a place of the schema. What stands beside the enum stays.
fn unknown_variant(schema: &Value, pointer: &str) -> Option<Value> {
    let mut node = schema.pointer(pointer)?.clone();
    let object = node.as_object_mut()?;
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        let known: Vec<&str> = values.iter().map(Value::as_str).collect::<Option<_>>()?;
        let unknown = json!(unlike(&known));
        object.insert("enum".to_owned(), json!([unknown]));
        return payload_with(schema, pointer, &node, &|value| value == &unknown);
    }
    let parts = object.get("oneOf").and_then(Value::as_array)?;
    let variants: Vec<_> = parts
        .iter()
        .filter_map(|part| part.as_object().map(|node| Object::of(Schema::new(part), node)))
        .filter_map(|object| object.variant())
        .collect();
    let tag = variants.first()?.tag?.to_owned();
    let known: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
    let unknown = json!(unlike(&known));
    let variant =
        json!({ "type": "object", "properties": { &tag: { "const": unknown } }, "required": [tag] });
    object.insert("oneOf".to_owned(), json!([variant]));
    payload_with(schema, pointer, &node, &|value| value.get(&tag) == Some(&unknown))
}

/// A payload of the schema in which a place has another one, if a payload can be made that reaches it.
fn payload_with(
    schema: &Value,
    pointer: &str,
    node: &Value,
    is_there: &dyn Fn(&Value) -> bool,
) -> Option<Value> {
    let mut narrowed = schema.clone();
    *narrowed.pointer_mut(pointer)? = node.clone();
    Schema::new(&narrowed).variety().into_iter().find(|payload| holds(payload, is_there))
}

fn holds(value: &Value, is_there: &dyn Fn(&Value) -> bool) -> bool {
    is_there(value)
        || match value {
            Value::Array(items) => items.iter().any(|item| holds(item, is_there)),
            Value::Object(fields) => fields.values().any(|field| holds(field, is_there)),
            _ => false,
        }
}
