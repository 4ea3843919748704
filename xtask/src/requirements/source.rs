//! Which functions name which requirements in their doc comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::page::is_id;
use crate::task_error::TaskError;
use crate::workspace;

/// The ids that the doc comments of functions name, by the function's name.
#[derive(Debug, Default)]
pub(super) struct Source {
    named: BTreeMap<String, BTreeSet<String>>,
}

impl Source {
    /// All Rust files of the crates, systems and examples.
    pub(super) fn of_workspace() -> Result<Self, TaskError> {
        let mut source = Self::default();
        for folder in ["crates", "systems", "examples", "xtask"] {
            source.read(&workspace::root().join(folder))?;
        }
        Ok(source)
    }

    /// Of these texts.
    #[cfg(test)]
    pub(super) fn of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut source = Self::default();
        texts.into_iter().for_each(|text| source.add(text));
        source
    }

    /// Whether a function of this name has the id in its doc comment.
    pub(super) fn names(&self, function: &str, id: &str) -> bool {
        self.named.get(function).is_some_and(|ids| ids.contains(id))
    }

    fn read(&mut self, folder: &Path) -> Result<(), TaskError> {
        let unreadable = |error| TaskError::new(format!("could not read {}: {error}", folder.display()));
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() {
                self.read(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.add(&fs::read_to_string(&path).map_err(unreadable)?);
            }
        }
        Ok(())
    }

    fn add(&mut self, text: &str) {
        let mut ids = BTreeSet::new();
        for line in text.lines().map(str::trim) {
            if let Some(comment) = line.strip_prefix("///") {
                ids.extend(words(comment).filter(|word| is_id(word)).map(str::to_owned));
            } else if let Some(name) = function(line) {
                self.named.entry(name.to_owned()).or_default().append(&mut ids);
            } else if !line.starts_with("#[") && !line.ends_with(")]") {
                ids.clear();
            }
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_ascii_alphanumeric())
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualifiers = ["", "async ", "pub ", "pub async "];
    let name = after.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next()?;
    (qualifiers.contains(&before) && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_belong_to_the_function_below_them_alone() {
        let text = "/// U1: this,\n/// and E12.\n#[tokio::test(flavor = \"multi_thread\")]\nasync fn one() {}\n\n/// U3.\nconst A: u8 = 1;\nfn two() {}\n";
        let source = Source::of_texts([text]);
        assert!(source.names("one", "U1") && source.names("one", "E12"));
        assert!(!source.names("two", "U3") && !source.names("two", "U1") && !source.names("three", "U1"));
    }
}
