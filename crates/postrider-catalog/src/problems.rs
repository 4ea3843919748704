//! What is odd in a catalog: events that nobody publishes or receives, follow-ups in a circle, two events of one name.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::cycles::cycles;
use crate::routes::{Route, Routes};
use crate::{CatalogFile, EventEntry, PayloadSchema};

/// What [`difference`] says where only the sentences differ.
pub(crate) const MEANING: &str = "meaning";

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The catalog contradicts itself.
    Error,
    /// Something is likely forgotten or misspelled.
    Warning,
    /// It may be as it is meant.
    Information,
}

impl Display for Severity {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Information => "information",
        })
    }
}

/// Something odd in a catalog. Its text is one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// Two events have one name and version, and are not the same.
    Contradiction {
        /// The event type.
        event: String,
        /// The version that both have.
        version: u32,
        /// What differs, such as `stream`.
        differs: &'static str,
    },
    /// A handler waits for an event that nobody publishes.
    Unpublished {
        /// The event type.
        event: String,
        /// Whose handler it is.
        subscriber: String,
    },
    /// A handler records an event that the catalog does not have.
    UnknownFollowUp {
        /// The event that the handler takes.
        event: String,
        /// Whose handler it is.
        subscriber: String,
        /// What it records.
        follow_up: String,
    },
    /// Follow-ups lead back to where they began.
    Cycle {
        /// The events on the way; the first comes again at the end.
        events: Vec<String>,
    },
    /// An event has no subscriber.
    Unreceived {
        /// The event type.
        event: String,
        /// Its version.
        version: u32,
    },
}

impl Problem {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Contradiction { .. } => Severity::Error,
            Self::Unpublished { .. } | Self::UnknownFollowUp { .. } | Self::Cycle { .. } => Severity::Warning,
            Self::Unreceived { .. } => Severity::Information,
        }
    }
}

impl Display for Problem {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction { event, version, differs } => write!(
                formatter,
                "`{event}` version {version} is defined twice with a different {differs}; a name and version must \
                 have one definition."
            ),
            Self::Unpublished { event, subscriber } => {
                write!(
                    formatter,
                    "`{subscriber}` has a handler for `{event}`, but nobody publishes that event."
                )
            }
            Self::UnknownFollowUp { event, subscriber, follow_up } => write!(
                formatter,
                "The handler of `{subscriber}` for `{event}` records `{follow_up}`, which is no event of this catalog."
            ),
            Self::Cycle { events } => {
                write!(formatter, "Follow-up events form a cycle: {}.", events.join(" → "))
            }
            Self::Unreceived { event, version } => {
                write!(formatter, "Nobody receives `{event}` version {version}.")
            }
        }
    }
}

/// What is odd in a catalog, the worst first. It looks at every event and every route once.
pub fn problems(catalog: &CatalogFile) -> Vec<Problem> {
    let routes = Routes::of(catalog);
    let mut problems = contradictions(&routes);
    problems.extend(unpublished(catalog, &routes));
    problems.extend(unknown_follow_ups(catalog, &routes));
    let cycles = cycles(&routes.follow_ups()).into_iter();
    problems.extend(
        cycles.map(|events| Problem::Cycle { events: events.into_iter().map(str::to_owned).collect() }),
    );
    problems.extend(
        routes
            .events()
            .into_iter()
            .filter(|(index, _)| routes.of_event(*index).is_empty())
            .map(|(_, event)| Problem::Unreceived { event: event.name.clone(), version: event.version }),
    );
    problems
}

fn contradictions(routes: &Routes<'_>) -> Vec<Problem> {
    let mut groups: BTreeMap<(&str, u32), Vec<&EventEntry>> = BTreeMap::new();
    for (_, event) in routes.events() {
        groups.entry((&event.name, event.version)).or_default().push(event);
    }
    let contradiction = |group: &Vec<&EventEntry>| {
        let (first, others) = group.split_first()?;
        let differs = others.iter().find_map(|other| difference(first, other))?;
        Some(Problem::Contradiction { event: first.name.clone(), version: first.version, differs })
    };
    groups.values().filter_map(contradiction).collect()
}

/// What two definitions of one event disagree about. Publishers may differ: several programs may record an event.
pub(crate) fn difference(one: &EventEntry, other: &EventEntry) -> Option<&'static str> {
    [
        ("stream", one.stream != other.stream),
        ("aggregate", one.aggregate != other.aggregate),
        ("ordering key", one.ordering_key != other.ordering_key),
        ("numbering", one.sequenced != other.sequenced),
        ("payload", payloads_differ(one, other)),
        ("list of upcasters", one.upcast_from != other.upcast_from),
        (MEANING, one.summary != other.summary),
    ]
    .into_iter()
    .find_map(|(what, differs)| differs.then_some(what))
}

fn payloads_differ(one: &EventEntry, other: &EventEntry) -> bool {
    let undescribed = |event: &EventEntry| event.payload.as_ref().map(PayloadSchema::undescribed);
    one.payload != other.payload && undescribed(one) != undescribed(other)
}

fn unpublished(catalog: &CatalogFile, routes: &Routes<'_>) -> Vec<Problem> {
    let declared = catalog.events.iter().filter(|event| !event.publishers.is_empty());
    let mut published: HashSet<&str> = declared.map(|event| event.name.as_str()).collect();
    let recorded =
        (0..catalog.events.len()).flat_map(|index| routes.of_event(index)).flat_map(Route::follow_ups);
    published.extend(recorded.map(String::as_str).filter(|name| routes.knows(name)));
    let mut problems = Vec::new();
    for subscriber in &catalog.subscribers {
        for event in subscriber.handlers.keys() {
            if event != "*" && !published.contains(event.as_str()) {
                problems
                    .push(Problem::Unpublished { event: event.clone(), subscriber: subscriber.name.clone() });
            }
        }
    }
    problems
}

fn unknown_follow_ups(catalog: &CatalogFile, routes: &Routes<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for subscriber in &catalog.subscribers {
        for (event, handler) in &subscriber.handlers {
            for follow_up in handler.follow_ups.iter().filter(|name| !routes.knows(name)) {
                problems.push(Problem::UnknownFollowUp {
                    event: event.clone(),
                    subscriber: subscriber.name.clone(),
                    follow_up: follow_up.clone(),
                });
            }
        }
    }
    problems
}
