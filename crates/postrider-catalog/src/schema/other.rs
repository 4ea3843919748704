//! Enums that read unknown variants (`serde(other)`): JSON Schema can't express it, so the type itself is asked.

use serde_json::{Value, json};

use super::sample::unlike;
use super::{OTHER, Object, Schema};

/// The most places that are asked about: a payload has few enums.
const MOST: usize = 200;

/// Marks each enum whose type reads a variant that it does not name.
pub(crate) fn mark(schema: &mut Value, reads: impl Fn(&Value) -> bool) {
    // A type whose sample is not readable, such as one with rules of its own, tells nothing.
    if !reads(&Schema::new(schema).sample()) {
        return;
    }
    let mut pointers = Vec::new();
    enums(schema, &mut String::new(), &mut pointers);
    for pointer in pointers.into_iter().take(MOST) {
        let Some(probe) = probe(schema, &pointer) else { continue };
        if reads(&probe)
            && let Some(Value::Object(node)) = schema.pointer_mut(&pointer)
        {
            node.insert(OTHER.to_owned(), json!(true));
        }
    }
}

/// The places of enums, as JSON pointers.
fn enums(node: &Value, at: &mut String, found: &mut Vec<String>) {
    let Value::Object(fields) = node else {
        if let Value::Array(items) = node {
            for (index, item) in items.iter().enumerate() {
                below(item, &index.to_string(), at, found);
            }
        }
        return;
    };
    let tagged =
        || fields.get("oneOf").and_then(Value::as_array).is_some_and(|parts| parts.iter().any(is_variant));
    if fields.get("enum").is_some() || tagged() {
        found.push(at.clone());
    }
    for (name, child) in fields {
        if !matches!(name.as_str(), "enum" | "const" | "default" | "examples" | "required") {
            below(child, &name.replace('~', "~0").replace('/', "~1"), at, found);
        }
    }
}

fn below(child: &Value, step: &str, at: &mut String, found: &mut Vec<String>) {
    let length = at.len();
    at.push('/');
    at.push_str(step);
    enums(child, at, found);
    at.truncate(length);
}

fn is_variant(part: &Value) -> bool {
    let object = part.as_object().map(|node| Object::of(Schema::new(part), node));
    object.and_then(|object| object.variant()).is_some_and(|variant| variant.tag.is_some())
}

/// A payload with an unknown variant at a place of the schema, if a payload can be made that reaches it.
fn probe(schema: &Value, pointer: &str) -> Option<Value> {
    // The same schema in which the enum allows one value only: an unknown one.
    let mut narrowed = schema.clone();
    let node = narrowed.pointer_mut(pointer)?;
    let unknown = match node.get("enum").and_then(Value::as_array) {
        Some(values) => {
            let known: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            (known.len() == values.len()).then(|| json!({ "const": unlike(&known) }))?
        }
        None => {
            let parts = node.get("oneOf").and_then(Value::as_array)?;
            let variants: Vec<_> = parts
                .iter()
                .filter_map(|part| part.as_object().map(|node| Object::of(Schema::new(part), node)))
                .filter_map(|object| object.variant())
                .collect();
            let tag = variants.first()?.tag?;
            let known: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
            json!({ "const": { tag: unlike(&known) } })
        }
    };
    let expected = unknown.get("const")?.clone();
    *node = unknown;
    let payloads = Schema::new(&narrowed).variety();
    payloads.into_iter().find(|payload| holds(payload, &expected))
}

fn holds(value: &Value, wanted: &Value) -> bool {
    value == wanted
        || match value {
            Value::Array(items) => items.iter().any(|item| holds(item, wanted)),
            Value::Object(fields) => fields.values().any(|field| holds(field, wanted)),
            _ => false,
        }
}
