//! What a value has to look like: as much of JSON Schema as `kubernetes.schema.json` uses.

use serde_json::Value;

/// What is wrong with a value, each with where.
pub(crate) fn faults(value: &Value, schema: &Value, definitions: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(value, schema, definitions, "", &mut found);
    found
}

fn look(value: &Value, schema: &Value, definitions: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or_default();
        assert!(definitions[name].is_object(), "the schema has no {name}");
        return look(value, &definitions[name], definitions, place, found);
    }
    let mut fault = |what: String| found.push(format!("{place}: {what}"));
    if let Some(all) = schema["enum"].as_array().filter(|all| !all.contains(value)) {
        fault(format!("{value} is none of {all:?}"));
    }
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.contains(&kind(value)) {
        return fault(format!("{value} is not of the type {}", kinds.join(" or ")));
    }
    if let Some(number) = value.as_i64() {
        let least = schema["minimum"].as_i64().is_some_and(|least| number < least);
        let most = schema["maximum"].as_i64().is_some_and(|most| number > most);
        if least || most {
            fault(format!("{number} is out of bounds"));
        }
    }
    if let Some(text) = value.as_str() {
        if schema["minLength"].as_u64().is_some_and(|least| (text.len() as u64) < least) {
            fault("it is empty".to_owned());
        }
        if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| !fits(text, pattern)) {
            fault(format!("{text:?} is no {pattern}"));
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        look(item, &schema["items"], definitions, &format!("{place}[{index}]"), found);
    }
    let Some(table) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !table.contains_key(name) {
            found.push(format!("{place}: {name} is missing"));
        }
    }
    for (name, inner) in table {
        let place = format!("{place}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => found.push(format!("{place}: there is no such field")),
            (Value::Null, rest) => look(inner, rest, definitions, &place, found),
            (known, _) => look(inner, known, definitions, &place, found),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::Null => "null",
    }
}

/// The two patterns that there are, by name: regular expressions would be a dependency.
fn fits(text: &str, pattern: &str) -> bool {
    match pattern {
        "dns-label" => {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            (1..=63).contains(&text.len())
                && text.chars().all(inner)
                && !text.starts_with('-')
                && !text.ends_with('-')
        }
        "quantity" => {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            text.len() > unit.len() && ["", "m", "k", "Ki", "M", "Mi", "G", "Gi"].contains(&unit)
        }
        other => panic!("there is no pattern {other:?}"),
    }
}
