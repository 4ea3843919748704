//! What the catalog has and the lock does not: nobody notices when it changes.

use crate::lock::{Lock, LockedSchema};
use crate::model::{CatalogFile, EventEntry};
use crate::problems::Severity;
use crate::report::{Finding, Report};

impl Report {
    /// Adds an error for each event whose version or schema is not the last one in the lock: a change of it would not be noticed. The
    /// lock is up to date after `postrider catalog check --update`, or [`Lock::update`].
    pub fn check_lock(&mut self, catalog: &CatalogFile, lock: &Lock) {
        let missing = catalog.events.iter().filter_map(|event| Some((event, missing(event, lock)?)));
        self.findings.extend(missing.map(|(event, what)| Finding {
            advice: "Run: postrider catalog check --update, and commit the lock.".into(),
            ..Finding::of(
                Severity::Error,
                &event.name,
                Some(event.version),
                format!("{what} is not in the lock, so a later change of it would not be noticed"),
            )
        }));
    }
}

/// What of an event the lock does not have.
fn missing(event: &EventEntry, lock: &Lock) -> Option<&'static str> {
    let Some(locked) = lock.events.get(&event.name).filter(|locked| !locked.retired) else {
        return Some("this event");
    };
    let Some(last) = locked.versions.get(&event.version).and_then(|schemas| schemas.last()) else {
        return Some("this version");
    };
    let now = LockedSchema::of(event);
    [
        ("its schema", last.hash != now.hash),
        ("its stream", last.stream != now.stream),
        // A lock of the first version does not have the aggregate.
        ("its aggregate", last.aggregate.is_some() && last.aggregate != now.aggregate),
        ("its ordering key", last.ordering_key != now.ordering_key),
    ]
    .into_iter()
    .find_map(|(what, differs)| differs.then_some(what))
}
