//! The objects that refuse unknown fields although their schema does not say so: a flattened map of names, an alternative of an enum.

use serde_json::{Value, json};

use super::reached::{self, Reached};
use super::{Asked, set};

/// A field that no object has.
const FIELD: &str = "\u{1}unknown";

/// Denies unknown fields where the type refuses them, whatever they hold.
pub(super) fn mark(schema: &mut Value, asked: Asked<'_>) {
    let reached = reached::all(schema);
    let denied: Vec<String> = reached
        .iter()
        .filter(|(pointer, reached)| refuses(schema, pointer, reached, asked))
        .map(|(pointer, _)| pointer.clone())
        .collect();
    for pointer in denied {
        set(schema, &pointer, "additionalProperties", json!(false));
    }
}

fn refuses(schema: &Value, pointer: &str, reached: &Reached, asked: Asked<'_>) -> bool {
    let Some(node) = schema.pointer(pointer).filter(|node| ignores(node)) else { return false };
    let (mut read, mut refused) = (false, true);
    for value in objects(schema, pointer, reached, node) {
        let Value::Object(mut fields) = value else { continue };
        fields.remove(FIELD);
        if asked(&reached.with(&Value::Object(fields.clone()))).is_err() {
            continue;
        }
        read = true;
        for odd in [json!([0]), json!(null), json!(1), json!("text")] {
            fields.insert(FIELD.to_owned(), odd);
            refused &= asked(&reached.with(&Value::Object(fields.clone()))).is_err();
        }
    }
    read && refused
}

/// Whether it is an object that ignores unknown fields by its schema.
fn ignores(node: &Value) -> bool {
    let has = |keyword: &str| node.get(keyword).is_some();
    let is_object = node.get("type").is_some_and(|kind| kind == "object") || has("properties");
    is_object && !["additionalProperties", "patternProperties", "unevaluatedProperties"].into_iter().any(has)
}

/// The objects of this place that this part of its schema tells of: those with a field that it alone has.
fn objects(schema: &Value, pointer: &str, reached: &Reached, node: &Value) -> Vec<Value> {
    let mut node = node.clone();
    let Some(object) = node.as_object_mut() else { return Vec::new() };
    if let Some(fields) = object.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
        fields.insert(FIELD.to_owned(), json!(true));
    }
    if let Some(required) = object.entry("required").or_insert_with(|| json!([])).as_array_mut() {
        required.push(json!(FIELD));
    }
    let mut values = reached.kinds(schema, pointer, node);
    values.retain(|value| value.get(FIELD).is_some());
    values
}
