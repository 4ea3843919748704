//! Whether one program reads all that another writes.

pub(crate) mod lost;
mod objects;
mod values;
mod variants;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::sample::{holds_format, of_format};
use super::words::{list, named};
use super::{Array, Identity, Kind, Schema, Text};
use values::{other_than, parsed, range, refused};

/// Something that the writer writes and the reader can't read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mismatch {
    /// The path to the field: `lines[].price`. Empty: the payload itself.
    pub(crate) field: String,
    /// Why, in a sentence without a subject's name: it stands after the field.
    pub(crate) reason: String,
    /// A value that the writer writes and the reader can't read.
    pub(crate) example: Value,
    /// Whether the writer surely writes it. An option that is left out where it is empty writes null only if it holds another option,
    /// which a schema does not tell.
    pub(crate) certain: bool,
    /// Whether the example is one: it is known that the writer writes it and that the reader can't read it.
    pub(crate) shown: bool,
}

/// All that a writer writes and a reader can't read. Nothing if the reader reads everything.
pub(crate) fn mismatches(writes: &Value, reads: &Value) -> Vec<Mismatch> {
    let mut found = Comparison::default().schemas(Schema::new(writes), Schema::new(reads));
    found.dedup_by(|one, other| one.field == other.field && one.reason == other.reason);
    found
}

/// What is said of a field that the reader needs, and that the writer leaves out at times.
pub(crate) const NOT_ALWAYS_WRITTEN: &str = "is not always written, but the reader needs it";

/// The most pairs that are compared more than once.
const MOST_AGAIN: usize = 1_000;

#[derive(Default)]
struct Comparison {
    /// The pairs that are being compared, or were found to match: a type that holds itself is compared once.
    met: HashSet<(Identity, Identity)>,
    /// How often an object was taken apart.
    splits: usize,
    /// How often a pair that does not match may be compared again, elsewhere.
    compared_again: usize,
    /// The pairs of objects around the one that is being compared, by the schemas of their fields.
    around: Vec<(Vec<Identity>, Vec<Identity>)>,
}

impl Mismatch {
    fn new(reason: impl Into<String>, example: Value) -> Vec<Self> {
        vec![Self { field: String::new(), reason: reason.into(), example, certain: true, shown: true }]
    }

    /// The same where no such value is known.
    fn unshown(self) -> Self {
        Self { certain: false, shown: false, ..self }
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

impl Mismatch {
    /// Another alternative of the reader's may read the example. Then another value is looked for.
    fn prove(&mut self, written: &Kind<'_>, reads: Schema<'_>) {
        // Of a text with a format only the shape is known, so that it fits says little.
        if !self.certain || holds_format(&self.example) || !reads.accepts(&self.example) {
            return;
        }
        match written.variety().into_iter().find(|value| !reads.accepts(value)) {
            Some(unread) => self.example = unread,
            None => (self.certain, self.shown) = (false, false),
        }
    }
}

impl Comparison {
    fn schemas(&mut self, writes: Schema<'_>, reads: Schema<'_>) -> Vec<Mismatch> {
        let pair = (writes.target().identity(), reads.target().identity());
        if !self.met.insert(pair) {
            return Vec::new();
        }
        let readable = reads.kinds();
        let mut found = Vec::new();
        for kind in &writes.kinds() {
            let mut unread = self.kind(kind, writes, &readable);
            if readable.iter().filter(|kind| !matches!(kind, Kind::Null)).count() > 1 {
                unread.iter_mut().for_each(|mismatch| mismatch.prove(kind, reads));
            }
            found.extend(unread);
        }
        if !found.iter().any(|mismatch| mismatch.certain) {
            found.extend(refused(writes, reads));
        }
        if !found.is_empty() && self.compared_again < MOST_AGAIN {
            self.compared_again += 1;
            self.met.remove(&pair);
        }
        found
    }

    /// What of one kind none of the reader's kinds takes.
    fn kind<'s>(&mut self, written: &Kind<'s>, writes: Schema<'_>, readable: &[Kind<'s>]) -> Vec<Mismatch> {
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
            Kind::Integer { least, most } => range((*least, *most), writes, readable),
            Kind::Text(Text::Free) if !writes.refused().is_empty() => parsed(writes, readable),
            _ => {
                let best = readable.iter().filter_map(|kind| self.pair(written, kind)).min_by_key(Vec::len);
                best.unwrap_or_else(|| {
                    let reason =
                        format!("may hold {}, but the reader takes {}", named(written), list(readable));
                    Mismatch::new(reason, other_than(written, writes, readable))
                })
            }
        }
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
        if let Some(longer) = too_long(written, read) {
            return longer;
        }
        let places = written.length.unwrap_or_else(|| written.first.len().max(read.first.len()).max(1));
        let mut found = Vec::new();
        for index in 0..places {
            // All items without a place of their own are alike.
            if index > 0 && index >= written.first.len().max(read.first.len()) {
                break;
            }
            let Some(from) = written.first.get(index).copied().or(written.items) else { continue };
            let Some(to) = read.first.get(index).copied().or(read.items) else {
                let reason = format!("may have more items than the {index} that the reader takes");
                found.extend(Mismatch::new(reason, json!(vec![from.sample(); index + 1])));
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
}

/// That a list may be longer than the reader takes.
fn too_long(written: &Array<'_>, read: &Array<'_>) -> Option<Vec<Mismatch>> {
    let takes = read.most?;
    if written.length.or(written.most).is_some_and(|most| most <= takes) {
        return None;
    }
    let reason = format!("may have more than {takes} items, but the reader takes at most {takes}");
    let mut items = match Kind::Array(written.clone()).sample() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let item = written.items.map_or(Value::Null, Schema::sample);
    items.resize(items.len().max(takes.saturating_add(1)), item);
    Some(Mismatch::new(reason, Value::Array(items)))
}
