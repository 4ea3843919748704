//! JSON Schema 2020-12 as the older draft that AsyncAPI documents hold, with all definitions under one roof.

use serde_json::{Map, Value, json};

use super::reference;

/// The schemas of one payload, by the names that they get in `components.schemas`: the payload itself first, then its
/// definitions.
///
/// A reference inside leads to a definition of the same payload, wherever the document puts it.
pub(super) fn schemas(name: &str, schema: &Value) -> Vec<(String, Value)> {
    let scope = Scope { name };
    let mut root = schema.clone();
    let mut definitions = Vec::new();
    for keyword in ["$defs", "definitions"] {
        let taken = root.as_object_mut().and_then(|object| object.remove(keyword));
        if let Some(Value::Object(found)) = taken {
            definitions.extend(found);
        }
    }
    let mut schemas = vec![(name.to_owned(), scope.converted(root))];
    for (definition, value) in definitions {
        schemas.push((scope.component(&definition), scope.converted(value)));
    }
    schemas
}

/// A text that `components` takes as a name. Two texts never become one name.
pub(super) fn component_name(text: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let mut name = String::new();
    for (at, letter) in text.char_indices() {
        // What looks like an escaped letter, such as `_2f_`, is none.
        let digits =
            text[at..].get(1..).unwrap_or_default().trim_start_matches(|next: char| next.is_ascii_hexdigit());
        let is_like_escaped = || {
            letter == '_'
                && digits.len() + 1 < text.len() - at
                && digits.starts_with(|next: char| next == '_' || !fits(next))
        };
        if fits(letter) && !is_like_escaped() {
            name.push(letter);
        } else {
            name.push_str(&format!("_{:x}_", u32::from(letter)));
        }
    }
    name
}

struct Scope<'n> {
    name: &'n str,
}

impl Scope<'_> {
    fn component(&self, definition: &str) -> String {
        format!("{}.{}", self.name, component_name(definition))
    }

    fn converted(&self, schema: Value) -> Value {
        let Value::Object(object) = schema else { return schema };
        let mut converted = Map::new();
        for (keyword, value) in object {
            self.convert(&mut converted, keyword, value);
        }
        // What `items` says is about the entries that follow the first ones.
        if let Some(first) = converted.remove("prefixItems")
            && let Some(rest) = converted.insert("items".to_owned(), first)
        {
            converted.insert("additionalItems".to_owned(), rest);
        }
        beside_others(converted)
    }

    fn convert(&self, into: &mut Map<String, Value>, keyword: String, value: Value) {
        match (keyword.as_str(), value) {
            ("$schema" | "$id" | "$comment" | "unevaluatedProperties" | "unevaluatedItems", _) => {}
            ("$ref", Value::String(reference)) => {
                into.insert(keyword, Value::String(self.reference(&reference)));
            }
            ("const" | "enum" | "default" | "examples", value) => {
                into.insert(keyword, value);
            }
            ("dependentRequired" | "dependentSchemas", Value::Object(found)) => {
                let dependencies = into.entry("dependencies").or_insert_with(|| json!({}));
                if let Some(dependencies) = dependencies.as_object_mut() {
                    dependencies.extend(found.into_iter().map(|(name, value)| (name, self.converted(value))));
                }
            }
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(found)) => {
                let found = found.into_iter().map(|(name, value)| (name, self.converted(value)));
                into.insert(keyword, Value::Object(found.collect()));
            }
            (_, Value::Array(values)) => {
                into.insert(keyword, values.into_iter().map(|value| self.converted(value)).collect());
            }
            (_, value) => {
                into.insert(keyword, self.converted(value));
            }
        }
    }

    /// Where a reference into the payload's own schema leads to in the document.
    fn reference(&self, reference: &str) -> String {
        let Some(pointer) = reference::pointer(reference) else { return reference.to_owned() };
        let definition = pointer.strip_prefix("/$defs/").or_else(|| pointer.strip_prefix("/definitions/"));
        match definition {
            Some(definition) => {
                let (name, rest) = definition.split_at(definition.find('/').unwrap_or(definition.len()));
                format!("#/components/schemas/{}{rest}", self.component(&reference::name(name)))
            }
            None => format!("#/components/schemas/{}{pointer}", self.name),
        }
    }
}

/// The older draft ignores what stands beside a reference.
fn beside_others(mut schema: Map<String, Value>) -> Value {
    if schema.len() > 1
        && let Some(reference) = schema.remove("$ref")
    {
        let mut all = vec![json!({ "$ref": reference })];
        if let Some(Value::Array(others)) = schema.remove("allOf") {
            all.extend(others);
        }
        schema.insert("allOf".to_owned(), Value::Array(all));
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texts_never_become_one_name() {
        let texts = [
            "a/b",
            "a_2f_b",
            "a_5f_2f_b",
            "_2f/",
            "/2f_",
            "a__b",
            "a_/b",
            "a_b",
            "a_add_b",
            "원",
            "_c6d0_",
            "a_2f",
            "a 2f_",
        ];
        let names: std::collections::BTreeSet<String> =
            texts.iter().map(|text| component_name(text)).collect();
        assert_eq!(names.len(), texts.len(), "{names:?}");
        assert_eq!(component_name("order_paid.v1"), "order_paid.v1", "most names stay as they are");
    }

    #[test]
    fn definitions_move_and_references_follow() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "OrderPaid",
            "type": "object",
            "properties": {
                "total": {"$ref": "#/$defs/Money", "description": "What was paid."},
                "again": {"$ref": "#"},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"$ref": "#/$defs/a~1b"}], "items": false},
                "$ref": {"type": "string", "default": {"$ref": "#/$defs/Money"}},
            },
            "$defs": {"Money": {"type": "object", "properties": {"unit": {"$ref": "#/$defs/a~1b"}}}, "a/b": {"type": "string"}},
        });
        let money = json!({"$ref": "#/components/schemas/OrderPaid.v1.Money"});
        let unit = json!({"$ref": "#/components/schemas/OrderPaid.v1.a_2f_b"});
        assert_eq!(
            schemas("OrderPaid.v1", &schema),
            [
                (
                    "OrderPaid.v1".to_owned(),
                    json!({
                        "title": "OrderPaid",
                        "type": "object",
                        "properties": {
                            "total": {"allOf": [money], "description": "What was paid."},
                            "again": {"$ref": "#/components/schemas/OrderPaid.v1"},
                            "pair": {"type": "array", "items": [{"type": "string"}, unit], "additionalItems": false},
                            "$ref": {"type": "string", "default": {"$ref": "#/$defs/Money"}},
                        },
                    })
                ),
                (
                    "OrderPaid.v1.Money".to_owned(),
                    json!({"type": "object", "properties": {"unit": {"$ref": "#/components/schemas/OrderPaid.v1.a_2f_b"}}})
                ),
                ("OrderPaid.v1.a_2f_b".to_owned(), json!({"type": "string"})),
            ]
        );
    }
}
