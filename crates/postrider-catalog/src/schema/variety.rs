//! Many values that a program with this schema writes: each field there and absent, each variant, each kind, the ends of each range of
//! integers, at least once.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::sample::integer;
use super::{Array, Kind, Object, Schema};

/// The most values of one schema.
const MOST: usize = 5_000;
/// The most values that stand beside each other in a list.
const MIXED: usize = 8;
/// How deep the variety goes.
const DEEPEST: usize = 8;

impl Schema<'_> {
    /// Values that differ in one place each.
    pub(crate) fn variety(self) -> Vec<Value> {
        self.variety_within(DEEPEST)
    }

    fn variety_within(self, depth: usize) -> Vec<Value> {
        let Some(depth) = depth.checked_sub(1) else { return vec![self.sample()] };
        let mut known = HashSet::new();
        let kinds = self.kinds();
        let all = kinds.iter().flat_map(|kind| kind.variety_within(depth));
        let mut values: Vec<Value> = std::iter::once(self.sample()).chain(all).collect();
        let refused = self.refused();
        values.retain(|value| !refused.contains(&value) && known.len() < MOST && known.insert(value.clone()));
        values
    }
}

impl Kind<'_> {
    /// The same of one kind.
    pub(crate) fn variety(&self) -> Vec<Value> {
        self.variety_within(DEEPEST)
    }

    fn variety_within(&self, depth: usize) -> Vec<Value> {
        match self {
            Kind::Bool => vec![json!(true), json!(false)],
            Kind::Array(array) => array.variety_within(depth),
            Kind::Object(object) => object.variety_within(depth),
            // Without the format of a type it is not known how far it goes.
            Kind::Integer { least: i128::MIN, most: i128::MAX } => vec![self.sample()],
            Kind::Integer { least, most } => vec![self.sample(), integer(*least), integer(*most)],
            other => vec![other.sample()],
        }
    }
}

impl Array<'_> {
    fn variety_within(&self, depth: usize) -> Vec<Value> {
        let whole = Kind::Array(self.clone()).sample();
        let mut values = vec![whole.clone()];
        let items = whole.as_array().cloned().unwrap_or_default();
        // A list may hold values that no single alternative reads together.
        if let (None, Some(inner)) = (self.length, self.items) {
            let mixed = items.iter().cloned().chain(inner.variety_within(depth).into_iter().take(MIXED));
            values.push(mixed.take(self.most.unwrap_or(usize::MAX)).collect());
        }
        let places =
            self.first.iter().copied().enumerate().chain(self.items.map(|items| (self.first.len(), items)));
        for (index, schema) in places {
            for value in schema.variety_within(depth) {
                let mut items = items.clone();
                match items.get_mut(index) {
                    Some(item) => *item = value,
                    None if self.length.is_none() && self.most != Some(0) => items.push(value),
                    None => continue,
                }
                values.push(Value::Array(items));
            }
        }
        values
    }
}

impl Object<'_> {
    fn variety_within(&self, depth: usize) -> Vec<Value> {
        let base = self.sample();
        let mut values = vec![Value::Object(base.clone())];
        for field in &self.fields {
            for value in field.schema.variety_within(depth) {
                if value.is_null() && !field.may_be_written_as_null() {
                    continue;
                }
                let mut object = base.clone();
                object.insert(field.name.to_owned(), value);
                values.push(Value::Object(object));
            }
        }
        if let Some((keys, schema)) = self.rest.written() {
            for key in keys.candidates() {
                let mut object = base.clone();
                object.entry(key).or_insert_with(|| schema.sample());
                values.push(Value::Object(object));
            }
        }
        values
    }
}
