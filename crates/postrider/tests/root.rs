//! The root of the crate: what applications write with, and no more.

use std::collections::BTreeSet;

const LIBRARY: &str = include_str!("../src/lib.rs");
const CHANGES: &str = include_str!("../../../CHANGELOG.md");

/// The names of a `pub use` at the root: one, or those between braces. A trait and its derive share theirs.
fn names(of: &str) -> impl Iterator<Item = &str> {
    let after = of.rsplit_once("::").map_or(of, |(_, names)| names);
    after.trim_matches(['{', '}', '\n']).split(',').map(str::trim).filter(|name| !name.is_empty())
}

#[test]
fn the_root_has_as_many_names_as_the_changelog_says() {
    let uses = LIBRARY.split("\npub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let root: BTreeSet<&str> = uses.flat_map(|(statement, _)| names(statement)).collect();
    assert!(root.contains("Relay") && root.contains("Event"), "{root:?}");
    let line = format!("- The root has {} names:", root.len());
    assert!(CHANGES.contains(&line), "CHANGELOG.md must say {line:?} of {root:?}");
    assert!(root.len() <= 45, "stores, sinks and tools belong to `postrider::store`: {root:?}");
}
