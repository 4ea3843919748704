//! A value that a program with this schema writes: what a counterexample is made of.

use serde_json::{Map, Value, json};

use super::{Array, Kind, Object, Schema, Text};

/// How deep a sample goes before a type that holds itself is taken to have no end.
const DEEPEST: usize = 24;

impl Schema<'_> {
    /// The smallest value that it allows, or `null` if it allows none.
    pub(crate) fn sample(self) -> Value {
        self.sample_within(DEEPEST).unwrap_or(Value::Null)
    }

    fn sample_within(self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let kinds = self.kinds();
        // A value says more than its absence, unless only the absence has an end.
        let (nulls, others): (Vec<_>, Vec<_>) = kinds.iter().partition(|kind| matches!(kind, Kind::Null));
        let mut others = others;
        others.sort_by_key(|kind| matches!(kind, Kind::Array(_) | Kind::Object(_)));
        let sample = others.iter().chain(&nulls).find_map(|kind| kind.sample_within(depth))?;
        Some(self.unrefused(sample, &kinds))
    }
}

impl Kind<'_> {
    pub(crate) fn sample(&self) -> Value {
        self.sample_within(DEEPEST).unwrap_or(Value::Null)
    }

    fn sample_within(&self, depth: usize) -> Option<Value> {
        Some(match self {
            Kind::Any => json!("any"),
            Kind::Null => Value::Null,
            Kind::Bool => json!(true),
            Kind::Integer { least, most } => integer(1.clamp(*least, *most)),
            Kind::Number => json!(1.5),
            Kind::Text(Text::Free) => json!("text"),
            Kind::Text(Text::OneCharacter) => json!("c"),
            Kind::Text(Text::Format(format)) => json!(of_format(format)),
            Kind::Constant(value) => (*value).clone(),
            Kind::Array(array) => array.sample_within(depth)?,
            Kind::Object(object) => Value::Object(object.sample_within(depth)?),
            Kind::OtherVariant { tag, known, beside } => {
                let mut object = beside.sample_within(depth)?;
                object.insert((*tag).to_owned(), json!(unlike(known)));
                Value::Object(object)
            }
        })
    }
}

impl Array<'_> {
    fn sample_within(&self, depth: usize) -> Option<Value> {
        let length = self.length.unwrap_or(self.first.len().max(self.least));
        let item = |index: usize| self.first.get(index).copied().or(self.items);
        let items: Option<Vec<_>> = (0..length)
            .map(|index| item(index).map_or(Some(Value::Null), |schema| schema.sample_within(depth)))
            .collect();
        items.map(Value::Array)
    }
}

impl Object<'_> {
    /// An object with the fields that are always there.
    pub(crate) fn sample(&self) -> Map<String, Value> {
        self.sample_within(DEEPEST).unwrap_or_default()
    }

    fn sample_within(&self, depth: usize) -> Option<Map<String, Value>> {
        let required = self.fields.iter().filter(|field| field.required);
        let mut object: Map<String, Value> = required
            .map(|field| Some((field.name.to_owned(), field.schema.sample_within(depth)?)))
            .collect::<Option<_>>()?;
        if let Some((keys, schema)) = self.rest.written().filter(|_| self.filled)
            && let Some(key) = keys.sample()
        {
            object.insert(key, schema.sample_within(depth)?);
        }
        Some(object)
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
