//! The properties of librdkafka that a promise depends on: nobody may change them.

use std::collections::BTreeMap;

/// A property, the only values that keep the promise, and why.
pub(crate) type LockedProperty = (&'static str, &'static [&'static str], &'static str);

const NOTHING_LOST: &str = "otherwise records could be lost or reordered";
const NOTHING_CREATED: &str = "Postrider creates no topics";
const ONE_GROUP: &str = "the group name is an argument";
const ONE_ADDRESS: &str = "the broker addresses are an argument";
const HANDLED_FIRST: &str = "Postrider commits offsets after their records are handled";

/// Of every producer.
pub(crate) const OF_PRODUCERS: &[LockedProperty] = &[
    ("enable.idempotence", &["true"], NOTHING_LOST),
    ("acks", &["all", "-1"], NOTHING_LOST),
    ("request.required.acks", &["all", "-1"], NOTHING_LOST),
    ("enable.gapless.guarantee", &["true"], NOTHING_LOST),
    ("queuing.strategy", &["fifo"], NOTHING_LOST),
    ("delivery.report.only.error", &["false"], "Postrider needs a report for every record"),
    (
        "partitioner",
        &["murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a"],
        NOTHING_LOST,
    ),
    ("transactional.id", &[], "Postrider does not use Kafka transactions"),
    (
        "message.timeout.ms",
        &[],
        "it drops single records, which breaks their order; set the send timeout instead",
    ),
    (
        "delivery.timeout.ms",
        &[],
        "it drops single records, which breaks their order; set the send timeout instead",
    ),
    ("allow.auto.create.topics", &["false"], NOTHING_CREATED),
    ("bootstrap.servers", &[], ONE_ADDRESS),
    ("metadata.broker.list", &[], ONE_ADDRESS),
];

/// Of a consumer.
pub(crate) const OF_CONSUMERS: &[LockedProperty] = &[
    ("enable.auto.commit", &["false"], HANDLED_FIRST),
    ("enable.auto.offset.store", &["false"], HANDLED_FIRST),
    ("partition.assignment.strategy", &["cooperative-sticky"], "Postrider requires cooperative rebalancing"),
    ("group.protocol", &["classic"], "Postrider supports only the classic protocol"),
    ("allow.auto.create.topics", &["false"], NOTHING_CREATED),
    ("group.id", &[], ONE_GROUP),
    ("bootstrap.servers", &[], ONE_ADDRESS),
    ("metadata.broker.list", &[], ONE_ADDRESS),
    ("auto.offset.reset", &[], "set the start with from(…)"),
];

/// Of the reader of dead letters.
pub(crate) const OF_LETTERS: &[LockedProperty] = &[
    ("enable.auto.commit", &["false"], "Postrider commits a dead letter after it is requeued"),
    ("enable.auto.offset.store", &["false"], "Postrider commits a dead letter after it is requeued"),
    ("enable.partition.eof", &["true"], "Postrider needs to find the end of the dead letters"),
    ("auto.offset.reset", &["earliest"], "otherwise dead letters could be skipped"),
    ("allow.auto.create.topics", &["false"], NOTHING_CREATED),
    ("group.id", &[], ONE_GROUP),
    ("bootstrap.servers", &[], ONE_ADDRESS),
    ("metadata.broker.list", &[], ONE_ADDRESS),
];

/// What is wrong with the first property that would break a promise. Its value is shown: none of these is a secret.
pub(crate) fn broken(properties: &BTreeMap<String, String>, kept: &[LockedProperty]) -> Option<String> {
    kept.iter().find_map(|(name, values, why)| {
        let value = properties.get(*name).filter(|value| !values.contains(&value.as_str()))?;
        Some(match values.first() {
            Some(wanted) => format!("{name} is {value:?}, but must be {wanted}: {why}"),
            None => format!("{name} can't be set: {why}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_promise_is_refused_with_what_would_be_right() {
        for (kept, name, value, words) in [
            (OF_PRODUCERS, "acks", "1", "acks is \"1\", but must be all: otherwise records could be lost"),
            (
                OF_PRODUCERS,
                "transactional.id",
                "shop",
                "transactional.id can't be set: Postrider does not use Kafka transactions",
            ),
            (OF_PRODUCERS, "delivery.report.only.error", "true", "must be false"),
            (OF_PRODUCERS, "message.timeout.ms", "1", "set the send timeout"),
            (OF_CONSUMERS, "group.id", "other", "group.id can't be set: the group name is an argument"),
            (OF_CONSUMERS, "enable.auto.commit", "true", "must be false"),
            (OF_LETTERS, "group.id", "other", "can't be set"),
            (
                OF_LETTERS,
                "enable.partition.eof",
                "false",
                "Postrider needs to find the end of the dead letters",
            ),
            (OF_LETTERS, "auto.offset.reset", "latest", "otherwise dead letters could be skipped"),
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
