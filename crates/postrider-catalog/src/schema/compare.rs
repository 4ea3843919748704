//! Whether one program reads all that another writes.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::object::{Field, Rest};
use super::sample::{integer, of_format, unlike};
use super::{Array, Kind, Object, Schema, Text, named};

/// Something that the writer writes and the reader can't read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mismatch {
    /// The path to the field: `lines[].price`. Empty: the payload itself.
    pub(crate) field: String,
    /// Why, in a sentence without a subject's name: it stands after the field.
    pub(crate) reason: String,
    /// A value that the writer writes and the reader can't read.
    pub(crate) example: Value,
}

/// All that a writer writes and a reader can't read. Nothing if the reader reads everything.
pub(crate) fn mismatches(writes: &Value, reads: &Value) -> Vec<Mismatch> {
    let mut found = Comparison::default().schemas(Schema::new(writes), Schema::new(reads));
    found.dedup_by(|one, other| one.field == other.field && one.reason == other.reason);
    found
}

#[derive(Default)]
struct Comparison {
    /// The pairs that are being compared, or were found to match: a type that holds itself is compared once.
    met: HashSet<(usize, usize)>,
}

impl Mismatch {
    fn new(reason: impl Into<String>, example: Value) -> Vec<Self> {
        vec![Self { field: String::new(), reason: reason.into(), example }]
    }

    /// The same, one level up.
    fn under(self, step: &str, wrap: impl FnOnce(Value) -> Value) -> Self {
        let field = match self.field.chars().next() {
            None => step.to_owned(),
            Some('[') => format!("{step}{}", self.field),
            Some(_) => format!("{step}.{}", self.field),
        };
        Self { field, example: wrap(self.example), ..self }
    }
}

impl Comparison {
    fn schemas(&mut self, writes: Schema<'_>, reads: Schema<'_>) -> Vec<Mismatch> {
        let pair = (writes.address(), reads.address());
        if !self.met.insert(pair) {
            return Vec::new();
        }
        let readable = reads.kinds();
        let found: Vec<_> = writes.kinds().iter().flat_map(|kind| self.kind(kind, &readable)).collect();
        if !found.is_empty() {
            self.met.remove(&pair);
        }
        found
    }

    /// What of one kind none of the reader's kinds takes.
    fn kind(&mut self, written: &Kind<'_>, readable: &[Kind<'_>]) -> Vec<Mismatch> {
        if readable.iter().any(|kind| matches!(kind, Kind::Any)) {
            return Vec::new();
        }
        match written {
            Kind::Any => {
                let candidates = [json!({}), json!([]), json!(null), json!(true), json!(1.5), json!("any")];
                let unread =
                    candidates.into_iter().find(|value| !readable.iter().any(|kind| kind.accepts(value)));
                Mismatch::new(
                    format!("may hold any value, but the reader takes {}", list(readable)),
                    unread.unwrap_or_default(),
                )
            }
            Kind::Constant(value) if readable.iter().any(|kind| kind.accepts(value)) => Vec::new(),
            Kind::Constant(value) => {
                let reason = format!("may hold {value}, but the reader takes {}", list(readable));
                Mismatch::new(reason, (*value).clone())
            }
            Kind::Object(object) => self.variant(object, readable),
            Kind::Integer { least, most } => range((*least, *most), readable),
            _ => {
                let best = readable.iter().filter_map(|kind| self.pair(written, kind)).min_by_key(Vec::len);
                best.unwrap_or_else(|| {
                    let reason =
                        format!("may hold {}, but the reader takes {}", named(written), list(readable));
                    Mismatch::new(reason, other_than(written, readable))
                })
            }
        }
    }

    /// An object against the reader's: the variant of its name, if both are enums; otherwise the one that fits best.
    fn variant(&mut self, written: &Object<'_>, readable: &[Kind<'_>]) -> Vec<Mismatch> {
        let whole = Value::Object(written.sample());
        let mut unnamed = |kind: &Kind<'_>| match kind {
            Kind::OtherVariant { tag, known, beside } => {
                let name = whole.get(*tag).and_then(Value::as_str)?;
                (!known.contains(&name)).then(|| self.objects(written, beside))
            }
            _ => None,
        };
        if let Some(found) = readable.iter().find_map(&mut unnamed) {
            return found;
        }
        let objects: Vec<&Object<'_>> = readable
            .iter()
            .filter_map(|kind| if let Kind::Object(object) = kind { Some(object) } else { None })
            .collect();
        if objects.is_empty() {
            let reason = format!("may hold an object, but the reader takes {}", list(readable));
            return Mismatch::new(reason, whole);
        }
        let variant = written.variant();
        let tagged: Vec<&Object<'_>> = match variant {
            Some(variant) => {
                objects.iter().copied().filter(|object| object.variant() == Some(variant)).collect()
            }
            None => Vec::new(),
        };
        let all_variants = objects.iter().all(|object| object.variant().is_some());
        if let (Some(variant), true, true) = (variant, tagged.is_empty(), all_variants) {
            let known: Vec<String> = objects
                .iter()
                .filter_map(|object| object.variant())
                .map(|known| format!("`{}`", known.name))
                .collect();
            let reason =
                format!("may hold the variant `{}`, but the reader knows {}", variant.name, known.join(", "));
            return Mismatch::new(reason, whole);
        }
        let candidates = if tagged.is_empty() { objects } else { tagged };
        candidates
            .into_iter()
            .map(|object| self.objects(written, object))
            .min_by_key(Vec::len)
            .unwrap_or_default()
    }

    /// What of one kind another does not take; nothing to say if the two have nothing in common.
    fn pair(&mut self, written: &Kind<'_>, read: &Kind<'_>) -> Option<Vec<Mismatch>> {
        Some(match (written, read) {
            (Kind::Null, Kind::Null) | (Kind::Bool, Kind::Bool) | (Kind::Number, Kind::Number) => Vec::new(),
            (Kind::Text(written), Kind::Text(read)) if read.reads(*written) => Vec::new(),
            (Kind::Text(text), Kind::Text(Text::OneCharacter)) if *text == Text::Free => {
                Mismatch::new("may hold any string, but the reader takes a single character", json!("text"))
            }
            (Kind::Text(text), Kind::Text(format)) => {
                let reason = format!(
                    "may hold {}, but the reader takes {}",
                    named(written),
                    named(&Kind::Text(*format))
                );
                let example = match (text, format) {
                    (Text::Format("ip"), Text::Format("ipv4")) => json!(of_format("ipv6")),
                    _ => written.sample(),
                };
                Mismatch::new(reason, example)
            }
            (Kind::Array(written), Kind::Array(read)) => self.arrays(written, read),
            _ => return None,
        })
    }

    fn arrays(&mut self, written: &Array<'_>, read: &Array<'_>) -> Vec<Mismatch> {
        let example = Kind::Array(written.clone()).sample();
        match (written.length, read.length) {
            (Some(length), Some(other)) if length != other => {
                return Mismatch::new(format!("has {length} items, but the reader takes {other}"), example);
            }
            (None, Some(length)) => {
                let example = if length == 0 {
                    json!([written.items.map_or(Value::Null, Schema::sample)])
                } else {
                    example
                };
                return Mismatch::new(
                    format!("may have any number of items, but the reader takes {length}"),
                    example,
                );
            }
            _ => {}
        }
        let places = written.length.unwrap_or_else(|| written.first.len().max(read.first.len()).max(1));
        let mut found = Vec::new();
        for index in 0..places {
            // All items without a place of their own are alike.
            if index > 0 && index >= written.first.len().max(read.first.len()) {
                break;
            }
            let (Some(from), Some(to)) = (
                written.first.get(index).copied().or(written.items),
                read.first.get(index).copied().or(read.items),
            ) else {
                continue;
            };
            let step = if written.first.is_empty() { "[]".to_owned() } else { format!("[{index}]") };
            found.extend(self.schemas(from, to).into_iter().map(|mismatch| {
                mismatch.under(&step, |value| {
                    let mut items = example.as_array().cloned().unwrap_or_default();
                    if index < items.len() {
                        items[index] = value;
                    } else {
                        items.push(value);
                    }
                    Value::Array(items)
                })
            }));
        }
        found
    }

    fn objects(&mut self, written: &Object<'_>, read: &Object<'_>) -> Vec<Mismatch> {
        let missing =
            read.fields.iter().filter(|field| field.required).flat_map(|field| missing(written, field));
        let mut found: Vec<_> = missing.collect();
        for field in &written.fields {
            let inner = match (read.read_from(field.name), read.rest) {
                (Some(reader), _) => self.values(field, reader.schema),
                (None, rest) => self.unnamed(field, rest),
            };
            found.extend(
                inner
                    .into_iter()
                    .map(|mismatch| mismatch.under(field.name, |value| with(written, field.name, value))),
            );
        }
        found.extend(self.map(written, read));
        found
    }

    fn values(&mut self, field: &Field<'_>, reads: Schema<'_>) -> Vec<Mismatch> {
        let mut found = self.schemas(field.schema, reads);
        // An option that is not always written is left out where it is empty: nobody writes it as null.
        if !field.required {
            found.retain(|mismatch| !(mismatch.field.is_empty() && mismatch.example.is_null()));
        }
        found
    }

    /// A field that the reader does not name.
    fn unnamed(&mut self, field: &Field<'_>, rest: Rest<'_>) -> Vec<Mismatch> {
        match rest {
            Rest::Ignored => Vec::new(),
            Rest::Denied => {
                Mismatch::new("is unknown to the reader, which denies unknown fields", field.schema.sample())
            }
            Rest::Each(keys, _) if !keys.accepts(field.name) => {
                let reason = format!("is no key that the reader takes: it takes {}", keys.named());
                Mismatch::new(reason, field.schema.sample())
            }
            Rest::Each(_, schema) => self.values(field, schema),
        }
    }

    /// The fields that a map writes under any name.
    fn map(&mut self, written: &Object<'_>, read: &Object<'_>) -> Vec<Mismatch> {
        let Some((keys, values)) = written.rest.written() else { return Vec::new() };
        let mut found: Vec<Mismatch> = Vec::new();
        let named = read.fields.iter().filter(|field| written.field(field.name).is_none());
        for field in named.filter(|field| keys.accepts(field.name)) {
            let inner = self.schemas(values, field.schema);
            found.extend(
                inner
                    .into_iter()
                    .map(|mismatch| mismatch.under(field.name, |value| with(written, field.name, value))),
            );
        }
        match read.rest {
            Rest::Ignored => {}
            Rest::Denied => {
                let reason = "may hold any field, but the reader denies unknown fields";
                found.extend(Mismatch::new(reason, Value::Object(written.sample_with_unknown())));
            }
            Rest::Each(readable, schema) => {
                if let Some(key) = keys.unread_by(readable) {
                    let (written_keys, readable) = (keys.named(), readable.named());
                    let reason =
                        format!("may have {written_keys} as keys, but the reader takes {readable} as keys");
                    found.extend(Mismatch::new(reason, with(written, &key, values.sample())));
                }
                let inner = self.schemas(values, schema);
                // The key must be one that both take, so that the value is what is wrong.
                let key = if readable.accepts(&keys.sample()) { keys } else { readable };
                found.extend(
                    inner
                        .into_iter()
                        .map(|mismatch| mismatch.under("*", |value| with(written, &key.sample(), value))),
                );
            }
        }
        found
    }
}

/// What an object writes, with this value of a field.
fn with(written: &Object<'_>, name: &str, value: Value) -> Value {
    let mut object = written.sample();
    object.insert(name.to_owned(), value);
    Value::Object(object)
}

/// A field that the reader needs and the writer does not always write.
fn missing(written: &Object<'_>, needed: &Field<'_>) -> Vec<Mismatch> {
    let source = written.field(needed.name);
    let source = source.or_else(|| needed.schema.aliases().find_map(|alias| written.field(alias)));
    let reason = match source {
        Some(field) if field.required => return Vec::new(),
        Some(_) => "is not always written, but the reader needs it",
        None => "is not written, but the reader needs it",
    };
    let example = Value::Object(written.sample());
    Mismatch::new(reason, example)
        .into_iter()
        .map(|mismatch| mismatch.under(needed.name, |whole| whole))
        .collect()
}

/// An integer that the writer's range has and none of the reader's.
fn range((least, most): (i128, i128), readable: &[Kind<'_>]) -> Vec<Mismatch> {
    let mut ranges = Vec::new();
    for kind in readable {
        match kind {
            Kind::Number => return Vec::new(),
            Kind::Integer { least, most } => ranges.push((*least, *most)),
            _ => {}
        }
    }
    let unread =
        |number: &i128| !ranges.iter().any(|(lowest, highest)| lowest <= number && number <= highest);
    let edges = ranges
        .iter()
        .flat_map(|(lowest, highest)| [highest.checked_add(1), lowest.checked_sub(1)])
        .flatten()
        .filter(|edge| (least..=most).contains(edge));
    let sample = 1.clamp(least, most);
    let Some(beyond) = edges.chain([sample, least, most]).find(unread) else { return Vec::new() };
    if ranges.is_empty() {
        let reason = format!("may hold an integer, but the reader takes {}", list(readable));
        return Mismatch::new(reason, integer(beyond));
    }
    let ranges: Vec<String> =
        ranges.iter().map(|(lowest, highest)| format!("from {lowest} to {highest}")).collect();
    let reason = format!("may hold {beyond}, but the reader takes integers {}", ranges.join(" or "));
    Mismatch::new(reason, integer(beyond))
}

/// A value of a kind that none of the reader's takes.
fn other_than(written: &Kind<'_>, readable: &[Kind<'_>]) -> Value {
    let known: Vec<&str> = readable
        .iter()
        .filter_map(|kind| if let Kind::Constant(value) = kind { value.as_str() } else { None })
        .collect();
    match written {
        Kind::Text(Text::Free) if !known.is_empty() => json!(unlike(&known)),
        _ => written.sample(),
    }
}

/// The kinds in words.
pub(crate) fn list(kinds: &[Kind<'_>]) -> String {
    let mut words: Vec<String> = kinds.iter().map(named).collect();
    words.dedup();
    match words.pop() {
        None => "nothing".into(),
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} or {last}", words.join(", ")),
    }
}
