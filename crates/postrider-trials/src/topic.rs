//! A topic of Kafka, as who reads it sees it: what arrived, held against what was promised.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use postrider::Uuid;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers as _, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::Moved;

/// How long a broker may take to answer, and all of a topic to be read.
const ANSWER: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

/// A record of a move.
#[derive(Debug, Clone)]
pub struct IncomingEvent {
    /// Where it lies.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// The event.
    pub event: Uuid,
    /// What it says.
    pub moved: Moved,
}

impl IncomingEvent {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let mut headers = message.headers().into_iter().flat_map(|headers| headers.iter());
        let id = headers.find(|header| header.key == "ce_id").and_then(|header| header.value);
        let id = id.and_then(|id| std::str::from_utf8(id).ok()).and_then(|id| id.parse().ok());
        let moved = serde_json::from_slice(message.payload().unwrap_or_default());
        Self {
            partition: message.partition(),
            offset: message.offset(),
            event: id.expect("a record has its event's id"),
            moved: moved.expect("a record is a move"),
        }
    }
}

/// A moment: what a subscription was done with, and where each partition ended then.
#[derive(Debug)]
pub struct Mark {
    /// What it was done with.
    pub done: HashSet<Uuid>,
    /// Where each partition ended, not before that.
    pub ends: Vec<i64>,
}

/// A topic, for whoever looks into it.
pub struct Topic {
    consumer: BaseConsumer,
    name: &'static str,
    partitions: i32,
}

impl Topic {
    /// The topic of that name.
    pub fn new(bootstrap: &str, name: &'static str, partitions: u16) -> Self {
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", "look")
            .set("reconnect.backoff.max.ms", "500")
            .create()
            .expect("a consumer");
        Self { consumer, name, partitions: partitions.into() }
    }

    /// Where each partition ends; nothing while its broker is away.
    pub fn ends(&self) -> Option<Vec<i64>> {
        let end = |partition| self.consumer.fetch_watermarks(self.name, partition, ANSWER).ok();
        (0..self.partitions).map(|partition| end(partition).map(|(_, end)| end)).collect()
    }

    /// How many records there are; none while its broker is away.
    pub fn count(&self) -> i64 {
        self.ends().map_or(0, |ends| ends.iter().sum())
    }

    /// Everything that is in it now, each partition in its order.
    pub fn arrivals(&self) -> Vec<IncomingEvent> {
        let deadline = Instant::now() + PATIENCE;
        let ends = loop {
            if let Some(ends) = self.ends() {
                break ends;
            }
            assert!(Instant::now() < deadline, "{} can't be read", self.name);
        };
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions {
            list.add_partition_offset(self.name, partition, Offset::Beginning).expect("an offset");
        }
        self.consumer.assign(&list).expect("assigned");
        let mut next = vec![0; ends.len()];
        let mut arrivals = Vec::new();
        while next.iter().zip(&ends).any(|(next, end)| next < end) {
            assert!(Instant::now() < deadline, "{}: {next:?} of {ends:?} were read", self.name);
            // What it says of a broker that came and went is no record.
            if let Some(Ok(message)) = self.consumer.poll(ANSWER) {
                next[usize::try_from(message.partition()).expect("a partition")] = message.offset() + 1;
                arrivals.push(IncomingEvent::of(&message));
            }
        }
        arrivals
    }
}

/// Everything that was committed arrived.
pub fn loses_nothing(arrivals: &[IncomingEvent], committed: &[Uuid]) {
    let arrived: HashSet<Uuid> = arrivals.iter().map(|arrival| arrival.event).collect();
    let lost: Vec<_> = committed.iter().filter(|event| !arrived.contains(event)).collect();
    assert!(lost.is_empty(), "{} of {} never arrived: {lost:?}", lost.len(), committed.len());
    assert!(!committed.is_empty(), "nothing was recorded: nothing was tried");
}

/// An account's versions lie in one partition, and the first arrivals of them ascend without a gap.
pub fn keeps_order(arrivals: &[IncomingEvent]) {
    let mut next: HashMap<&str, (i32, i64)> = HashMap::new();
    let mut known = HashSet::new();
    for arrival in arrivals.iter().filter(|arrival| known.insert(arrival.event)) {
        let (partition, due) = next.entry(&arrival.moved.account).or_insert((arrival.partition, 1));
        assert_eq!(*partition, arrival.partition, "another partition: {arrival:?}");
        assert_eq!(*due, arrival.moved.version, "out of order: {arrival:?}");
        *due += 1;
    }
}

/// Nothing comes again that its subscription was done with, and no more than `most` at all; how many came again.
pub fn repeats_only_what_was_open(arrivals: &[IncomingEvent], marks: &[Mark], most: usize) -> usize {
    for mark in marks {
        let is_later = |arrival: &&IncomingEvent| {
            let end = usize::try_from(arrival.partition).ok().and_then(|place| mark.ends.get(place));
            end.is_none_or(|end| arrival.offset >= *end)
        };
        let again = arrivals.iter().filter(is_later).find(|arrival| mark.done.contains(&arrival.event));
        assert!(again.is_none(), "it was settled, and came again: {again:?}");
    }
    let distinct: HashSet<Uuid> = arrivals.iter().map(|arrival| arrival.event).collect();
    let again = arrivals.len() - distinct.len();
    assert!(again <= most, "{again} came again; at most {most} could");
    again
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    /// Arrivals of one account's versions, in one partition.
    fn arrivals(versions: &[i64]) -> Vec<IncomingEvent> {
        let arrival = |(offset, version): (usize, &i64)| IncomingEvent {
            partition: 0,
            offset: offset as i64,
            event: id(*version),
            moved: Moved { account: "a".to_owned(), version: *version, poison: false },
        };
        versions.iter().enumerate().map(arrival).collect()
    }

    fn id(version: i64) -> Uuid {
        Uuid::from_u128(version as u128)
    }

    #[test]
    fn what_is_lost_or_out_of_order_is_noticed() {
        loses_nothing(&arrivals(&[1, 2]), &[id(1), id(2)]);
        keeps_order(&arrivals(&[1, 2, 1, 2, 3]));
        assert!(catch_unwind(|| loses_nothing(&arrivals(&[1]), &[id(1), id(2)])).is_err());
        assert!(catch_unwind(|| loses_nothing(&arrivals(&[1]), &[])).is_err());
        assert!(catch_unwind(|| keeps_order(&arrivals(&[2, 1]))).is_err());
        assert!(catch_unwind(|| keeps_order(&arrivals(&[1, 3]))).is_err());
    }

    #[test]
    fn what_was_settled_may_not_come_again() {
        let mark = |done: &[i64], end| Mark { done: done.iter().copied().map(id).collect(), ends: vec![end] };
        let again = |mark, most| repeats_only_what_was_open(&arrivals(&[1, 2, 2, 3]), &[mark], most);
        assert_eq!(again(mark(&[1], 2), 1), 1);
        assert_eq!(again(mark(&[1, 2], 3), 1), 1, "it came again before");
        assert!(catch_unwind(|| again(mark(&[1, 2], 2), 9)).is_err());
        assert!(catch_unwind(|| again(mark(&[1], 2), 0)).is_err());
    }
}
