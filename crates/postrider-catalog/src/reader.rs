//! Reads payloads as the types of events, and says why it can't without a word of the payload.

use std::collections::HashSet;
use std::sync::Arc;

use postrider_core::Recorded;
use postrider_relay::Decode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::model::PayloadSchema;
use crate::quiet::quietly;
use crate::report::exact_text;
use crate::schema::Schema;

/// Reads a payload as the type of an event; the error does not quote the payload.
pub(crate) type DecodeFn = Arc<dyn Fn(&Recorded, Option<Value>) -> Result<(), String> + Send + Sync>;

/// Reads a payload as the type of an event, and writes it again.
pub(crate) type RewriteFn = Arc<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

/// Reads payloads as a type and writes them again. Nothing for a payload that the type does not read.
pub(crate) fn rewriting<T: Serialize + DeserializeOwned + 'static>() -> RewriteFn {
    Arc::new(|payload| {
        let text = exact_text(payload);
        quietly(|| serde_json::to_value(serde_json::from_str::<T>(&text).ok()?).ok()).flatten()
    })
}

/// Reads payloads as a type of which no field is known by name.
pub(crate) fn without_schema<T: DeserializeOwned + Send + 'static>() -> DecodeFn {
    named::<T>(HashSet::new())
}

/// Reads payloads as a type. An error names the fields that its schema names; the key of a map is a word of the payload.
pub(crate) fn of<T: DeserializeOwned + Send + 'static>(payload: &PayloadSchema) -> DecodeFn {
    let mut names = HashSet::new();
    collect(payload.reads(), &mut names);
    named::<T>(names)
}

/// Reads payloads as a type, of which these fields may be named.
fn named<T: DeserializeOwned + Send + 'static>(names: HashSet<String>) -> DecodeFn {
    Arc::new(move |event, newer| {
        let again = newer.clone();
        match quietly(|| T::decode(event, newer)) {
            None => Err("its type panicked".to_owned()),
            Some(Ok(_)) => Ok(()),
            Some(Err(failure)) => {
                let told = quietly(|| reason::<T>(event, again, &names)).flatten();
                Err(told.unwrap_or_else(|| failure.to_string()))
            }
        }
    })
}

/// Reads a payload by its schema alone.
pub(crate) fn by_schema(reads: Value) -> DecodeFn {
    Arc::new(move |event, newer| {
        let value = newer.or_else(|| serde_json::from_str(event.payload.as_json()?).ok());
        let Some(value) = value else { return Err("its payload is not JSON".to_owned()) };
        match Schema::new(&reads).refusal(&value) {
            None => Ok(()),
            Some(refusal) => Err(refusal),
        }
    })
}

/// The names of all fields and variants of a schema.
fn collect(node: &Value, names: &mut HashSet<String>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().cloned());
            }
            names.extend(Schema::new(node).aliases().map(str::to_owned));
            fields.values().for_each(|field| collect(field, names));
        }
        _ => {}
    }
}

/// Where reading failed, and why. Nothing if it does not fail at a place.
fn reason<T: DeserializeOwned>(
    event: &Recorded,
    newer: Option<Value>,
    names: &HashSet<String>,
) -> Option<String> {
    let error = match newer {
        Some(value) => serde_path_to_error::deserialize::<_, T>(value).err()?,
        None => {
            let mut json = serde_json::Deserializer::from_str(event.payload.as_json()?);
            serde_path_to_error::deserialize::<_, T>(&mut json).err()?
        }
    };
    let mut path = String::new();
    for segment in error.path() {
        let name = match segment {
            Segment::Seq { index } => {
                path.push_str(&format!("[{index}]"));
                continue;
            }
            Segment::Map { key } if names.contains(key) => key.as_str(),
            Segment::Enum { variant } if names.contains(variant) => variant.as_str(),
            Segment::Map { .. } | Segment::Enum { .. } => "*",
            Segment::Unknown => "?",
        };
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    }
    let reason = without_payload(error.inner());
    Some(if path.is_empty() { reason } else { format!("field {path}: {reason}") })
}

/// What is wrong, without what the payload says: the text of an error may quote it.
fn without_payload(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let core = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    if core.starts_with("missing field") || core.starts_with("duplicate field") {
        return core.to_owned();
    }
    if core.starts_with("unknown field") {
        return "it has a field that its type denies".to_owned();
    }
    // Only what serde says by itself ends so: a type's own text may quote the payload there too.
    let is_serdes = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant "]
        .iter()
        .any(|beginning| core.starts_with(beginning));
    match core.rfind(", expected ").filter(|_| is_serdes) {
        Some(at) => format!("expected {}", &core[at + ", expected ".len()..]),
        None if error.is_syntax() || error.is_eof() => "it is not valid JSON".to_owned(),
        None => "its type rejects it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::Error as _;

    use super::without_payload;

    #[test]
    fn what_a_type_says_by_itself_is_not_repeated() {
        let own = serde_json::Error::custom("bad code secret, expected something unlike secret");
        assert_eq!(without_payload(&own), "its type rejects it");
        let serdes = serde_json::from_str::<u64>("\"secret\"").expect_err("no integer");
        assert_eq!(without_payload(&serdes), "expected u64");
    }
}
