//! Strings, integers and arrays: rules that look like types, and types that have rules of their own.

use serde_json::{Map, Value, json};

use super::reached::{self, Reached};
use super::{Asked, set};
use crate::schema::sample::integer;
use crate::schema::{
    ANY_LENGTH, ANY_TEXT, AT_MOST, Array, Kind, REFUSED, Schema, Text, ZERO, integers, probes, text,
};

/// The longest list that is tried.
const LONGEST: usize = 10_000;

/// Marks what a schema does not tell about them.
pub(super) fn mark(schema: &mut Value, asked: Asked<'_>, is_read: bool) {
    let mut marks: Vec<(String, &str, Value)> = Vec::new();
    for (pointer, reached) in &reached::all(schema) {
        let Some(Value::Object(node)) = schema.pointer(pointer) else { continue };
        let place = Place { schema, pointer, node, reached, asked };
        for (keyword, value) in place.marks(is_read) {
            let known = marks.iter_mut().find(|(at, known, _)| at == pointer && *known == keyword);
            match (known, value) {
                // A place of several kinds has refusals of each.
                (Some((_, _, Value::Array(all))), Value::Array(more)) => all.extend(more),
                (_, value) => marks.push((pointer.clone(), keyword, value)),
            }
        }
    }
    for (pointer, keyword, value) in marks {
        if let (true, Some(node)) =
            (value == json!([]), schema.pointer_mut(&pointer).and_then(Value::as_object_mut))
        {
            node.remove(keyword);
            continue;
        }
        set(schema, &pointer, keyword, value);
    }
}

/// A place that the type is asked about.
struct Place<'a> {
    schema: &'a Value,
    pointer: &'a str,
    node: &'a Map<String, Value>,
    reached: &'a Reached,
    asked: Asked<'a>,
}

impl Place<'_> {
    fn marks(&self, is_read: bool) -> Vec<(&'static str, Value)> {
        let node = self.node;
        let reads = |value: &Value| (self.asked)(&self.reached.with(value)).is_ok();
        let refused = |values: &[Value]| {
            let refused: Vec<&Value> = values.iter().filter(|value| !reads(value)).collect();
            (!refused.is_empty()).then(|| (REFUSED, json!(refused)))
        };
        let nulls =
            node.get("enum").and_then(Value::as_array).is_some_and(|names| names.contains(&Value::Null));
        // An option may be written as null and not be read from it.
        let may_be_null = is_read && (nulls || is_of(node, "null")) && self.is_reached();
        let null = may_be_null.then(|| refused(&[Value::Null])).flatten();
        if node.contains_key("const") || node.contains_key("enum") {
            return null.into_iter().collect();
        }
        let mut marks: Vec<_> = null.into_iter().collect();
        if is_of(node, "string") {
            let writes = |text: &Value| writes(self.asked, self.reached, text);
            if is_read || text(node) != Text::Free {
                marks.extend(text_mark(node, &reads));
            } else {
                marks.extend(text_mark(node, &writes));
            }
        }
        if is_of(node, "integer") {
            marks.extend(integer_mark(node, &reads));
        } else if is_of(node, "number") {
            marks.extend(number_mark(&reads));
        }
        if is_of(node, "boolean") {
            // Where both are refused, something else is wrong.
            let one = |(_, values): &(&str, Value)| values.as_array().is_some_and(|values| values.len() == 1);
            marks.extend(refused(&[json!(true), json!(false)]).filter(one));
        }
        if is_of(node, "array") {
            marks.extend(length_mark(self.schema, self.pointer, self.reached, self.asked));
            if !node.contains_key("minItems") {
                marks.extend(self.too_short());
            }
        }
        let is_map =
            ["additionalProperties", "patternProperties"].iter().any(|keyword| node.contains_key(*keyword));
        let is_part = ["properties", "oneOf", "anyOf", "allOf", "$ref"]
            .iter()
            .any(|keyword| node.contains_key(*keyword));
        if is_of(node, "object") && is_map && !is_part {
            marks.extend(self.too_short());
        }
        marks
    }

    /// Whether the type reads a value of the place that is not null.
    fn is_reached(&self) -> bool {
        let whole = self.schema.pointer(&self.reached.whole);
        let sample = whole.map(|whole| Schema::new(self.schema).at(whole).sample());
        sample.is_some_and(|sample| !sample.is_null() && (self.asked)(&self.reached.with(&sample)).is_ok())
    }

    /// The shortest lists or maps that the type refuses; nothing if it reads none. What was found before, where only a longer one was
    /// read, is tried again.
    fn too_short(&self) -> Mark {
        let lengths = self.lengths();
        let read = lengths.iter().position(|value| (self.asked)(&self.reached.with(value)).is_ok())?;
        match (read, self.node.contains_key(REFUSED)) {
            (0, true) => Some((REFUSED, json!([]))),
            (0, false) => None,
            (shortest, _) => Some((REFUSED, json!(lengths[..shortest]))),
        }
    }

    /// An empty list or map, and longer ones.
    fn lengths(&self) -> Vec<Value> {
        let place = Schema::new(self.schema).at(self.schema.pointer(self.pointer).unwrap_or(&Value::Null));
        let of_kind = |kind: &Kind<'_>| match kind {
            Kind::Array(Array { items: Some(items), length: None, .. }) => {
                let item = items.sample();
                Some((0..=2).map(|length| json!(vec![item.clone(); length])).collect())
            }
            Kind::Object(object) => {
                let filled = object.sample_with_unknown();
                (!filled.is_empty()).then(|| vec![json!({}), Value::Object(filled)])
            }
            _ => None,
        };
        place.kinds().iter().find_map(of_kind).unwrap_or_default()
    }
}

/// Whether the type writes a text as it reads it. One that it reads and writes otherwise is none that it writes.
fn writes(asked: Asked<'_>, reached: &Reached, text: &Value) -> bool {
    match asked(&reached.with(text)) {
        Ok(Some(written)) => reached.value_in(&written).is_none_or(|same| same == text),
        Ok(None) => true,
        Err(_) => false,
    }
}

fn is_of(node: &Map<String, Value>, kind: &str) -> bool {
    match node.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|name| name == kind),
        Some(name) => name == kind,
        None => false,
    }
}

type Mark = Option<(&'static str, Value)>;

fn text_mark(node: &Map<String, Value>, reads: &impl Fn(&Value) -> bool) -> Mark {
    let known = text(node);
    if probes::ANY.iter().all(|text| reads(&json!(text))) {
        return (known != Text::Free).then_some((ANY_TEXT, json!(true)));
    }
    if known != Text::Free && reads(&crate::schema::Kind::Text(known).sample()) {
        return None;
    }
    let refused: Vec<Value> = probes::texts()
        .filter(|text| known.accepts(text))
        .map(Value::from)
        .filter(|text| !reads(text))
        .collect();
    (!refused.is_empty()).then_some((REFUSED, json!(refused)))
}

fn integer_mark(node: &Map<String, Value>, reads: &impl Fn(&Value) -> bool) -> Mark {
    let ranges = integers(node);
    let from_one = ranges.first().is_some_and(|(least, _)| *least == 1);
    if from_one && reads(&json!(0)) {
        return Some((ZERO, json!(true)));
    }
    let mut tried: Vec<Value> = Vec::new();
    for (least, most) in ranges {
        let near = probes::integers().filter(|number| (least..=most).contains(number));
        // Without the format of a type it is not known how far it goes.
        let ends = [least, most].into_iter().filter(|end| ![i128::MIN, i128::MAX].contains(end));
        let ends = ends.filter(|end| !probes::integers().any(|number| number == *end));
        tried.extend(near.chain(ends).map(integer));
    }
    let refused: Vec<Value> = tried.into_iter().filter(|number| !reads(number)).collect();
    (!refused.is_empty()).then_some((REFUSED, json!(refused)))
}

fn number_mark(reads: &impl Fn(&Value) -> bool) -> Mark {
    let refused: Vec<Value> = probes::numbers().filter(|number| !reads(number)).collect();
    (!refused.is_empty()).then_some((REFUSED, json!(refused)))
}

/// Whether a list with a greatest length may have one more: then its length is only a rule.
fn length_mark(schema: &Value, pointer: &str, reached: &Reached, asked: Asked<'_>) -> Mark {
    let node = schema.pointer(pointer)?;
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_u64);
    let most = usize::try_from(bound("maxItems")?).ok().filter(|most| *most < LONGEST)?;
    if node.get("prefixItems").is_some() {
        return None;
    }
    let item = node.get("items").map_or(json!(1), |items| Schema::new(schema).at(items).sample());
    let reads = |length: usize| asked(&reached.with(&json!(vec![item.clone(); length]))).is_ok();
    let is_fixed = bound("minItems").unwrap_or(0) == bound("maxItems")?;
    match (is_fixed, reads(most + 1)) {
        (true, true) => Some((ANY_LENGTH, json!(true))),
        (false, false) if reads(most) => Some((AT_MOST, json!(true))),
        _ => None,
    }
}
