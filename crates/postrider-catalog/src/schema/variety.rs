//! Many values that a program with this schema writes: each field there and absent, each variant, each kind, the ends of each range of
//! integers, at least once.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::sample::integer;
use super::{Array, Kind, Object, Schema};

/// The most values of one schema.
const MOST: usize = 5_000;
/// The most values that are made on the way to them, those of its parts included. A type that holds itself in many places would have
/// more than any memory holds.
const MOST_MADE: usize = 20_000;
/// The most values that stand beside each other in a list.
const MIXED: usize = 8;
/// How deep the variety goes.
const DEEPEST: usize = 8;

impl Schema<'_> {
    /// Values that differ in one place each.
    pub(crate) fn variety(self) -> Vec<Value> {
        least_first(|making| making.schema(self, making.deepest))
    }
}

impl Kind<'_> {
    /// The same of one kind.
    pub(crate) fn variety(&self) -> Vec<Value> {
        least_first(|making| making.kind(self, making.deepest))
    }
}

/// The values of the least depth first, so that what is deep does not take the place of what is not.
fn least_first(values: impl Fn(&mut Making) -> Vec<Value>) -> Vec<Value> {
    let mut making = Making::default();
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for deepest in 1..=DEEPEST {
        (making.deepest, making.is_cut) = (deepest, false);
        let made = values(&mut making).into_iter();
        found.extend(made.filter(|value| known.insert(value.clone())));
        if !making.is_cut || making.made >= MOST_MADE || found.len() >= MOST {
            break;
        }
    }
    found.truncate(MOST);
    found
}

/// What was made so far.
#[derive(Default)]
struct Making {
    made: usize,
    deepest: usize,
    /// Whether something is deeper.
    is_cut: bool,
}

impl Making {
    fn schema(&mut self, schema: Schema<'_>, depth: usize) -> Vec<Value> {
        let sample = schema.sample();
        self.made += 1;
        let Some(depth) = depth.checked_sub(1) else {
            self.is_cut = true;
            return vec![sample];
        };
        let mut known = HashSet::new();
        let mut values = vec![sample];
        for kind in schema.kinds() {
            values.extend(self.kind(&kind, depth));
        }
        let refused = schema.refused();
        values.retain(|value| !refused.contains(&value) && known.insert(value.clone()));
        values
    }

    fn kind(&mut self, kind: &Kind<'_>, depth: usize) -> Vec<Value> {
        let values = match kind {
            Kind::Bool => vec![json!(true), json!(false)],
            Kind::Array(array) => self.array(array, depth),
            Kind::Object(object) => self.object(object, depth),
            // Without the format of a type it is not known how far it goes.
            Kind::Integer { least: i128::MIN, most: i128::MAX } => vec![kind.sample()],
            Kind::Integer { least, most } => vec![kind.sample(), integer(*least), integer(*most)],
            other => vec![other.sample()],
        };
        self.made += values.len();
        values
    }

    /// The values of a part; none once enough was made.
    fn part(&mut self, schema: Schema<'_>, depth: usize) -> Vec<Value> {
        if self.made < MOST_MADE { self.schema(schema, depth) } else { Vec::new() }
    }

    fn array(&mut self, array: &Array<'_>, depth: usize) -> Vec<Value> {
        let whole = Kind::Array(array.clone()).sample();
        let mut values = vec![whole.clone()];
        let items = whole.as_array().cloned().unwrap_or_default();
        // A list may hold values that no single alternative reads together.
        if let (None, Some(inner)) = (array.length, array.items) {
            let mixed = items.iter().cloned().chain(self.part(inner, depth).into_iter().take(MIXED));
            values.push(mixed.take(array.most.unwrap_or(usize::MAX)).collect());
        }
        let places = array
            .first
            .iter()
            .copied()
            .enumerate()
            .chain(array.items.map(|items| (array.first.len(), items)));
        for (index, schema) in places {
            for value in self.part(schema, depth) {
                let mut items = items.clone();
                match items.get_mut(index) {
                    Some(item) => *item = value,
                    None if array.length.is_none() && array.most != Some(0) => items.push(value),
                    None => continue,
                }
                values.push(Value::Array(items));
            }
        }
        values
    }

    fn object(&mut self, object: &Object<'_>, depth: usize) -> Vec<Value> {
        let base = object.sample();
        let mut values = vec![Value::Object(base.clone())];
        for field in &object.fields {
            for value in self.part(field.schema, depth) {
                if value.is_null() && !field.may_be_written_as_null() {
                    continue;
                }
                let mut object = base.clone();
                object.insert(field.name.to_owned(), value);
                values.push(Value::Object(object));
            }
        }
        if let Some((keys, schema)) = object.rest.written() {
            for key in keys.candidates() {
                let mut object = base.clone();
                object.entry(key).or_insert_with(|| schema.sample());
                values.push(Value::Object(object));
            }
        }
        values
    }
}
