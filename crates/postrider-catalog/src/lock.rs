//! The lock: every schema that events were ever recorded with.

use std::collections::BTreeMap;
use std::path::Path;

use postrider_core::{DataSchemas, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::invalid;
use crate::model::{CatalogFile, EventEntry, PayloadSchema};
use crate::schema::PROBED;

/// The format of a lock's file that this version writes.
pub const LOCK_FORMAT: u32 = 1;

/// Every version of every event, with each schema that it has had. It belongs in version control, beside the code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    format: u32,
    pub(crate) events: BTreeMap<String, LockedEvent>,
}

/// An event type in the lock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockedEvent {
    /// Whether the system no longer has it, and meant to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) retired: bool,
    /// The schemas of each version, oldest first.
    pub(crate) versions: BTreeMap<u32, Vec<LockedSchema>>,
}

/// A schema that a version has, or had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockedSchema {
    pub(crate) hash: String,
    pub(crate) stream: String,
    /// Absent in locks of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) aggregate: Option<String>,
    pub(crate) ordering_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<PayloadSchema>,
}

impl Default for Lock {
    fn default() -> Self {
        Self { format: LOCK_FORMAT, events: BTreeMap::new() }
    }
}

impl Lock {
    /// An empty lock.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a lock.
    ///
    /// *On failure*: [`Invalid`](postrider_core::ErrorKind::Invalid): the text is no lock, one of a newer format, one with a key twice, or
    /// one whose schemas were edited by hand.
    pub fn parse(text: &str) -> Result<Self> {
        let lock: Self = crate::format::parse(text, "lock of events", LOCK_FORMAT)?;
        for (name, event) in &lock.events {
            for (version, schemas) in &event.versions {
                if schemas.iter().any(|schema| schema.hash != schema_hash(schema.payload.as_ref())) {
                    return Err(invalid(format!(
                        "{name} version {version}: a schema does not match its hash, so the lock was edited by hand; restore the \
                         file from version control and run: postrider catalog check --update"
                    )));
                }
            }
        }
        Ok(lock)
    }

    /// Writes the lock to a file.
    ///
    /// *On failure*: [`Invalid`](postrider_core::ErrorKind::Invalid): the file can't be written. The old file stays then.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        crate::format::write(path.as_ref(), &self.to_json())
    }

    /// The lock as JSON: the same lock gives the same text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Adds what is new in a catalog. Nothing is removed: what was recorded once may be replayed.
    pub fn update(&mut self, catalog: &CatalogFile) {
        for event in &catalog.events {
            let locked = self.events.entry(event.name.clone()).or_default();
            locked.retired = false;
            let schemas = locked.versions.entry(event.version).or_default();
            let schema = LockedSchema::of(event);
            match schemas.last_mut() {
                Some(last) if last.is_without_aggregate_of(&schema) => *last = schema,
                Some(last) if *last == schema => {}
                _ => schemas.push(schema),
            }
        }
    }

    /// Marks an event as one that the system no longer has.
    ///
    /// *On failure*: [`Invalid`](postrider_core::ErrorKind::Invalid): the lock does not have it.
    pub fn retire(&mut self, name: &str) -> Result<()> {
        match self.events.get_mut(name) {
            Some(event) => event.retired = true,
            None => return Err(invalid(format!("the lock has no event {name}, so it can't be retired"))),
        }
        Ok(())
    }
}

impl LockedSchema {
    /// Whether it is the same, but for the aggregate that a lock of the first version does not have.
    fn is_without_aggregate_of(&self, other: &Self) -> bool {
        self.aggregate.is_none() && *self == Self { aggregate: None, ..other.clone() }
    }

    pub(crate) fn of(event: &EventEntry) -> Self {
        Self {
            hash: schema_hash(event.payload.as_ref()),
            stream: event.stream.clone(),
            aggregate: Some(event.aggregate.clone()),
            ordering_key: event.ordering_key.clone(),
            payload: event.payload.clone(),
        }
    }
}

/// A name for a schema: the SHA-256 of what it writes and reads.
pub fn schema_hash(payload: Option<&PayloadSchema>) -> String {
    // Keys are sorted whatever the features of serde_json in the application are, so equal schemas have equal texts.
    let sorted = payload.map(|payload| PayloadSchema {
        writes: hashed(&payload.writes),
        reads: payload.reads.as_ref().map(hashed),
    });
    let text = serde_json::to_vec(&sorted).unwrap_or_default();
    let digest = Sha256::digest(text);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// A schema as it is hashed: how much its type was asked says nothing of the type.
fn hashed(schema: &Value) -> Value {
    let mut schema = sorted(schema);
    if let Value::Object(root) = &mut schema {
        root.remove(PROBED);
    }
    schema
}

/// A value whose keys are inserted by name, on every level.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let by_name: BTreeMap<&String, &Value> = fields.iter().collect();
            by_name.into_iter().map(|(name, inner)| (name.clone(), sorted(inner))).collect()
        }
        other => other.clone(),
    }
}

impl CatalogFile {
    /// The `dataschema` of each event with a schema. In the template, `{name}`, `{version}` and `{hash}` (the SHA-256 of the schema, in hex) are
    /// replaced; characters of a name that a URI does not hold are percent-encoded: `urn:sha256:{hash}`, or the address of a registry of yours.
    pub fn data_schemas(&self, template: &str) -> DataSchemas {
        let with_schema = self.events.iter().filter(|event| event.payload.is_some());
        let uri = |event: &EventEntry| {
            let hash = schema_hash(event.payload.as_ref());
            let hash = hash.trim_start_matches("sha256:");
            template
                .replace("{name}", &encoded(&event.name))
                .replace("{version}", &event.version.to_string())
                .replace("{hash}", hash)
        };
        with_schema.map(|event| (event.name.clone(), event.version, uri(event))).collect()
    }
}

/// A name as a part of a URI: everything but letters, digits and `-._~` is percent-encoded.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
