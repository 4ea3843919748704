//! The type of a field in plain words, from its JSON Schema.

use serde_json::{Map, Value};

use super::reference;

/// How deep a list of lists is followed.
const DEEPEST: usize = 8;

/// A schema and where its references lead to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'s> {
    root: &'s Value,
    value: &'s Value,
}

impl<'s> Schema<'s> {
    /// The schema of a whole payload.
    pub(super) fn root(root: &'s Value) -> Self {
        Self { root, value: root }
    }

    /// A part of it.
    pub(super) fn part(self, value: &'s Value) -> Self {
        Self { value, ..self }
    }

    /// What it says about itself; nothing if it is `true` or `false`.
    pub(super) fn object(self) -> Option<&'s Map<String, Value>> {
        self.value.as_object()
    }

    /// A keyword that is a text.
    pub(super) fn text(self, keyword: &str) -> Option<&'s str> {
        self.value.get(keyword)?.as_str()
    }

    /// The schemas of a keyword that is a list.
    pub(super) fn list(self, keyword: &str) -> impl Iterator<Item = Schema<'s>> {
        let list = self.value.get(keyword).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        list.iter().map(move |value| self.part(value))
    }

    /// The name and the schema that it refers to.
    pub(super) fn reference(self) -> Option<(String, Schema<'s>)> {
        let pointer = reference::pointer(self.text("$ref")?)?;
        let target = self.root.pointer(&pointer)?;
        Some((reference::name(pointer.rsplit('/').next().unwrap_or_default()), self.part(target)))
    }

    /// The type in plain words.
    pub(super) fn in_words(self) -> String {
        self.words(DEEPEST)
    }

    fn words(self, deepest: usize) -> String {
        let Some(object) = self.object().filter(|object| !object.is_empty()) else {
            return "anything".to_owned();
        };
        if deepest == 0 {
            return "…".to_owned();
        }
        if let Some(constant) = object.get("const") {
            return format!("always {}", code(constant));
        }
        if let Some(values) = object.get("enum").and_then(Value::as_array) {
            return one_of(values);
        }
        if let Some((name, target)) = self.reference() {
            let words = target.words(deepest - 1);
            return if words == "object" { format!("object `{name}`") } else { words };
        }
        if let Some(words) = self.alternatives(deepest) {
            return words;
        }
        match object.get("type") {
            Some(Value::Array(types)) => {
                let words = types.iter().filter_map(Value::as_str).map(|name| self.of_type(name, deepest));
                or(words.collect())
            }
            Some(Value::String(name)) => self.of_type(name, deepest),
            _ if object.contains_key("properties") => "object".to_owned(),
            _ => "anything".to_owned(),
        }
    }

    /// `oneOf`, `anyOf` and `allOf`.
    fn alternatives(self, deepest: usize) -> Option<String> {
        let all: Vec<Schema<'_>> = self.list("allOf").collect();
        if let [only] = all.as_slice() {
            return Some(only.words(deepest - 1));
        }
        let several: Vec<Schema<'_>> = self.list("oneOf").chain(self.list("anyOf")).collect();
        if several.is_empty() {
            return None;
        }
        // An enumeration whose values have a meaning of their own each.
        let values: Option<Vec<Value>> =
            several.iter().map(|schema| schema.value.get("const").cloned()).collect();
        if let Some(values) = values {
            return Some(one_of(&values));
        }
        Some(or(several.iter().map(|schema| schema.words(deepest - 1)).collect()))
    }

    fn of_type(self, name: &str, deepest: usize) -> String {
        match name {
            "string" => text_of(self.text("format")).to_owned(),
            "integer" if self.value.get("minimum").and_then(Value::as_f64) == Some(0.0) => {
                "whole number, 0 or more".to_owned()
            }
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "null" => "null".to_owned(),
            "array" => self.of_list(deepest),
            "object" => match self.value.get("additionalProperties") {
                Some(values) if values.is_object() && self.value.get("properties").is_none() => {
                    format!("map of names to {}", self.part(values).words(deepest - 1))
                }
                _ => "object".to_owned(),
            },
            other => other.to_owned(),
        }
    }

    fn of_list(self, deepest: usize) -> String {
        let parts: Vec<String> = self.list("prefixItems").map(|part| part.words(deepest - 1)).collect();
        if !parts.is_empty() {
            return format!("list of exactly {}", parts.join(", "));
        }
        match self.value.get("items") {
            Some(items) => match self.part(items).words(deepest - 1) {
                words if words == "anything" => "list".to_owned(),
                words => format!("list of {words}"),
            },
            None => "list".to_owned(),
        }
    }
}

fn text_of(format: Option<&str>) -> &str {
    match format {
        Some("date-time") => "date and time",
        Some("email") => "email address",
        Some("uri" | "url") => "URL",
        Some("uuid") => "UUID",
        Some(other @ ("date" | "time" | "duration")) => other,
        _ => "text",
    }
}

fn one_of(values: &[Value]) -> String {
    match values {
        [only] => format!("always {}", code(only)),
        several => format!("one of {}", several.iter().map(code).collect::<Vec<_>>().join(", ")),
    }
}

fn code(value: &Value) -> String {
    format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Each once; `null` comes last.
fn or(mut words: Vec<String>) -> String {
    words.sort_by_key(|word| word == "null");
    let mut known = Vec::new();
    for word in words {
        if !known.contains(&word) {
            known.push(word);
        }
    }
    let separator = if known.iter().any(|word| word.contains(", ")) { "; or " } else { " or " };
    known.join(separator)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_type_is_said_in_plain_words() {
        for (schema, words) in [
            (json!({"type": "string"}), "text"),
            (json!({"type": "string", "format": "uuid"}), "UUID"),
            (json!({"type": ["string", "null"], "format": "date-time"}), "date and time or null"),
            (json!({"type": "integer", "format": "int64"}), "whole number"),
            (json!({"type": "integer", "format": "uint32", "minimum": 0}), "whole number, 0 or more"),
            (json!({"type": ["integer", "null"], "minimum": 0}), "whole number, 0 or more; or null"),
            (json!({"type": "boolean"}), "true or false"),
            (json!({"type": "array", "items": {"type": "string"}}), "list of text"),
            (json!({"type": "object", "additionalProperties": {"type": "number"}}), "map of names to number"),
            (json!({"enum": ["EUR", "KRW"]}), "one of `EUR`, `KRW`"),
            (json!({"oneOf": [{"const": "a", "description": "A."}, {"const": "b"}]}), "one of `a`, `b`"),
            (json!({"const": 1}), "always `1`"),
            (json!({"anyOf": [{"$ref": "#/$defs/Money"}, {"type": "null"}]}), "object `Money` or null"),
            (json!({"allOf": [{"$ref": "#/$defs/Code"}], "description": "A code."}), "text"),
            (json!({"type": "array", "items": {"$ref": "#/$defs/Money"}}), "list of object `Money`"),
            (
                json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}),
                "list of exactly text, number",
            ),
            (json!({"$ref": "#/$defs/Missing"}), "anything"),
            (json!(true), "anything"),
        ] {
            let root = json!({
                "$defs": {"Money": {"type": "object", "properties": {}}, "Code": {"type": "string"}},
                "properties": {"field": schema},
            });
            let field = Schema::root(&root).part(&root["properties"]["field"]);
            assert_eq!(field.in_words(), words, "{}", root["properties"]["field"]);
        }
    }

    #[test]
    fn a_type_that_contains_itself_has_an_end() {
        let root = json!({"$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}, "$ref": "#/$defs/Tree"});
        assert!(Schema::root(&root).in_words().ends_with('…'));
    }
}
