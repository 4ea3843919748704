//! Events that move: another stream, aggregate or ordering key breaks no reader, but what depends on it.

use crate::lock::LockedSchema;
use crate::model::EventEntry;
use crate::problems::Severity;
use crate::report::Finding;

use super::{add, finding};

const STREAM: &str =
    "Subscriptions and topics that name the old stream no longer get it: check each of them.";
const ORDER: &str = "Events that are recorded before and after the change are not in order with each other.";
const AGGREGATE: &str =
    "Whoever looks for the events of the old aggregate no longer finds them: check each query.";

/// Warns of what the last schema of the lock has otherwise.
pub(super) fn warn(event: &EventEntry, version: u32, locked: &LockedSchema, all: &mut Vec<Finding>) {
    let is_ordered_by_aggregate = event.ordering_key == "aggregate" || locked.ordering_key == "aggregate";
    // A lock of the first version does not have the aggregate.
    let aggregate = locked.aggregate.as_ref().unwrap_or(&event.aggregate);
    let moved = [
        ("stream", &locked.stream, &event.stream, STREAM),
        ("aggregate", aggregate, &event.aggregate, if is_ordered_by_aggregate { ORDER } else { AGGREGATE }),
        ("ordering key", &locked.ordering_key, &event.ordering_key, ORDER),
    ];
    for (what, before, now, advice) in moved.into_iter().filter(|(_, before, now, _)| before != now) {
        let warning = Finding {
            severity: Severity::Warning,
            reason: format!("its {what} changes from `{before}` to `{now}`"),
            advice: advice.into(),
            ..finding(event, version, None)
        };
        add(warning, all);
    }
}
