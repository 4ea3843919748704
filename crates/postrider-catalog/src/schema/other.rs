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
    // The same schema in which the enum allows one variant only: an unknown one. What stands beside the enum stays.
    let mut narrowed = schema.clone();
    let node = narrowed.pointer_mut(pointer)?.as_object_mut()?;
    let known: Vec<&str>;
    let tag = match node.get("enum").and_then(Value::as_array) {
        Some(values) => {
            known = values.iter().filter_map(Value::as_str).collect();
            if known.len() < values.len() {
                return None;
            }
            None
        }
        None => {
            let parts = node.get("oneOf").and_then(Value::as_array)?;
            let variants: Vec<_> = parts
                .iter()
                .filter_map(|part| part.as_object().map(|node| Object::of(Schema::new(part), node)))
                .filter_map(|object| object.variant())
                .collect();
            known = variants.iter().map(|variant| variant.name).collect();
            Some(variants.first()?.tag?.to_owned())
        }
    };
    let unknown = json!(unlike(&known));
    match &tag {
        None => node.insert("enum".to_owned(), json!([unknown])),
        Some(tag) => {
            let variant =
                json!({ "type": "object", "properties": { tag: { "const": unknown } }, "required": [tag] });
            node.insert("oneOf".to_owned(), json!([variant]))
        }
    };
    let payloads = Schema::new(&narrowed).variety();
    payloads.into_iter().find(|payload| holds(payload, tag.as_deref(), &unknown))
}

/// Whether the unknown variant is somewhere in a value: as such, or in its tag.
fn holds(value: &Value, tag: Option<&str>, unknown: &Value) -> bool {
    match (value, tag) {
        (Value::Object(fields), Some(tag)) if fields.get(tag) == Some(unknown) => true,
        (Value::Array(items), _) => items.iter().any(|item| holds(item, tag, unknown)),
        (Value::Object(fields), _) => fields.values().any(|field| holds(field, tag, unknown)),
        (value, None) => value == unknown,
        _ => false,
    }
}
