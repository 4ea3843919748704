//! The variants of enums: whether unknown ones are read, and what a variant refuses.

use serde_json::{Map, Value, json};

use super::reached::{self, Reached};
use super::{Asked, set};
use crate::schema::object::Rest;
use crate::schema::{OTHER, Object, Schema, WITHOUT};

/// A word that no variant has.
const UNKNOWN: &str = "\u{1}other";

/// Marks the enums with a variant for all unknown ones (`serde(other)`), and the variants that refuse what others hold.
pub(super) fn mark(schema: &mut Value, asked: Asked<'_>) {
    let mut marks = Vec::new();
    let mut open = Vec::new();
    for (pointer, reached) in &reached::all(schema) {
        let Some(node) = schema.pointer(pointer) else { continue };
        if has_names(node) && asked(&reached.with(&json!(UNKNOWN))).is_ok() {
            marks.push((pointer.clone(), OTHER, json!(true)));
        }
        let parts = node.get("oneOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let tagged = Tagged { schema, pointer, reached, asked };
        marks.extend(tagged.marks(node, parts));
        open.extend(tagged.open(node, parts));
    }
    for (pointer, keyword, value) in marks {
        set(schema, &pointer, keyword, value);
    }
    for pointer in open {
        if let Some(Value::Object(variant)) = schema.pointer_mut(&pointer) {
            variant.remove("additionalProperties");
        }
    }
}

/// Whether it is an enum whose variants are written as their names, some of them.
fn has_names(node: &Value) -> bool {
    let is_text = |value: &Value| value.is_string();
    let parts = node.get("oneOf").and_then(Value::as_array);
    node.get("enum").and_then(Value::as_array).is_some_and(|names| names.iter().all(is_text))
        || parts.is_some_and(|parts| parts.iter().any(|part| part.get("const").is_some_and(is_text)))
}

/// An enum with a tag at a place.
struct Tagged<'a> {
    schema: &'a Value,
    pointer: &'a str,
    reached: &'a Reached,
    asked: Asked<'a>,
}

impl Tagged<'_> {
    fn marks(&self, node: &Value, parts: &[Value]) -> Vec<(String, &'static str, Value)> {
        let objects: Vec<_> = parts.iter().map(object).collect();
        let tags = objects.iter().flatten().filter_map(|object| object.variant()?.tag);
        let Some(tag) = tags.into_iter().next() else { return Vec::new() };
        let mut names: Vec<&str> = Vec::new();
        for name in objects.iter().flatten().flat_map(|object| &object.fields).map(|field| field.name) {
            if name != tag && !names.contains(&name) {
                names.push(name);
            }
        }
        let mut marks = Vec::new();
        let unknown =
            json!({ "type": "object", "properties": { tag: { "const": UNKNOWN } }, "required": [tag] });
        if let Some(value) = self.one(node, &unknown, tag)
            && self.reads(value.clone(), None)
        {
            marks.push((self.pointer.to_owned(), OTHER, json!(true)));
            marks.extend(
                self.refused(&value, &names).map(|refused| (self.pointer.to_owned(), WITHOUT, refused)),
            );
        }
        for (index, (part, object)) in parts.iter().zip(&objects).enumerate() {
            // A variant without fields.
            if object.as_ref().is_some_and(|object| matches!(&*object.fields, [only] if only.name == tag))
                && let Some(value) = self.one(node, part, tag)
                && self.reads(value.clone(), None)
                && let Some(refused) = self.refused(&value, &names)
            {
                marks.push((format!("{}/oneOf/{index}", self.pointer), WITHOUT, refused));
            }
        }
        marks
    }

    /// The variants that deny unknown fields by their schema and read them: serde looks at the tag of one without fields only.
    fn open(&self, node: &Value, parts: &[Value]) -> Vec<String> {
        let is_open = |part: &Value| {
            let object = object(part)?;
            let tag = object.variant()?.tag.filter(|_| matches!(object.rest, Rest::Denied))?;
            let value = self.one(node, part, tag)?;
            self.reads(value, Some(UNKNOWN)).then_some(())
        };
        let open = parts.iter().enumerate().filter(|(_, part)| is_open(part).is_some());
        open.map(|(index, _)| format!("{}/oneOf/{index}", self.pointer)).collect()
    }

    /// A value of the place when this is the only variant.
    fn one(&self, node: &Value, part: &Value, tag: &str) -> Option<Map<String, Value>> {
        let mut node = node.clone();
        *node.get_mut("oneOf")? = json!([part]);
        let wanted = part.pointer(&format!("/properties/{}/const", reached::step(tag)))?;
        let values = self.reached.kinds(self.schema, self.pointer, node);
        values.into_iter().find_map(|value| match value {
            Value::Object(fields) if fields.get(tag) == Some(wanted) => Some(fields),
            _ => None,
        })
    }

    fn reads(&self, mut value: Map<String, Value>, field: Option<&str>) -> bool {
        value.extend(field.map(|name| (name.to_owned(), json!([0]))));
        (self.asked)(&self.reached.with(&Value::Object(value))).is_ok()
    }

    /// The fields of other variants that it refuses.
    fn refused(&self, value: &Map<String, Value>, names: &[&str]) -> Option<Value> {
        let beside = names.iter().filter(|name| !value.contains_key(**name));
        let refused: Vec<_> = beside.filter(|name| !self.reads(value.clone(), Some(name))).collect();
        (!refused.is_empty()).then(|| json!(refused))
    }
}

fn object(part: &Value) -> Option<Object<'_>> {
    part.as_object().map(|node| Object::of(Schema::new(part), node))
}
