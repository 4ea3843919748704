//! Files that say which format they have.

mod unique;

use std::fs;
use std::path::Path;

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
    unique::keys(text).map_err(|error| {
        invalid(format!("{error}; a merge may have left both: put what they hold under one of them"))
    })?;
    serde_json::from_value(value).map_err(|error| invalid(format!("it is no {kind}: {error}")))
}

/// Writes a file as a whole or not at all: a reader meets no half of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |error: std::io::Error| invalid(format!("can't write {}: {error}", path.display()));
    let draft = path.with_extension("draft");
    fs::write(&draft, text).map_err(failed)?;
    fs::rename(&draft, path).map_err(failed)
}
