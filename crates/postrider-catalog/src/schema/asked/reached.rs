//! Where a place of a schema is in a payload.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use crate::schema::{Array, Kind, Object, Schema};

/// The most values that are looked for: a payload has few of them.
const MOST: usize = 2_000;
/// What stands for the value in a payload.
const HOLE: &str = "\u{1}hole";

/// A value of payloads that a place of the schema says something about.
#[derive(Debug, Clone)]
pub(super) struct Reached {
    /// The place that says all about it: others are what this one refers to, or is made of.
    pub(super) whole: String,
    payload: Value,
}

impl Reached {
    /// The smallest payload with this value at the place.
    pub(super) fn with(&self, value: &Value) -> Value {
        filled(&self.payload, value)
    }

    /// What another payload has where this one has the value.
    pub(super) fn value_in<'v>(&self, other: &'v Value) -> Option<&'v Value> {
        at_hole(&self.payload, other)
    }

    /// The payload without the field that holds the value.
    pub(super) fn without_it(&self) -> Value {
        without_hole(&self.payload)
    }

    /// Values of the place, one for each of its kinds, if `node` stands at one of its parts.
    pub(super) fn kinds(&self, schema: &Value, pointer: &str, node: Value) -> Vec<Value> {
        let mut changed = schema.clone();
        let Some(part) = changed.pointer_mut(pointer) else { return Vec::new() };
        *part = node;
        let Some(whole) = changed.pointer(&self.whole) else { return Vec::new() };
        Schema::new(&changed).at(whole).kinds().iter().map(Kind::sample).collect()
    }
}

/// All values that a payload may have, by each place that says something about them.
pub(super) fn all(schema: &Value) -> BTreeMap<String, Reached> {
    let mut pointers = HashMap::new();
    places(schema, &mut String::new(), &mut |pointer, node| {
        pointers.insert(std::ptr::from_ref(node).addr(), pointer.to_owned());
    });
    let mut found = BTreeMap::new();
    let mut met = HashSet::new();
    let mut next = VecDeque::from([(Schema::new(schema), json!(HOLE))]);
    while let Some((place, payload)) = next.pop_front() {
        let Some(whole) = pointers.get(&place.address()) else { continue };
        if met.len() >= MOST || !met.insert(place.address()) {
            continue;
        }
        place.same_value(&mut Vec::new(), &mut |part| {
            if let Some(pointer) = pointers.get(&part.address()) {
                let reached = || Reached { whole: whole.clone(), payload: payload.clone() };
                found.entry(pointer.clone()).or_insert_with(reached);
            }
        });
        for (inner, value) in place.kinds().iter().flat_map(inside) {
            next.push_back((inner, filled(&payload, &value)));
        }
    }
    found
}

/// The places directly inside a value, each with the value in which it is the hole.
fn inside<'s>(kind: &Kind<'s>) -> Vec<(Schema<'s>, Value)> {
    match kind {
        Kind::Object(object) => inside_object(object),
        Kind::Array(array) => inside_array(array),
        _ => Vec::new(),
    }
}

fn inside_object<'s>(object: &Object<'s>) -> Vec<(Schema<'s>, Value)> {
    let base = object.sample();
    let with_hole = |name: &str| {
        let mut fields: Map<String, Value> = base.clone();
        fields.insert(name.to_owned(), json!(HOLE));
        Value::Object(fields)
    };
    let mut found: Vec<_> = object.fields.iter().map(|field| (field.schema, with_hole(field.name))).collect();
    if let Some((keys, values)) = object.rest.written()
        && let Some(key) = keys.sample()
    {
        found.push((values, with_hole(&key)));
    }
    found
}

fn inside_array<'s>(array: &Array<'s>) -> Vec<(Schema<'s>, Value)> {
    let items = match Kind::Array(array.clone()).sample() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let places = array.first.iter().copied().enumerate();
    let rest = array.items.map(|items| (array.first.len(), items));
    let with_hole = |index: usize| {
        let mut items = items.clone();
        match items.get_mut(index) {
            Some(item) => *item = json!(HOLE),
            None => items.push(json!(HOLE)),
        }
        Value::Array(items)
    };
    let fits = |index: usize| array.length.is_none_or(|length| index < length);
    places
        .chain(rest)
        .filter(|(index, _)| fits(*index))
        .map(|(index, schema)| (schema, with_hole(index)))
        .collect()
}

fn filled(payload: &Value, value: &Value) -> Value {
    match payload {
        Value::String(text) if text == HOLE => value.clone(),
        Value::Array(items) => items.iter().map(|item| filled(item, value)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, inner)| (name.clone(), filled(inner, value))).collect()
        }
        other => other.clone(),
    }
}

fn at_hole<'v>(payload: &Value, other: &'v Value) -> Option<&'v Value> {
    match payload {
        Value::String(text) if text == HOLE => Some(other),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| at_hole(item, other.get(index)?))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, inner)| at_hole(inner, other.get(name)?)),
        _ => None,
    }
}

fn without_hole(payload: &Value) -> Value {
    match payload {
        Value::Array(items) => items.iter().map(without_hole).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| *value != HOLE)
            .map(|(name, value)| (name.clone(), without_hole(value)))
            .collect(),
        other => other.clone(),
    }
}

/// All places of a schema, as JSON pointers.
pub(super) fn places(node: &Value, at: &mut String, found: &mut impl FnMut(&str, &Value)) {
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
                    below(child, &step(name));
                }
            }
            found(at, node);
        }
        _ => {}
    }
}

/// A name as a step of a JSON pointer.
pub(super) fn step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
