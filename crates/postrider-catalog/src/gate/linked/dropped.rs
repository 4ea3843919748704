//! What a new type reads without an error and does not keep: another alternative of an untagged enum may read a payload first.

use serde_json::{Map, Value};

use crate::Catalog;
use crate::lock::LockedSchema;
use crate::model::EventEntry;
use crate::problems::Severity;
use crate::report::{Finding, ReaderVersion, exact_text};
use crate::schema::Schema;

use super::finding;

impl Catalog {
    /// The fields that a program with a locked schema writes, and that are gone where the type of today reads them and writes them again.
    pub(super) fn dropped(&self, event: &EventEntry, schema: &LockedSchema) -> Vec<Finding> {
        let Some(payload) = &schema.payload else { return Vec::new() };
        let mut found = Vec::new();
        for old in Schema::new(&payload.writes).variety() {
            let Some(new) = self.rewrite(&event.name, event.version, &old) else { continue };
            let Some(field) = gone(&old, &new) else { continue };
            let (read, kept) = (exact_text(&old), exact_text(&new));
            let warning = Finding {
                severity: Severity::Warning,
                field,
                reason: format!("is lost: the type reads {read} and keeps {kept}"),
                advice: "Let another alternative read it first, or keep the field.".into(),
                ..finding(event, event.version, Some(ReaderVersion::New))
            };
            add(warning, &mut found);
        }
        found
    }
}

/// Adds a finding about a field of which nothing is said yet.
pub(super) fn add(new: Finding, all: &mut Vec<Finding>) {
    let is_said = |known: &Finding| {
        (&known.event, known.locked_version, known.reader, &known.field)
            == (&new.event, new.locked_version, new.reader, &new.field)
    };
    if !all.iter().any(is_said) {
        all.push(new);
    }
}

/// The first field that holds something and is gone.
fn gone(old: &Value, new: &Value) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().find_map(|(name, value)| match new.get(name) {
                Some(kept) => gone(value, kept).map(|inner| below(name, &inner)),
                None => (!is_empty(value) && !is_renamed(value, old, new)).then(|| name.clone()),
            })
        }
        (Value::Array(old), Value::Array(new)) => {
            old.iter().zip(new).find_map(|(old, new)| gone(old, new)).map(|inner| below("[]", &inner))
        }
        _ => None,
    }
}

fn below(step: &str, inner: &str) -> String {
    if inner.starts_with('[') { format!("{step}{inner}") } else { format!("{step}.{inner}") }
}

/// What is often left out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    }
}

/// Whether another field holds it now: an alias.
fn is_renamed(value: &Value, old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    new.iter().any(|(name, kept)| kept == value && !old.contains_key(name))
}
