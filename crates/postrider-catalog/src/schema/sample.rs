//! A value that a program with this schema writes: what a counterexample is made of.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::{Array, Identity, Kind, Object, Schema, Text};

/// How deep a sample goes before a type that holds itself is taken to have no end.
const DEEPEST: usize = 24;

impl<'s> Schema<'s> {
    /// The smallest value that it allows, or `null` if it allows none.
    pub(crate) fn sample(self) -> Value {
        Sampler::default().schema(self, DEEPEST).unwrap_or(Value::Null)
    }
}

impl<'s> Kind<'s> {
    pub(crate) fn sample(&self) -> Value {
        least(|sampler, depth| sampler.kind(self, depth)).unwrap_or(Value::Null)
    }
}

impl<'s> Object<'s> {
    /// An object with the fields that are always there.
    pub(crate) fn sample(&self) -> Map<String, Value> {
        least(|sampler, depth| sampler.object(self, depth)).unwrap_or_default()
    }

    /// The same with a field that is no field of it, if it may have such and a name of one is known.
    pub(crate) fn sample_with_unknown(&self) -> Map<String, Value> {
        let mut object = self.sample();
        if let Some((keys, schema)) = self.rest.written()
            && let Some(key) = keys.sample()
        {
            object.insert(key, schema.sample());
        }
        object
    }
}

/// What is found at the least depth.
fn least<'s, T>(mut found: impl FnMut(&mut Sampler<'s>, usize) -> Option<T>) -> Option<T> {
    let mut sampler = Sampler::default();
    (0..DEEPEST).find_map(|depth| found(&mut sampler, depth))
}

/// Makes samples of the least depth. Each place is looked at once for each depth, however many ways lead to it: a tree has two
/// ways at each of its nodes.
#[derive(Default)]
struct Sampler<'s> {
    kinds: HashMap<Identity, Rc<[Kind<'s>]>>,
    found: HashMap<Identity, (usize, Value)>,
    /// The greatest depth that was tried in vain.
    in_vain: HashMap<Identity, usize>,
}

impl<'s> Sampler<'s> {
    fn schema(&mut self, schema: Schema<'s>, depth: usize) -> Option<Value> {
        let identity = schema.identity();
        if let Some((needed, value)) = self.found.get(&identity) {
            return (*needed <= depth).then(|| value.clone());
        }
        let tried = self.in_vain.get(&identity).copied().unwrap_or_default();
        for depth in tried + 1..=depth {
            if let Some(value) = self.within(schema, depth - 1) {
                self.found.insert(identity, (depth, value.clone()));
                return Some(value);
            }
            self.in_vain.insert(identity, depth);
        }
        None
    }

    /// A sample whose parts have at most this depth.
    fn within(&mut self, schema: Schema<'s>, depth: usize) -> Option<Value> {
        let kinds = self.kinds.entry(schema.identity()).or_insert_with(|| schema.kinds().into()).clone();
        // A value says more than its absence, where both are as deep.
        let (nulls, mut others): (Vec<_>, Vec<_>) = kinds.iter().partition(|kind| matches!(kind, Kind::Null));
        others.sort_by_key(|kind| matches!(kind, Kind::Array(_) | Kind::Object(_)));
        let sample = others.into_iter().chain(nulls).find_map(|kind| self.kind(kind, depth))?;
        Some(schema.unrefused(sample, &kinds))
    }

    fn kind(&mut self, kind: &Kind<'s>, depth: usize) -> Option<Value> {
        Some(match kind {
            Kind::Any => json!("any"),
            Kind::Null => Value::Null,
            Kind::Bool => json!(true),
            Kind::Integer { least, most } => integer(1.clamp(*least, *most)),
            Kind::Number => json!(1.5),
            Kind::Text(Text::Free) => json!("text"),
            Kind::Text(Text::OneCharacter) => json!("c"),
            Kind::Text(Text::Format(format)) => json!(of_format(format)),
            Kind::Constant(value) => (*value).clone(),
            Kind::Array(array) => self.array(array, depth)?,
            Kind::Object(object) => Value::Object(self.object(object, depth)?),
            Kind::OtherVariant { tag, known, beside } => {
                let mut object = self.object(beside, depth)?;
                object.insert((*tag).to_owned(), json!(unlike(known)));
                Value::Object(object)
            }
        })
    }

    fn array(&mut self, array: &Array<'s>, depth: usize) -> Option<Value> {
        let length = array.length.unwrap_or(array.first.len().max(array.least));
        let item = |index: usize| array.first.get(index).copied().or(array.items);
        let items: Option<Vec<_>> = (0..length)
            .map(|index| item(index).map_or(Some(Value::Null), |schema| self.schema(schema, depth)))
            .collect();
        items.map(Value::Array)
    }

    fn object(&mut self, object: &Object<'s>, depth: usize) -> Option<Map<String, Value>> {
        let required = object.fields.iter().filter(|field| field.required);
        let mut fields: Map<String, Value> = required
            .map(|field| Some((field.name.to_owned(), self.schema(field.schema, depth)?)))
            .collect::<Option<_>>()?;
        if let Some((keys, schema)) = object.rest.written().filter(|_| object.filled)
            && let Some(key) = keys.sample()
        {
            fields.insert(key, self.schema(schema, depth)?);
        }
        Some(fields)
    }
}

/// An integer as JSON. One that 64 bits don't hold becomes the nearest power of two that they don't hold either.
pub(crate) fn integer(number: i128) -> Value {
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    if let Ok(number) = i64::try_from(number) {
        return json!(number);
    }
    // What only a `u128` has.
    if number == i128::MAX {
        return json!(170_141_183_460_469_231_731_687_303_715_884_105_728.0);
    }
    u64::try_from(number).map_or_else(|_| json!(if number < 0 { -BEYOND } else { BEYOND }), Value::from)
}

/// A string that is none of these.
pub(crate) fn unlike(known: &[&str]) -> String {
    let mut text = "Other".to_owned();
    while known.contains(&text.as_str()) {
        text.push('X');
    }
    text
}

/// The formats that a type of Rust parses, each with a string of it. `email` and the like are rules, which serde does not check.
pub(crate) const FORMATS: [(&str, &str); 10] = [
    ("uuid", "00000000-0000-4000-8000-000000000000"),
    ("date", "2026-01-01"),
    ("time", "12:00:00"),
    ("date-time", "2026-01-01T12:00:00Z"),
    ("partial-date-time", "2026-01-01T12:00:00"),
    ("zoned-date-time", "2026-01-01T12:00:00+00:00[UTC]"),
    ("ip", "192.0.2.1"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("uri", "https://example.com/"),
];

/// A string of a format.
pub(crate) fn of_format(format: &str) -> &'static str {
    FORMATS.iter().find(|(name, _)| *name == format).map_or("", |(_, example)| example)
}

/// Whether a value holds a string of a format.
pub(crate) fn holds_format(value: &Value) -> bool {
    match value {
        Value::String(text) => FORMATS.iter().any(|(_, example)| example == text),
        Value::Array(items) => items.iter().any(holds_format),
        Value::Object(fields) => fields.values().any(holds_format),
        _ => false,
    }
}
