//! A catalog in the formats that people and other tools read: pure functions of the file.

mod asyncapi;
mod draft7;
mod event_catalog;
mod fields;
mod markdown;
mod mermaid;
mod plain_words;
pub(crate) mod reference;

use serde::Serialize;
use serde_json::Value;

use crate::CatalogFile;

pub use asyncapi::asyncapi;
pub use event_catalog::event_catalog;
pub use markdown::markdown;
pub use mermaid::mermaid;

/// A file to write, of an output that is more than one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// Its path, relative to the folder of the output, with `/` between the folders.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// The catalog as its own file: JSON over several lines. The same catalog gives the same text, in whatever order it was built.
pub fn json(catalog: &CatalogFile) -> String {
    let mut ordered = catalog.clone();
    ordered.events.sort_by(|one, other| (&one.name, one.version).cmp(&(&other.name, other.version)));
    ordered.subscribers.sort_by(|one, other| one.name.cmp(&other.name));
    for payload in ordered.events.iter_mut().filter_map(|event| event.payload.as_mut()) {
        payload.writes.sort_all_objects();
        payload.reads.iter_mut().for_each(Value::sort_all_objects);
    }
    pretty(&ordered)
}

/// JSON over several lines, with a line break at the end.
fn pretty(value: &impl Serialize) -> String {
    // Neither the model nor a JSON value has what JSON can't write: keys are texts.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
