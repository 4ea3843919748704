//! Files that say which format they have.

use postrider_core::Result;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::invalid;

/// Reads a file of this kind. The message says what it is instead.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, kind: &str, known: u32) -> Result<T> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        invalid(format!(
            "it is no {kind}: it is not valid JSON (line {}, column {})",
            error.line(),
            error.column()
        ))
    })?;
    match value.get("format").and_then(Value::as_u64) {
        None => return Err(invalid(format!("it is no {kind}: it has no `format`"))),
        Some(format) if format > u64::from(known) => {
            return Err(invalid(format!(
                "it has format {format}, and this version reads formats up to {known}; use a newer postrider"
            )));
        }
        Some(_) => {}
    }
    serde_json::from_value(value).map_err(|error| invalid(format!("it is no {kind}: {error}")))
}
