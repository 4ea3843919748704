//! The `dataschema` of CloudEvents.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The `dataschema` of events, by type and version. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataSchemas(Arc<HashMap<String, BTreeMap<u32, String>>>);

impl DataSchemas {
    /// The URI of a schema.
    pub fn of(&self, event_type: &str, version: u32) -> Option<&str> {
        self.0.get(event_type)?.get(&version).map(String::as_str)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, u32, String)> for DataSchemas {
    /// From event types, versions and URIs.
    fn from_iter<I: IntoIterator<Item = (String, u32, String)>>(schemas: I) -> Self {
        let mut all: HashMap<String, BTreeMap<u32, String>> = HashMap::new();
        for (event_type, version, uri) in schemas {
            all.entry(event_type).or_default().insert(version, uri);
        }
        Self(Arc::new(all))
    }
}
