//! The metrics of consumers, through the `metrics` facade.

use metrics::{Counter, Gauge, counter, gauge};
use postrider_relay::{Kind, Metric};

const BY_TOPIC: &[&str] = &["group", "topic"];
const BY_GROUP: &[&str] = &["group"];
const BY_PARTITION: &[&str] = &["group", "topic", "partition"];

macro_rules! table {
    ($($constant:ident = $name:literal, $kind:ident, $labels:ident, $help:literal;)+) => {
        $(const $constant: &str = $name;)+

        /// Every metric of a consumer, in addition to those of its handlers.
        pub const CONSUMER_METRICS: &[Metric] = &[
            $(Metric { name: $name, kind: Kind::$kind, labels: $labels, help: $help }),+
        ];
    };
}

table! {
    CONSUMED = "postrider_consumer_consumed_total", Counter, BY_TOPIC, "records taken from a topic";
    HANDLED = "postrider_consumer_handled_total", Counter, BY_TOPIC, "records whose event was handled, or has no handler";
    DUPLICATES = "postrider_consumer_duplicates_total", Counter, BY_TOPIC, "records whose event had been handled before";
    RETRIED = "postrider_consumer_retried_total", Counter, BY_TOPIC, "attempts that failed and are retried";
    DEAD = "postrider_consumer_dead_lettered_total", Counter, BY_TOPIC, "records written to the dead-letter topic";
    GAPS = "postrider_consumer_gaps_total", Counter, BY_GROUP, "gaps in the sequence numbers of keys";
    STOPPED = "postrider_consumer_stopped_partitions", Gauge, BY_TOPIC, "partitions that are stopped because a dead letter can't be written";
    LAG = "postrider_consumer_lag", Gauge, BY_PARTITION, "records behind the end of a partition, counted every 15 s";
}

/// The meters of one partition's work, looked up once.
pub(crate) struct ConsumerMetrics {
    pub(crate) consumed: Counter,
    pub(crate) handled: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) retried: Counter,
    pub(crate) dead: Counter,
    pub(crate) gaps: Counter,
    pub(crate) stopped: Gauge,
}

impl ConsumerMetrics {
    pub(crate) fn new(group: &str, topic: &str) -> Self {
        let labels = [("group", group.to_owned()), ("topic", topic.to_owned())];
        Self {
            consumed: counter!(CONSUMED, &labels),
            handled: counter!(HANDLED, &labels),
            duplicates: counter!(DUPLICATES, &labels),
            retried: counter!(RETRIED, &labels),
            dead: counter!(DEAD, &labels),
            gaps: counter!(GAPS, "group" => group.to_owned()),
            stopped: gauge!(STOPPED, &labels),
        }
    }
}

/// How far behind a partition's end a group is.
pub(crate) fn lag(group: &str, topic: &str, partition: i32) -> Gauge {
    let labels =
        [("group", group.to_owned()), ("topic", topic.to_owned()), ("partition", partition.to_string())];
    gauge!(LAG, &labels)
}
