//! The events of the system as data: `[catalog]`.

use std::path::PathBuf;

use postrider::catalog::{Convention, Conventions};

use super::{Problem, Section};

/// The defaults.
pub(crate) const FILE: &str = "events.json";
pub(crate) const LOCK: &str = "events.lock.json";

/// Where the catalog is, and how its events are named.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    /// The file that the application writes.
    pub(crate) file: PathBuf,
    /// The lock.
    pub(crate) lock: PathBuf,
    /// The conventions, by stream.
    pub(crate) names: Vec<(String, Convention)>,
}

impl Catalog {
    /// Reads it.
    pub(crate) fn read(section: Option<Section<'_>>) -> Result<Self, Problem> {
        let mut catalog = Self { file: FILE.into(), lock: LOCK.into(), names: Vec::new() };
        let Some(mut section) = section else { return Ok(catalog) };
        if let Some(file) = section.text("file")? {
            catalog.file = file.into();
        }
        if let Some(lock) = section.text("lock")? {
            catalog.lock = lock.into();
        }
        for (stream, text) in section.texts("names")? {
            let convention = text.parse().map_err(|error| section.problem("names", error))?;
            catalog.names.push((stream, convention));
        }
        // The pattern that says most counts.
        catalog.names.sort_by_key(|(stream, _)| std::cmp::Reverse(stream.replace('*', "").len()));
        section.finish()?;
        Ok(catalog)
    }

    /// The conventions.
    pub(crate) fn conventions(&self) -> Conventions {
        let names = self.names.iter().cloned();
        names.fold(Conventions::default(), |all, (stream, convention)| all.with(stream, convention))
    }
}
