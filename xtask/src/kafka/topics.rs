//! The topics of a broker: making them, removing them, asking for their leaders.

use std::io;
use std::time::Duration;

use super::wire::{self, Answer, Api, Request};
use crate::process;
use crate::task_error::TaskError;

/// How long the brokers may take to do what they agreed to.
const DONE_WITHIN: Duration = Duration::from_secs(30);

/// Let the broker's own settings say how many replicas a topic has.
const BY_DEFAULT: i16 = -1;

/// What a broker knows about the brokers and some topics.
#[derive(Debug)]
pub struct Metadata {
    /// The ids of the brokers that take part.
    pub brokers: Vec<i32>,
    /// The topics that were asked for.
    pub topics: Vec<Topic>,
}

/// A topic as a broker sees it.
#[derive(Debug)]
pub struct Topic {
    /// The protocol's error, 0 if there is none.
    pub error: i16,
    /// Its name.
    pub name: String,
    /// Its partitions, in no particular order.
    pub partitions: Vec<Partition>,
}

/// A partition as a broker sees it.
#[derive(Debug)]
pub struct Partition {
    /// Its number.
    pub index: i32,
    /// The broker that takes its records, -1 if there is none.
    pub leader: i32,
    /// The brokers that shall have its records.
    pub replicas: Vec<i32>,
    /// The brokers that have them all.
    pub in_sync: Vec<i32>,
}

impl Metadata {
    /// Whether every partition has a leader, and all its replicas on brokers that take part are in step.
    fn is_complete(&self) -> bool {
        let in_step = |partition: &Partition| {
            let mut replicas = partition.replicas.iter().filter(|id| self.brokers.contains(id));
            partition.leader >= 0 && replicas.all(|id| partition.in_sync.contains(id))
        };
        let complete = |topic: &Topic| topic.error == 0 && topic.partitions.iter().all(in_step);
        self.topics.iter().all(complete)
    }
}

/// Asks the broker on `port` what it knows of the brokers and of the topics named.
pub fn metadata(port: u16, topics: &[&str]) -> io::Result<Metadata> {
    let mut request = Request::default();
    request.list(topics, |list, name| list.text(name));
    let mut answer = wire::call(port, Api::Metadata, &request)?;
    let brokers = answer.list(|broker| {
        let id = broker.int32()?;
        // Host, port and rack.
        broker.text()?;
        broker.int32()?;
        broker.text()?;
        Ok(id)
    })?;
    // The controller, or one that may stand in for it.
    answer.int32()?;
    Ok(Metadata { brokers, topics: answer.list(topic)? })
}

fn topic(answer: &mut Answer) -> io::Result<Topic> {
    let error = answer.int16()?;
    let name = answer.text()?.unwrap_or_default();
    // Whether the brokers use it themselves.
    answer.int8()?;
    let partitions = answer.list(|partition| {
        // Its error: the leader says the same.
        partition.int16()?;
        Ok(Partition {
            index: partition.int32()?,
            leader: partition.int32()?,
            replicas: partition.list(Answer::int32)?,
            in_sync: partition.list(Answer::int32)?,
        })
    })?;
    Ok(Topic { error, name, partitions })
}

/// Makes topics, given with their number of partitions, all with the same `settings`.
pub fn create(port: u16, topics: &[(&str, u16)], settings: &[(&str, &str)]) -> Result<(), TaskError> {
    let mut request = Request::default();
    request.list(topics, |list, (name, partitions)| {
        list.text(name).int32(i32::from(*partitions)).int16(BY_DEFAULT);
        // No assignment of replicas to brokers: Kafka chooses.
        list.int32(0);
        list.list(settings, |list, (name, value)| list.text(name).text(value))
    });
    request.int32(DONE_WITHIN.as_millis() as i32).int8(0);
    let results = wire::call(port, Api::CreateTopics, &request).and_then(|mut answer| {
        // How long the client shall hold back.
        answer.int32()?;
        answer.list(|topic| Ok((topic.text()?.unwrap_or_default(), topic.int16()?, topic.text()?)))
    });
    let results = results.map_err(|error| unanswered("create topics", &error))?;
    match results.into_iter().find(|(_, error, _)| *error != 0) {
        Some((name, error, reason)) => Err(refused("create", &name, error, reason)),
        None => Ok(()),
    }
}

/// Removes topics.
pub fn delete(port: u16, topics: &[&str]) -> Result<(), TaskError> {
    let mut request = Request::default();
    request.list(topics, |list, name| list.text(name)).int32(DONE_WITHIN.as_millis() as i32);
    let results = wire::call(port, Api::DeleteTopics, &request).and_then(|mut answer| {
        // How long the client shall hold back.
        answer.int32()?;
        answer.list(|topic| Ok((topic.text()?.unwrap_or_default(), topic.int16()?)))
    });
    let results = results.map_err(|error| unanswered("delete topics", &error))?;
    match results.into_iter().find(|(_, error)| *error != 0) {
        Some((name, error)) => Err(refused("delete", &name, error, None)),
        None => Ok(()),
    }
}

/// Waits until the broker on `port` can take records for `topics`, on all their replicas.
pub fn wait_until_complete(port: u16, topics: &[&str]) -> Result<(), TaskError> {
    wait(port, topics, "were not all ready", Metadata::is_complete)
}

/// Waits until the broker on `port` has forgotten `topics`.
pub fn wait_until_gone(port: u16, topics: &[&str]) -> Result<(), TaskError> {
    wait(port, topics, "were not all gone", |metadata| metadata.topics.iter().all(|topic| topic.error != 0))
}

fn wait(port: u16, topics: &[&str], not_yet: &str, done: fn(&Metadata) -> bool) -> Result<(), TaskError> {
    let asked = || metadata(port, topics).is_ok_and(|metadata| done(&metadata));
    if process::wait_until(DONE_WITHIN, asked) {
        return Ok(());
    }
    let seconds = DONE_WITHIN.as_secs();
    let topics = topics.join(", ");
    Err(TaskError::new(format!("the topics {topics} {not_yet} after {seconds} s on port {port}")))
}

pub(super) fn unanswered(purpose: &str, error: &io::Error) -> TaskError {
    TaskError::new(format!("could not {purpose}: Kafka does not answer: {error}"))
}

fn refused(verb: &str, topic: &str, error: i16, reason: Option<String>) -> TaskError {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    TaskError::new(format!("Kafka did not {verb} the topic {topic} (error {error}){reason}"))
}
