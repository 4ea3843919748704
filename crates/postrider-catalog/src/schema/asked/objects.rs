//! The fields of objects: which must be there, and which are written as null.

use serde_json::{Value, json};

use super::reached::{self, step};
use super::repair::{is_optional, missing_field, require};
use super::{Asked, set};
use crate::schema::{Kind, LOST, NULL, Schema};

/// Makes the fields required that the type demands, and those optional that it does not.
pub(super) fn mark_required(schema: &mut Value, asked: Asked<'_>) {
    let mut objects = Vec::new();
    reached::places(schema, &mut String::new(), &mut |pointer, node| {
        if node.get("properties").is_some_and(Value::is_object) {
            objects.push(pointer.to_owned());
        }
    });
    for pointer in objects {
        while let Some(name) = demanded(schema, &pointer, asked) {
            require(schema, &pointer, &name);
        }
        for name in forgone(schema, &pointer, asked) {
            let required = schema.pointer_mut(&format!("{pointer}/required"));
            if let Some(required) = required.and_then(Value::as_array_mut) {
                required.retain(|field| *field != name);
            }
        }
    }
}

/// An optional field that the type demands: with it absent, the error misses it.
fn demanded(schema: &Value, pointer: &str, asked: Asked<'_>) -> Option<String> {
    let node = schema.pointer(pointer)?;
    let fields = node.get("properties")?.as_object()?;
    let optional = fields.keys().find(|name| is_optional(node, name))?;
    let reached = reached::all(schema);
    let absent = reached.get(&format!("{pointer}/properties/{}", step(optional)))?.without_it();
    let said = asked(&absent).err()?.said;
    missing_field(&said).filter(|name| is_optional(node, name)).map(str::to_owned)
}

/// The required fields that the type reads as null if they are absent.
fn forgone(schema: &Value, pointer: &str, asked: Asked<'_>) -> Vec<String> {
    let Some(node) = schema.pointer(pointer) else { return Vec::new() };
    let Some(required) = node.get("required").and_then(Value::as_array) else { return Vec::new() };
    let may_be_null = |name: &&str| {
        let field = node.get("properties").and_then(|fields| fields.get(*name));
        field.is_some_and(|field| {
            let kinds = Schema::new(schema).at(field).kinds();
            kinds.iter().any(|kind| matches!(kind, Kind::Null))
        })
    };
    let names: Vec<&str> = required.iter().filter_map(Value::as_str).filter(may_be_null).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let reached = reached::all(schema);
    let is_forgone = |name: &&str| {
        let place = reached.get(&format!("{pointer}/properties/{}", step(name)));
        place.is_some_and(|place| asked(&place.without_it()).is_ok())
    };
    names.into_iter().filter(is_forgone).map(str::to_owned).collect()
}

/// Marks the fields whose value is read as absent if it does not fit: the type reads what its schema refuses.
pub(super) fn mark_lost(schema: &mut Value, asked: Asked<'_>) {
    let mut marks = Vec::new();
    let reached = reached::all(schema);
    let odd = [json!({ "\u{1}odd": ["\u{1}odd"] }), json!([["\u{1}odd"]]), json!("\u{1}odd")];
    reached::places(schema, &mut String::new(), &mut |pointer, node| {
        for (name, field) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let place = Schema::new(schema).at(field);
            let mut refused = odd.iter().filter(|value| !place.accepts(value)).peekable();
            let field = format!("{pointer}/properties/{}", step(name));
            if let Some(reached) = reached.get(&field)
                && refused.peek().is_some()
                && refused.all(|value| asked(&reached.with(value)).is_ok())
            {
                marks.push(field);
            }
        }
    });
    for pointer in marks {
        set(schema, &pointer, LOST, json!(true));
    }
}

/// Marks the fields that are not always written, but may be written as null: the type writes it again.
pub(super) fn mark_nulls(schema: &mut Value, asked: Asked<'_>) {
    let mut marks = Vec::new();
    let reached = reached::all(schema);
    reached::places(schema, &mut String::new(), &mut |pointer, node| {
        let fields = node.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten().filter(|(name, _)| is_optional(node, name)) {
            let kinds = Schema::new(schema).at(field).kinds();
            let field = format!("{pointer}/properties/{}", step(name));
            if let Some(place) = reached.get(&field)
                && kinds.iter().any(|kind| matches!(kind, Kind::Null))
            {
                let payload = place.with(&Value::Null);
                if asked(&payload).ok().flatten().is_some_and(|written| written == payload) {
                    marks.push(field);
                }
            }
        }
    });
    for pointer in marks {
        set(schema, &pointer, NULL, json!(true));
    }
}
