//! References that lead nowhere: what they stand for is taken for any value, so a change of it is not noticed.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::EventEntry;
use crate::problems::Severity;
use crate::render::reference;
use crate::report::Finding;

use super::finding;

/// Warns of each reference of an event's schema that leads to no place of the schema.
pub(super) fn warnings(event: &EventEntry) -> Vec<Finding> {
    let Some(payload) = &event.payload else { return Vec::new() };
    let mut lost = BTreeSet::new();
    for schema in [&payload.writes, payload.reads()] {
        collect(schema, schema, &mut lost);
    }
    let warning = |reference: &str| Finding {
        severity: Severity::Warning,
        locked_version: None,
        reason: format!("can't be compared: reference `{reference}` leads to no part of its schema"),
        advice: "Put what it refers to under $defs of the schema, and refer to it as #/$defs/NAME.".into(),
        ..finding(event, event.version, None)
    };
    lost.into_iter().map(warning).collect()
}

fn collect<'s>(root: &Value, node: &'s Value, lost: &mut BTreeSet<&'s str>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| collect(root, item, lost)),
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get("$ref")
                && reference::pointer(to).is_none_or(|pointer| root.pointer(&pointer).is_none())
            {
                lost.insert(to);
            }
            for (name, inner) in fields {
                // These hold values, not schemas.
                if !matches!(name.as_str(), "enum" | "const" | "default" | "examples") {
                    collect(root, inner, lost);
                }
            }
        }
        _ => {}
    }
}
