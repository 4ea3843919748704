//! What an error of the producer means: one table.

use rdkafka::types::RDKafkaErrorCode as Code;

/// What is to be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The brokers can't take anything now: all waits, and no event loses an attempt.
    Unavailable,
    /// This event failed and may succeed later.
    Retry,
    /// This event will never be taken.
    Reject,
    /// The topic can't be written to: its events wait, the others go on.
    HoldTopic,
}

/// What befalls a record because of another: of a batch, or of a producer that had to be given up.
pub(crate) fn is_consequence(code: Code) -> bool {
    matches!(
        code,
        Code::PurgeQueue
            | Code::PurgeInflight
            | Code::Fatal
            | Code::GaplessGuarantee
            | Code::InvalidDifferentRecord
            // What is behind a request that was refused has numbers that the brokers do not expect.
            | Code::OutOfOrderSequenceNumber
            | Code::UnknownProducerId
            | Code::InvalidProducerEpoch
    )
}

/// Whether it may be meant for another record of the same request: brokers judge what comes together.
pub(crate) fn is_of_several(code: Code) -> bool {
    code == Code::InvalidDifferentRecord || remedy(code) == Remedy::Reject
}

/// Every error that has a remedy of its own. Any other is tried again.
pub(crate) const TABLE: &[(Code, Remedy)] = &[
    // The brokers, the network between, or the way to them.
    (Code::BrokerTransportFailure, Remedy::Unavailable),
    (Code::AllBrokersDown, Remedy::Unavailable),
    (Code::Resolve, Remedy::Unavailable),
    (Code::MessageTimedOut, Remedy::Unavailable),
    (Code::OperationTimedOut, Remedy::Unavailable),
    (Code::TimedOutQueue, Remedy::Unavailable),
    (Code::RequestTimedOut, Remedy::Unavailable),
    (Code::NetworkException, Remedy::Unavailable),
    (Code::BrokerNotAvailable, Remedy::Unavailable),
    (Code::LeaderNotAvailable, Remedy::Unavailable),
    (Code::NotLeaderForPartition, Remedy::Unavailable),
    (Code::KafkaStorageError, Remedy::Unavailable),
    // Too few replicas to keep what was promised.
    (Code::ISRInsufficient, Remedy::Unavailable),
    (Code::NotEnoughReplicas, Remedy::Unavailable),
    (Code::NotEnoughReplicasAfterAppend, Remedy::Unavailable),
    // Who we are, rather than what we send.
    (Code::Authentication, Remedy::Unavailable),
    (Code::SSL, Remedy::Unavailable),
    (Code::SaslAuthenticationFailed, Remedy::Unavailable),
    (Code::ClusterAuthorizationFailed, Remedy::Unavailable),
    // Taken back by ourselves, or by a producer that had to be given up: nothing is known against the event.
    (Code::PurgeQueue, Remedy::Unavailable),
    (Code::PurgeInflight, Remedy::Unavailable),
    (Code::Fatal, Remedy::Unavailable),
    (Code::InvalidDifferentRecord, Remedy::Unavailable),
    (Code::GaplessGuarantee, Remedy::Unavailable),
    (Code::OutOfOrderSequenceNumber, Remedy::Unavailable),
    (Code::UnknownProducerId, Remedy::Unavailable),
    (Code::InvalidProducerEpoch, Remedy::Unavailable),
    // What no broker will ever take.
    (Code::MessageSizeTooLarge, Remedy::Reject),
    (Code::InvalidMessageSize, Remedy::Reject),
    (Code::InvalidRecord, Remedy::Reject),
    (Code::InvalidTimestamp, Remedy::Reject),
    (Code::UnsupportedForMessageFormat, Remedy::Reject),
    // The topic.
    (Code::UnknownTopic, Remedy::HoldTopic),
    (Code::UnknownPartition, Remedy::HoldTopic),
    (Code::UnknownTopicOrPartition, Remedy::HoldTopic),
    (Code::UnknownTopicId, Remedy::HoldTopic),
    (Code::InvalidTopic, Remedy::HoldTopic),
    (Code::TopicAuthorizationFailed, Remedy::HoldTopic),
    (Code::PolicyViolation, Remedy::HoldTopic),
    // A busy or confused moment.
    (Code::InvalidMessage, Remedy::Retry),
    (Code::MessageBatchTooLarge, Remedy::Retry),
    (Code::ThrottlingQuotaExceeded, Remedy::Retry),
    (Code::QueueFull, Remedy::Retry),
];

/// What is to be done about an error.
pub(crate) fn remedy(code: Code) -> Remedy {
    TABLE.iter().find(|(known, _)| *known == code).map_or(Remedy::Retry, |(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written down once more: a row that is lost or changed is noticed.
    const WANTED: &[(Remedy, &[Code])] = &[
        (
            Remedy::Unavailable,
            &[
                Code::BrokerTransportFailure,
                Code::AllBrokersDown,
                Code::Resolve,
                Code::MessageTimedOut,
                Code::OperationTimedOut,
                Code::TimedOutQueue,
                Code::RequestTimedOut,
                Code::NetworkException,
                Code::BrokerNotAvailable,
                Code::LeaderNotAvailable,
                Code::NotLeaderForPartition,
                Code::KafkaStorageError,
                Code::ISRInsufficient,
                Code::NotEnoughReplicas,
                Code::NotEnoughReplicasAfterAppend,
                Code::Authentication,
                Code::SSL,
                Code::SaslAuthenticationFailed,
                Code::ClusterAuthorizationFailed,
                Code::PurgeQueue,
                Code::PurgeInflight,
                Code::Fatal,
                Code::InvalidDifferentRecord,
                Code::GaplessGuarantee,
                Code::OutOfOrderSequenceNumber,
                Code::UnknownProducerId,
                Code::InvalidProducerEpoch,
            ],
        ),
        (
            Remedy::Reject,
            &[
                Code::MessageSizeTooLarge,
                Code::InvalidMessageSize,
                Code::InvalidRecord,
                Code::InvalidTimestamp,
                Code::UnsupportedForMessageFormat,
            ],
        ),
        (
            Remedy::HoldTopic,
            &[
                Code::UnknownTopic,
                Code::UnknownPartition,
                Code::UnknownTopicOrPartition,
                Code::UnknownTopicId,
                Code::InvalidTopic,
                Code::TopicAuthorizationFailed,
                Code::PolicyViolation,
            ],
        ),
        (
            Remedy::Retry,
            &[
                Code::InvalidMessage,
                Code::MessageBatchTooLarge,
                Code::ThrottlingQuotaExceeded,
                Code::QueueFull,
                // Not in the table: whatever is new or odd is tried again.
                Code::Unknown,
                Code::BadMessage,
                Code::BadCompression,
                Code::InvalidArgument,
            ],
        ),
    ];

    #[test]
    fn each_error_has_its_remedy_and_an_unknown_one_is_tried_again() {
        for (wanted, codes) in WANTED {
            for code in *codes {
                assert_eq!(remedy(*code), *wanted, "{code:?}");
            }
        }
        for (index, (code, _)) in TABLE.iter().enumerate() {
            assert!(WANTED.iter().any(|(_, codes)| codes.contains(code)), "{code:?} is not asked for");
            assert!(!TABLE[..index].iter().any(|(other, _)| other == code), "{code:?} is listed twice");
        }
    }

    #[test]
    fn what_befalls_a_record_because_of_another_is_never_held_against_it() {
        for code in [Code::PurgeQueue, Code::PurgeInflight, Code::Fatal, Code::GaplessGuarantee] {
            assert!(is_consequence(code) && remedy(code) == Remedy::Unavailable, "{code:?}");
        }
        assert!(
            is_consequence(Code::InvalidDifferentRecord) && is_consequence(Code::OutOfOrderSequenceNumber)
        );
        assert!(!is_consequence(Code::InvalidRecord) && !is_consequence(Code::MessageTimedOut));
    }
}
