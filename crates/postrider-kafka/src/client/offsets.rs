//! Asking a group's coordinator for its offsets, which takes a while to find.

use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::types::RDKafkaErrorCode as Code;

/// How long to wait before asking again.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether an error passes by itself: the coordinator or a leader is being found, or the group is sharing its partitions.
pub(crate) fn passes(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::RebalanceInProgress
                | Code::CoordinatorLoadInProgress
                | Code::CoordinatorNotAvailable
                | Code::NotCoordinator
                | Code::WaitingForCoordinator
                | Code::LeaderNotAvailable
                | Code::NotLeaderForPartition
        )
    )
}

/// Does something, again while the error passes by itself, and not for longer than that.
pub(crate) fn patiently<T>(patience: Duration, mut ask: impl FnMut() -> KafkaResult<T>) -> KafkaResult<T> {
    let end = Instant::now() + patience;
    loop {
        match ask() {
            Err(error) if passes(&error) && Instant::now() < end => std::thread::sleep(PAUSE),
            answer => return answer,
        }
    }
}

/// The committed offsets of partitions.
pub(crate) fn committed<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    partitions: &TopicPartitionList,
    patience: Duration,
) -> KafkaResult<TopicPartitionList> {
    patiently(patience, || {
        let offsets = consumer.committed_offsets(partitions.clone(), patience)?;
        for each in offsets.elements() {
            each.error()?;
        }
        Ok(offsets)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_asked_again_and_what_does_not_is_said_at_once() {
        let (mut asked, error) = (0, |code| KafkaError::ConsumerCommit(code));
        let answer = patiently(Duration::from_secs(60), || {
            asked += 1;
            if asked < 3 { Err(error(Code::NotCoordinator)) } else { Ok(()) }
        });
        assert_eq!((answer, asked), (Ok(()), 3));
        // The leader of a topic that was just created.
        let (mut asked, moved) = (0, KafkaError::MetadataFetch(Code::NotLeaderForPartition));
        let answer = patiently(Duration::from_secs(60), || {
            asked += 1;
            if asked < 2 { Err(moved.clone()) } else { Ok(()) }
        });
        assert_eq!((answer, asked), (Ok(()), 2));
        let refused: KafkaResult<()> =
            patiently(Duration::from_secs(60), || Err(error(Code::IllegalGeneration)));
        assert_eq!(refused, Err(error(Code::IllegalGeneration)));
        let never: KafkaResult<()> = patiently(Duration::ZERO, || Err(error(Code::NotCoordinator)));
        assert!(never.is_err());
    }
}
