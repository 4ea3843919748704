//! The metrics of retention, through the `metrics` facade.

use metrics::{counter, gauge};
use postrider::metrics::{Kind, Metric};

const FAILED: &str = "postrider_retention_failed_total";
const TAKEN: &str = "postrider_retention_taken_total";
const SECONDS: &str = "postrider_retention_seconds";
const DONE: &str = "postrider_retention_done_timestamp_seconds";

/// Every metric that retention emits.
const METRICS: &[Metric] = &[
    Metric {
        name: TAKEN,
        kind: Kind::Counter,
        labels: &["what"],
        help: "rows that retention processed: `events` of the log, `marks` of inboxes, `archived` events of the archive",
    },
    Metric { name: SECONDS, kind: Kind::Gauge, labels: &[], help: "how long the last retention run took" },
    Metric {
        name: DONE,
        kind: Kind::Gauge,
        labels: &[],
        help: "when this relay last finished a retention run",
    },
    Metric {
        name: FAILED,
        kind: Kind::Counter,
        labels: &[],
        help: "retention runs that failed and will be retried",
    },
];

/// Says what they mean, and shows what is counted at 0.
pub(super) fn begin(tasks: impl Iterator<Item = &'static str>) {
    METRICS.iter().for_each(Metric::describe);
    counter!(FAILED).increment(0);
    tasks.for_each(|what| taken(what, 0));
}

pub(super) fn failed() {
    counter!(FAILED).increment(1);
}

pub(super) fn taken(what: &'static str, rows: u64) {
    counter!(TAKEN, "what" => what).increment(rows);
}

/// One is done, at this time.
pub(super) fn done(took: std::time::Duration, now: i64) {
    gauge!(SECONDS).set(took.as_secs_f64());
    gauge!(DONE).set(now as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in METRICS.md says the same.
    #[test]
    fn the_table_for_people_is_the_table_of_the_program() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../METRICS.md");
        let text = std::fs::read_to_string(path).expect("METRICS.md");
        let row = |metric: &Metric| {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            let labels = metric.labels.first().map(|label| format!("{label} ")).unwrap_or_default();
            format!("| `{}` | {kind} | {labels}| {} |", metric.name, metric.help)
        };
        let rows: Vec<String> = METRICS.iter().map(row).collect();
        let found: Vec<&str> =
            text.lines().filter(|line| line.starts_with("| `postrider_retention_")).collect();
        assert_eq!(found, rows);
    }
}
