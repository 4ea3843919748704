//! The properties of librdkafka that a promise rests on: what nobody may set otherwise.

use std::collections::BTreeMap;

/// A property, the only values that keep the promise, and why.
pub(crate) type LockedProperty = (&'static str, &'static [&'static str], &'static str);

const NOTHING_LOST: &str = "it would break a promise (nothing lost, nothing out of order)";
const NOTHING_CREATED: &str = "Postrider creates no topics";
const ONE_GROUP: &str = "the group is given by its name";
const ONE_ADDRESS: &str = "the brokers are given by name, and not by a property";
const HANDLED_FIRST: &str = "offsets are committed when their records are done";

/// What is kept of whatever writes.
pub(crate) const OF_PRODUCERS: &[LockedProperty] = &[
    ("enable.idempotence", &["true"], NOTHING_LOST),
    ("acks", &["all", "-1"], NOTHING_LOST),
    ("request.required.acks", &["all", "-1"], NOTHING_LOST),
    ("enable.gapless.guarantee", &["true"], NOTHING_LOST),
    ("queuing.strategy", &["fifo"], NOTHING_LOST),
    ("delivery.report.only.error", &["false"], "what was taken would never be known"),
    (
        "partitioner",
        &["murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a"],
        NOTHING_LOST,
    ),
    (
        "transactional.id",
        &[],
        "it would break a promise: nobody begins or commits a transaction of Kafka here, so nothing would ever arrive",
    ),
    (
        "message.timeout.ms",
        &[],
        "it would break a promise (nothing out of order): it gives up single records; set the send timeout",
    ),
    (
        "delivery.timeout.ms",
        &[],
        "it would break a promise (nothing out of order): it gives up single records; set the send timeout",
    ),
    ("allow.auto.create.topics", &["false"], NOTHING_CREATED),
    ("bootstrap.servers", &[], ONE_ADDRESS),
    ("metadata.broker.list", &[], ONE_ADDRESS),
];

/// What is kept of a consumer.
pub(crate) const OF_CONSUMERS: &[LockedProperty] = &[
    ("enable.auto.commit", &["false"], HANDLED_FIRST),
    ("enable.auto.offset.store", &["false"], HANDLED_FIRST),
    (
        "partition.assignment.strategy",
        &["cooperative-sticky"],
        "partitions that stay are worked on while others move",
    ),
    (
        "group.protocol",
        &["classic"],
        "only in the classic one is a partition given back before it is given away",
    ),
    ("allow.auto.create.topics", &["false"], NOTHING_CREATED),
    ("group.id", &[], ONE_GROUP),
    ("bootstrap.servers", &[], ONE_ADDRESS),
    ("metadata.broker.list", &[], ONE_ADDRESS),
    ("auto.offset.reset", &[], "where a new group begins is said with from(…)"),
];

/// What is kept of the reader of dead letters.
pub(crate) const OF_LETTERS: &[LockedProperty] = &[
    ("enable.auto.commit", &["false"], "a letter counts as put back when its record is in its topic"),
    ("enable.auto.offset.store", &["false"], "a letter counts as put back when its record is in its topic"),
    ("enable.partition.eof", &["true"], "the end of the letters would not be found"),
    ("auto.offset.reset", &["earliest"], "letters would be passed over"),
    ("allow.auto.create.topics", &["false"], NOTHING_CREATED),
    ("group.id", &[], ONE_GROUP),
    ("bootstrap.servers", &[], ONE_ADDRESS),
    ("metadata.broker.list", &[], ONE_ADDRESS),
];

/// What is wrong with the first property that would break a promise. Values of properties that can't be secrets are shown.
pub(crate) fn broken(properties: &BTreeMap<String, String>, kept: &[LockedProperty]) -> Option<String> {
    kept.iter().find_map(|(name, values, why)| {
        let value = properties.get(*name).filter(|value| !values.contains(&value.as_str()))?;
        Some(match values.first() {
            Some(wanted) => format!("{name} = {value:?} is not possible: {why}; leave it at {wanted}"),
            None => format!("{name} is not possible: {why}; leave it out"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_promise_is_refused_with_what_would_be_right() {
        for (kept, name, value, words) in [
            (OF_PRODUCERS, "acks", "1", "acks = \"1\" is not possible: it would break a promise"),
            (
                OF_PRODUCERS,
                "transactional.id",
                "shop",
                "transactional.id is not possible: it would break a promise",
            ),
            (OF_PRODUCERS, "delivery.report.only.error", "true", "leave it at false"),
            (OF_PRODUCERS, "message.timeout.ms", "1", "set the send timeout"),
            (OF_CONSUMERS, "group.id", "other", "group.id is not possible: the group is given by its name"),
            (OF_CONSUMERS, "enable.auto.commit", "true", "leave it at false"),
            (OF_LETTERS, "group.id", "other", "leave it out"),
            (OF_LETTERS, "enable.partition.eof", "false", "the end of the letters would not be found"),
            (OF_LETTERS, "auto.offset.reset", "latest", "letters would be passed over"),
        ] {
            let properties = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let sentence = broken(&properties, kept).expect(name);
            assert!(sentence.contains(words), "{sentence}");
        }
    }

    #[test]
    fn what_keeps_a_promise_may_be_said() {
        for (kept, name, value) in [
            (OF_PRODUCERS, "acks", "-1"),
            (OF_PRODUCERS, "partitioner", "fnv1a"),
            (OF_PRODUCERS, "compression.type", "lz4"),
            (OF_CONSUMERS, "enable.auto.commit", "false"),
            (OF_LETTERS, "enable.partition.eof", "true"),
        ] {
            assert_eq!(broken(&BTreeMap::from([(name.to_owned(), value.to_owned())]), kept), None);
        }
    }
}
