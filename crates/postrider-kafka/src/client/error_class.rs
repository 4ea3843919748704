//! The classes of producer errors, in one table.

use rdkafka::types::RDKafkaErrorCode as Code;

/// How the sink reacts to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The brokers can't take anything now: all events wait, and none loses an attempt.
    Unavailable,
    /// This event failed and may succeed later.
    Retry,
    /// The brokers will never accept this event.
    Reject,
    /// The topic can't be written to: its events wait, the others go on.
    HoldTopic,
}

/// Whether a record failed because of another: its batch or its producer was given up.
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
    code == Code::InvalidDifferentRecord || error_class(code) == ErrorClass::Reject
}

/// Every error with a class of its own. Any other is tried again.
pub(crate) const TABLE: &[(Code, ErrorClass)] = &[
    // The brokers, the network between, or the way to them.
    (Code::BrokerTransportFailure, ErrorClass::Unavailable),
    (Code::AllBrokersDown, ErrorClass::Unavailable),
    (Code::Resolve, ErrorClass::Unavailable),
    (Code::MessageTimedOut, ErrorClass::Unavailable),
    (Code::OperationTimedOut, ErrorClass::Unavailable),
    (Code::TimedOutQueue, ErrorClass::Unavailable),
    (Code::RequestTimedOut, ErrorClass::Unavailable),
    (Code::NetworkException, ErrorClass::Unavailable),
    (Code::BrokerNotAvailable, ErrorClass::Unavailable),
    (Code::LeaderNotAvailable, ErrorClass::Unavailable),
    (Code::NotLeaderForPartition, ErrorClass::Unavailable),
    (Code::KafkaStorageError, ErrorClass::Unavailable),
    // Too few replicas to keep what was promised.
    (Code::ISRInsufficient, ErrorClass::Unavailable),
    (Code::NotEnoughReplicas, ErrorClass::Unavailable),
    (Code::NotEnoughReplicasAfterAppend, ErrorClass::Unavailable),
    // Who we are, rather than what we send.
    (Code::Authentication, ErrorClass::Unavailable),
    (Code::SSL, ErrorClass::Unavailable),
    (Code::SaslAuthenticationFailed, ErrorClass::Unavailable),
    (Code::ClusterAuthorizationFailed, ErrorClass::Unavailable),
    // Taken back by ourselves, or by a producer that had to be given up: nothing is known against the event.
    (Code::PurgeQueue, ErrorClass::Unavailable),
    (Code::PurgeInflight, ErrorClass::Unavailable),
    (Code::Fatal, ErrorClass::Unavailable),
    (Code::InvalidDifferentRecord, ErrorClass::Unavailable),
    (Code::GaplessGuarantee, ErrorClass::Unavailable),
    (Code::OutOfOrderSequenceNumber, ErrorClass::Unavailable),
    (Code::UnknownProducerId, ErrorClass::Unavailable),
    (Code::InvalidProducerEpoch, ErrorClass::Unavailable),
    // What no broker will ever take.
    (Code::MessageSizeTooLarge, ErrorClass::Reject),
    (Code::InvalidMessageSize, ErrorClass::Reject),
    (Code::InvalidRecord, ErrorClass::Reject),
    (Code::InvalidTimestamp, ErrorClass::Reject),
    (Code::UnsupportedForMessageFormat, ErrorClass::Reject),
    // The topic.
    (Code::UnknownTopic, ErrorClass::HoldTopic),
    (Code::UnknownPartition, ErrorClass::HoldTopic),
    (Code::UnknownTopicOrPartition, ErrorClass::HoldTopic),
    (Code::UnknownTopicId, ErrorClass::HoldTopic),
    (Code::InvalidTopic, ErrorClass::HoldTopic),
    (Code::TopicAuthorizationFailed, ErrorClass::HoldTopic),
    (Code::PolicyViolation, ErrorClass::HoldTopic),
    // A busy or confused moment.
    (Code::InvalidMessage, ErrorClass::Retry),
    (Code::MessageBatchTooLarge, ErrorClass::Retry),
    (Code::ThrottlingQuotaExceeded, ErrorClass::Retry),
    (Code::QueueFull, ErrorClass::Retry),
];

/// How the sink reacts to an error.
pub(crate) fn error_class(code: Code) -> ErrorClass {
    TABLE.iter().find(|(known, _)| *known == code).map_or(ErrorClass::Retry, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written down once more: a row that is lost or changed is noticed.
    const WANTED: &[(ErrorClass, &[Code])] = &[
        (
            ErrorClass::Unavailable,
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
            ErrorClass::Reject,
            &[
                Code::MessageSizeTooLarge,
                Code::InvalidMessageSize,
                Code::InvalidRecord,
                Code::InvalidTimestamp,
                Code::UnsupportedForMessageFormat,
            ],
        ),
        (
            ErrorClass::HoldTopic,
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
            ErrorClass::Retry,
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
    fn each_error_has_its_class_and_an_unknown_one_is_tried_again() {
        for (wanted, codes) in WANTED {
            for code in *codes {
                assert_eq!(error_class(*code), *wanted, "{code:?}");
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
            assert!(is_consequence(code) && error_class(code) == ErrorClass::Unavailable, "{code:?}");
        }
        assert!(
            is_consequence(Code::InvalidDifferentRecord) && is_consequence(Code::OutOfOrderSequenceNumber)
        );
        assert!(!is_consequence(Code::InvalidRecord) && !is_consequence(Code::MessageTimedOut));
    }
}
