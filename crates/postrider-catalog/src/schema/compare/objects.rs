//! Objects: the fields of one against those of another.

use serde_json::Value;

use super::{Comparison, Mismatch, NOT_ALWAYS_WRITTEN};
use crate::schema::object::{Field, Keys, Rest};
use crate::schema::{Kind, Object, Schema};

impl Comparison {
    /// One object against another. In an object that holds itself, the outer comparison says what is wrong with the inner ones.
    pub(super) fn objects(&mut self, written: &Object<'_>, read: &Object<'_>) -> Vec<Mismatch> {
        let fields = |object: &Object<'_>| -> Vec<_> {
            object.fields.iter().map(|field| field.schema.identity()).collect()
        };
        let pair = (fields(written), fields(read));
        if !pair.0.is_empty() && self.around.contains(&pair) {
            return Vec::new();
        }
        self.around.push(pair);
        let found = self.fields(written, read);
        self.around.pop();
        found
    }

    fn fields(&mut self, written: &Object<'_>, read: &Object<'_>) -> Vec<Mismatch> {
        let missing =
            read.fields.iter().filter(|field| field.required).flat_map(|field| missing(written, field));
        let mut found: Vec<_> = missing.collect();
        for field in &written.fields {
            let mut inner = match (read.read_from(field.name), read.rest) {
                (Some(reader), _) if reader.schema.is_lost() => lost(self.values(field, reader.schema)),
                (Some(reader), _) => self.values(field, reader.schema),
                (None, _) if read.without.contains(&field.name) => content(field),
                (None, rest) => self.unnamed(field, rest),
            };
            // That it is not always written says it already.
            let is_missed = found.iter().any(|missing: &Mismatch| missing.field == field.name);
            inner.retain(|mismatch| mismatch.certain || !is_missed);
            found.extend(
                inner
                    .into_iter()
                    .map(|mismatch| mismatch.under(field.name, |value| with(written, field.name, value))),
            );
        }
        found.extend(twice(written, read));
        found.extend(self.map(written, read));
        found
    }

    fn values(&mut self, field: &Field<'_>, reads: Schema<'_>) -> Vec<Mismatch> {
        let mut found = self.schemas(field.schema, reads);
        // An option that is not always written is left out where it is empty: hardly anybody writes it as null.
        if !field.may_be_written_as_null() {
            let is_null = |mismatch: &Mismatch| mismatch.field.is_empty() && mismatch.example.is_null();
            if found.iter().any(|mismatch| !is_null(mismatch)) {
                found.retain(|mismatch| !is_null(mismatch));
            }
            found.iter_mut().filter(|mismatch| is_null(mismatch)).for_each(|null| null.certain = false);
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
                let reason = format!("is not a key that the reader accepts: it accepts {}", keys.named());
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
                let reason = "may have unknown fields, but the reader rejects them";
                found.extend(Mismatch::new(reason, Value::Object(written.sample_with_unknown())));
            }
            Rest::Each(readable, schema) => {
                found.extend(self::keys(written, keys, readable, values));
                let inner = self.schemas(values, schema);
                // The key must be one that both take, so that the value is what is wrong.
                let sample = keys.sample().filter(|key| readable.accepts(key)).or_else(|| readable.sample());
                let key = sample.unwrap_or_else(|| "key".to_owned());
                found.extend(
                    inner.into_iter().map(|mismatch| mismatch.under("*", |value| with(written, &key, value))),
                );
            }
        }
        found
    }
}

/// The keys of a map that a reader does not take, or of which it is not known.
fn keys(written: &Object<'_>, keys: Keys<'_>, readable: Keys<'_>, values: Schema<'_>) -> Vec<Mismatch> {
    let (writes, reads) = (keys.named(), readable.named());
    if let Some(key) = keys.unread_by(readable) {
        let reason = format!("may have {writes} as keys, but the reader takes {reads} as keys");
        return Mismatch::new(reason, with(written, &key, values.sample()));
    }
    if !keys.is_unsure(readable) {
        return Vec::new();
    }
    let reason = format!(
        "has keys that its type parses; the reader may not accept all of them (it expects {reads} as keys)"
    );
    let example = Value::Object(written.sample_with_unknown());
    Mismatch::new(reason, example).into_iter().map(Mismatch::unshown).collect()
}

/// What an object writes, with this value of a field.
pub(super) fn with(written: &Object<'_>, name: &str, value: Value) -> Value {
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
        Some(_) => NOT_ALWAYS_WRITTEN,
        None => "is not written, but the reader needs it",
    };
    let example = Value::Object(written.sample());
    Mismatch::new(reason, example)
        .into_iter()
        .map(|mismatch| mismatch.under(needed.name, |whole| whole))
        .collect()
}

/// Fields that the reader takes for one, by its name and its aliases: serde refuses an object that has two of them.
fn twice(written: &Object<'_>, read: &Object<'_>) -> Vec<Mismatch> {
    let reader = |field: &Field<'_>| read.read_from(field.name).map(|reader| reader.name);
    let mut found = Vec::new();
    for (index, field) in written.fields.iter().enumerate() {
        let Some(name) = reader(field) else { continue };
        let before = &written.fields[..index];
        let Some(other) = before.iter().find(|other| reader(other) == Some(name)) else { continue };
        let mut example = written.sample();
        example.insert(other.name.to_owned(), other.schema.sample());
        example.insert(field.name.to_owned(), field.schema.sample());
        let reason =
            format!("is written beside `{}`, but the reader takes both for its field `{name}`", other.name);
        let wrong = Mismatch::new(reason, Value::Object(example)).into_iter();
        found.extend(wrong.map(|wrong| wrong.under(field.name, |whole| whole)));
    }
    found
}

/// What a reader does not refuse, but reads as absent.
fn lost(unread: Vec<Mismatch>) -> Vec<Mismatch> {
    let mut lost: Vec<_> = unread.into_iter().map(Mismatch::unshown).collect();
    lost.iter_mut()
        .for_each(|mismatch| mismatch.reason.push_str(": it is read as absent, so its part is lost"));
    lost
}

/// A field that the reader's variant refuses unless it is null.
fn content(field: &Field<'_>) -> Vec<Mismatch> {
    let kinds = field.schema.kinds();
    if kinds.iter().all(|kind| matches!(kind, Kind::Null)) {
        return Vec::new();
    }
    Mismatch::new("is written, but the reader takes nothing there", field.schema.sample())
}
