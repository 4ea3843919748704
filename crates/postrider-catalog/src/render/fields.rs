//! The fields of a payload as rows of a table.

use std::collections::BTreeMap;

use serde_json::Value;

use super::plain_words::Schema;

/// A field of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// Its name; a field of a field is `address.city`, one of a list's entries `entries[].amount`.
    pub(super) name: String,
    /// Its type in plain words.
    pub(super) kind: String,
    /// Whether it is always there.
    pub(super) required: bool,
    /// What it means.
    pub(super) meaning: String,
}

/// The fields of a payload, by name.
pub(super) fn fields(schema: &Value) -> Vec<Field> {
    let mut fields = Fields::default();
    fields.add(Schema::root(schema), "", true, &mut Vec::new());
    fields.by_name.into_values().collect()
}

#[derive(Default)]
struct Fields {
    by_name: BTreeMap<String, Field>,
}

impl Fields {
    /// Adds the fields of an object. `required` says whether the object itself is always there, `inside` which types it is part
    /// of: one that contains itself is listed once.
    fn add(&mut self, schema: Schema<'_>, path: &str, required: bool, inside: &mut Vec<String>) {
        if let Some((name, target)) = schema.reference()
            && !inside.contains(&name)
        {
            inside.push(name);
            self.add(target, path, required, inside);
            inside.pop();
        }
        for part in schema.list("allOf") {
            self.add(part, path, required, inside);
        }
        let variants: Vec<Schema<'_>> = schema.list("oneOf").chain(schema.list("anyOf")).collect();
        if !variants.is_empty() {
            self.add_variants(&variants, path, required, inside);
        }
        let Some(properties) = schema.object().and_then(|object| object.get("properties")?.as_object())
        else {
            return;
        };
        let demanded = schema.object().and_then(|object| object.get("required")?.as_array());
        for (name, value) in properties {
            let is_demanded = demanded.is_some_and(|names| names.iter().any(|demanded| demanded == name));
            let field = schema.part(value);
            let name = format!("{path}{name}");
            self.insert(Field {
                kind: field.in_words(),
                required: required && is_demanded,
                meaning: meaning(field),
                name: name.clone(),
            });
            self.add_inside(field, &name, required && is_demanded, inside);
        }
    }

    /// The fields of what a field holds: an object, or a list of them.
    fn add_inside(&mut self, field: Schema<'_>, name: &str, required: bool, inside: &mut Vec<String>) {
        match field.object().and_then(|object| object.get("items")) {
            Some(items) => self.add(field.part(items), &format!("{name}[]."), required, inside),
            None => self.add(field, &format!("{name}."), required, inside),
        }
    }

    /// A field is required if every variant demands it.
    fn add_variants(
        &mut self,
        variants: &[Schema<'_>],
        path: &str,
        required: bool,
        inside: &mut Vec<String>,
    ) {
        let variants = variants.iter().map(|variant| {
            let mut fields = Self::default();
            fields.add(*variant, path, required, inside);
            fields.by_name
        });
        let mut variants: Vec<BTreeMap<String, Field>> = variants.collect();
        let count = variants.len();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for name in variants.iter().flat_map(BTreeMap::keys) {
            *seen.entry(name.clone()).or_default() += 1;
        }
        for field in variants.iter_mut().flat_map(|variant| std::mem::take(variant).into_values()) {
            let everywhere = seen.get(&field.name) == Some(&count);
            self.insert(Field { required: field.required && everywhere, ..field });
        }
    }

    fn insert(&mut self, field: Field) {
        let Some(known) = self.by_name.get_mut(&field.name) else {
            self.by_name.insert(field.name.clone(), field);
            return;
        };
        known.required &= field.required;
        if known.kind != field.kind {
            known.kind = both(&known.kind, &field.kind);
        }
        if known.meaning.is_empty() {
            known.meaning = field.meaning;
        }
    }
}

/// `always a` and `always b` become `one of a, b`.
fn both(one: &str, other: &str) -> String {
    let Some(value) = other.strip_prefix("always ") else { return format!("{one}; or {other}") };
    match one.strip_prefix("always ").or_else(|| one.strip_prefix("one of ")) {
        Some(values) => format!("one of {values}, {value}"),
        None => format!("{one}; or {other}"),
    }
}

/// The description, of the field or else of its type, and the default.
fn meaning(field: Schema<'_>) -> String {
    let target = || field.reference().and_then(|(_, target)| target.text("description"));
    let described = field.text("description").or_else(target).unwrap_or_default();
    let mut meaning = described.split_whitespace().collect::<Vec<_>>().join(" ");
    let default =
        field.object().and_then(|object| object.get("default")).filter(|default| !default.is_null());
    if let Some(default) = default {
        let separator = if meaning.is_empty() { "" } else { " " };
        meaning.push_str(&format!("{separator}Default: `{default}`."));
    }
    meaning
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(schema: &Value) -> Vec<String> {
        let row = |field: &Field| {
            let required = if field.required { "required" } else { "optional" };
            format!("{}: {}, {required}. {}", field.name, field.kind, field.meaning)
        };
        fields(schema).iter().map(row).collect()
    }

    #[test]
    fn fields_of_fields_and_of_lists_have_rows_of_their_own() {
        let schema = json!({
            "type": "object",
            "required": ["order", "lines"],
            "properties": {
                "order": {"type": "integer", "description": "The order's\nnumber."},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
                "note": {"type": ["string", "null"], "default": "none"},
            },
            "$defs": {"Line": {
                "type": "object", "description": "A line.", "required": ["sku"],
                "properties": {"sku": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
            }},
        });
        let rows = rows(&schema);
        assert_eq!(rows[0], "lines: list of object `Line`, required. ");
        assert!(rows.contains(&"lines[].sku: text, required. ".to_owned()), "{rows:?}");
        assert!(rows.contains(&"note: text or null, optional. Default: `\"none\"`.".to_owned()), "{rows:?}");
        assert!(rows.contains(&"order: whole number, required. The order's number.".to_owned()), "{rows:?}");
        assert!(rows.contains(&"lines[].parts: list of object `Line`, optional. ".to_owned()), "{rows:?}");
        assert_eq!(rows.len(), 5, "a type that contains itself is listed once: {rows:?}");
    }

    #[test]
    fn a_field_of_one_variant_is_not_required() {
        let schema = json!({"oneOf": [
            {"type": "object", "required": ["kind", "card"], "properties": {"kind": {"const": "card"}, "card": {"type": "string"}}},
            {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "cash"}}},
        ]});
        assert_eq!(rows(&schema), ["card: text, optional. ", "kind: one of `card`, `cash`, required. "]);
    }
}
