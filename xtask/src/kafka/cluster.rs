//! Several brokers that keep each other's records.

use super::kit::Kit;
use super::node::{Node, random_id};
use super::options::Options;
use super::{Broker, topics};
use crate::task_error::TaskError;

/// How often other ports are tried when somebody took those that were free.
const PORT_ATTEMPTS: usize = 5;

/// Brokers that are controllers too. With three of them every topic has three replicas, of which two must have
/// a record before it counts as written, and any one of the brokers can be missing.
#[derive(Debug)]
pub struct Cluster {
    brokers: Vec<Broker>,
}

impl Cluster {
    /// Makes and starts `count` brokers, and waits until each of them sees all.
    pub fn create(count: u8, options: &Options) -> Result<Self, TaskError> {
        let brokers = started(&Kit::ready()?, count, options)?;
        Ok(Self { brokers })
    }

    /// The addresses of all brokers, for clients.
    pub fn bootstrap(&self) -> String {
        self.brokers.iter().map(Broker::bootstrap).collect::<Vec<_>>().join(",")
    }

    /// All brokers, the one with the id 1 first.
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// The broker at `index`, from 0, to be stopped, killed, paused or started.
    pub fn broker(&mut self, index: usize) -> &mut Broker {
        &mut self.brokers[index]
    }

    /// Starts all brokers that do not run, and waits until all take part.
    ///
    /// Less than half of the brokers cannot start alone: they wait for the others.
    pub fn start(&mut self) -> Result<(), TaskError> {
        start_all(&mut self.brokers)
    }

    /// Kills all brokers.
    pub fn kill(&mut self) -> Result<(), TaskError> {
        self.brokers.iter_mut().try_for_each(Broker::kill)
    }

    /// Makes topics, given with their number of partitions, and waits until every broker that runs has them.
    pub fn create_topics(&self, topics: &[(&str, u16)]) -> Result<(), TaskError> {
        topics::create(self.any_port()?, topics, &[])?;
        let names: Vec<&str> = topics.iter().map(|(name, _)| *name).collect();
        self.running().try_for_each(|broker| topics::wait_until_complete(broker.port(), &names))
    }

    /// Removes a topic, and waits until no broker that runs has it.
    pub fn delete_topic(&self, name: &str) -> Result<(), TaskError> {
        topics::delete(self.any_port()?, &[name])?;
        self.running().try_for_each(|broker| topics::wait_until_gone(broker.port(), &[name]))
    }

    /// The index of the broker that takes the records of a partition, if there is one at this moment.
    pub fn leader(&self, topic: &str, partition: u16) -> Result<Option<usize>, TaskError> {
        let port = self.any_port()?;
        let metadata = topics::metadata(port, &[topic])
            .map_err(|error| topics::unanswered("ask for a leader", &error))?;
        let id = metadata
            .topics
            .iter()
            .flat_map(|topic| &topic.partitions)
            .find(|it| it.index == i32::from(partition))
            .map(|it| it.leader);
        Ok(self.brokers.iter().position(|broker| Some(broker.id()) == id))
    }

    fn running(&self) -> impl Iterator<Item = &Broker> {
        self.brokers.iter().filter(|broker| broker.is_responsive())
    }

    fn any_port(&self) -> Result<u16, TaskError> {
        self.running().next().map(Broker::port).ok_or_else(|| TaskError::new("no broker of the Kafka runs"))
    }
}

/// New brokers that have started.
pub(super) fn started(kit: &Kit, count: u8, options: &Options) -> Result<Vec<Broker>, TaskError> {
    for _ in 1..PORT_ATTEMPTS {
        let mut brokers = new(kit, count, options)?;
        match start_all(&mut brokers) {
            Err(failure) if failure.mentions("Address already in use") => {}
            other => return other.map(|()| brokers),
        }
    }
    let mut brokers = new(kit, count, options)?;
    start_all(&mut brokers).map(|()| brokers)
}

/// New brokers, ready to start.
fn new(kit: &Kit, count: u8, options: &Options) -> Result<Vec<Broker>, TaskError> {
    let brokers: Vec<Broker> =
        (1..=count).map(|id| Broker::new(kit, id.into(), options)).collect::<Result<_, _>>()?;
    let nodes: Vec<Node> = brokers.iter().map(|broker| broker.node().clone()).collect();
    let cluster = random_id();
    nodes.iter().try_for_each(|node| node.set_up(&nodes, &cluster, options, kit))?;
    Ok(brokers)
}

/// Starts all before it waits for the first: one alone waits for the others.
fn start_all(brokers: &mut [Broker]) -> Result<(), TaskError> {
    brokers.iter_mut().try_for_each(Broker::launch)?;
    let ids: Vec<i32> = brokers.iter().map(Broker::id).collect();
    brokers.iter_mut().try_for_each(|broker| broker.wait_until_ready(&ids))
}
