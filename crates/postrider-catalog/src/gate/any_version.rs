//! Handlers that take any version: a program of before a raise reads the new events with its old type.

use crate::lock::LockedEvent;
use crate::model::{CatalogFile, EventEntry};
use crate::problems::Severity;
use crate::report::{Finding, ReaderVersion};

use super::finding;

/// Warns of each of them, if the version of the event is above those in the lock.
pub(super) fn warnings(catalog: &CatalogFile, entries: &[&EventEntry], locked: &LockedEvent) -> Vec<Finding> {
    let (Some(newest), Some(last)) = (entries.last(), locked.versions.keys().next_back()) else {
        return Vec::new();
    };
    if newest.version <= *last {
        return Vec::new();
    }
    let takes_any = catalog.subscribers_of(newest).filter(|subscriber| {
        subscriber.handlers.get(&newest.name).is_some_and(|handler| handler.version.is_none())
    });
    takes_any
        .map(|subscriber| Finding {
            severity: Severity::Warning,
            reason: format!(
                "the handler of `{}` takes any version: where no upcaster is known, it reads version {} as if it were version {last}",
                subscriber.name, newest.version
            ),
            advice: "Deploy it before events of the new version are recorded, or let it take a version.".into(),
            ..finding(newest, *last, Some(ReaderVersion::Old))
        })
        .collect()
}
