//! One broker: its life, its addresses and its topics.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cluster::{self, Cluster};
use super::daemon::Daemon;
use super::kit::Kit;
use super::node::Node;
use super::options::{Listener, Options};
use super::{acls, tls, topics};
use crate::detached::Detached;
use crate::folder;
use crate::process;
use crate::task_error::TaskError;
use crate::watchdog::Watchdog;

/// How long a broker may take until it takes part, on a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A throw-away broker on loopback ports.
///
/// It is killed and its folder removed when it is dropped, and also when its process ends in any other way.
#[derive(Debug)]
pub struct Broker {
    kit: Kit,
    node: Node,
    daemon: Daemon,
    /// Nobody: the broker was detached and is not this value's to clean up.
    watchdog: Option<Watchdog>,
}

impl Broker {
    /// Makes a new broker and starts it on free ports. What is missing of Kafka is fetched first.
    pub fn create(options: &Options) -> Result<Self, TaskError> {
        Self::create_with(&Kit::ready()?, options)
    }

    /// Makes and starts `count` brokers that keep each other's records.
    pub fn cluster(count: u8) -> Result<Cluster, TaskError> {
        Cluster::create(count, &Options::new())
    }

    /// The same with a kit that is still in the making.
    pub(super) fn create_with(kit: &Kit, options: &Options) -> Result<Self, TaskError> {
        let broker = cluster::started(kit, 1, options)?.pop();
        broker.ok_or_else(|| TaskError::new("a Kafka of no brokers"))
    }

    /// A broker with a folder and ports of its own, and nothing in the folder yet.
    pub(super) fn new(kit: &Kit, id: i32, options: &Options) -> Result<Self, TaskError> {
        let node = Node::new(id, options)?;
        match Daemon::watchdog(&node) {
            Ok(watchdog) => {
                Ok(Self { kit: kit.clone(), node, daemon: Daemon::default(), watchdog: Some(watchdog) })
            }
            Err(failure) => {
                folder::remove(&node.folder)?;
                Err(failure)
            }
        }
    }

    /// The address for clients without a password.
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The address of a listener, if the broker was made with it.
    pub fn address(&self, listener: Listener) -> Option<String> {
        self.node.port(listener).map(|port| format!("127.0.0.1:{port}"))
    }

    /// The certificate that clients of the encrypted listeners trust, in PEM.
    pub fn authority(&self) -> PathBuf {
        tls::authority(&self.node.folder)
    }

    /// The port of [`bootstrap`](Self::bootstrap); it stays the same over [`stop`](Self::stop) and
    /// [`start`](Self::start).
    pub fn port(&self) -> u16 {
        self.node.port(Listener::Plaintext).unwrap_or_default()
    }

    /// Its number among the brokers.
    pub fn id(&self) -> i32 {
        self.node.id
    }

    /// The folder that holds all of this broker: data, log, properties and keys.
    pub fn folder(&self) -> &Path {
        &self.node.folder
    }

    /// The data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.node.data_dir()
    }

    /// The broker's log file: warnings and errors.
    pub fn log(&self) -> PathBuf {
        self.node.log()
    }

    /// How it lies on the disk.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The process id of the broker, if it runs; one that is paused does.
    pub fn pid(&self) -> Option<u32> {
        self.daemon.pid()
    }

    /// Starts the broker on its ports and data, and waits until it takes part; one that runs already is left alone.
    ///
    /// A broker that does not start is a failure with the end of its log.
    pub fn start(&mut self) -> Result<(), TaskError> {
        self.launch()?;
        self.wait_until_ready(&[self.node.id])
    }

    /// Stops the broker in order: it tells the others, and everything it has is on disk.
    pub fn stop(&mut self) -> Result<(), TaskError> {
        self.daemon.stop(&self.node)
    }

    /// Kills the broker, as a crash would: no clean-up, no word to anybody. When it returns the broker is gone.
    pub fn kill(&mut self) -> Result<(), TaskError> {
        self.daemon.kill(&self.node)
    }

    /// Freezes the broker: its connections stay open and nothing is answered. When it returns nothing of it moves.
    pub fn pause(&mut self) -> Result<(), TaskError> {
        self.daemon.pause()
    }

    /// Lets a paused broker go on.
    pub fn resume(&mut self) -> Result<(), TaskError> {
        self.daemon.resume()
    }

    /// Makes a topic, and waits until it takes records.
    pub fn create_topic(&self, name: &str, partitions: u16) -> Result<(), TaskError> {
        self.create_topics(&[(name, partitions)])
    }

    /// Makes topics, given with their number of partitions, and waits until they take records.
    pub fn create_topics(&self, topics: &[(&str, u16)]) -> Result<(), TaskError> {
        self.create_topics_with(topics, &[])
    }

    /// Makes topics with settings of their own, such as `max.message.bytes`.
    pub fn create_topics_with(
        &self,
        topics: &[(&str, u16)],
        settings: &[(&str, &str)],
    ) -> Result<(), TaskError> {
        topics::create(self.port(), topics, settings)?;
        let names: Vec<&str> = topics.iter().map(|(name, _)| *name).collect();
        topics::wait_until_complete(self.port(), &names)
    }

    /// Removes a topic, and waits until it is gone.
    pub fn delete_topic(&self, name: &str) -> Result<(), TaskError> {
        topics::delete(self.port(), &[name])?;
        topics::wait_until_gone(self.port(), &[name])
    }

    /// Refuses whatever is written to a topic, on a broker made with [`Options::acls`].
    pub fn forbid_writes(&self, topic: &str) -> Result<(), TaskError> {
        acls::forbid_writes(self.port(), topic)
    }

    /// Takes [`forbid_writes`](Self::forbid_writes) back.
    pub fn permit_writes(&self, topic: &str) -> Result<(), TaskError> {
        acls::permit_writes(self.port(), topic)
    }

    /// Lets the broker outlive this process. Whoever takes it over ends it with [`Detached::stop`].
    pub fn detach(mut self) -> Result<Detached, TaskError> {
        let pid = self.pid().ok_or_else(|| TaskError::new("a stopped Kafka cannot be left running"))?;
        let detached = Detached { pid, port: self.port(), folder: self.node.folder.clone() };
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.disarm();
        }
        Ok(detached)
    }

    /// Whether it runs and is not paused.
    pub(super) fn is_responsive(&self) -> bool {
        self.pid().is_some_and(|pid| !process::is_paused(pid))
    }

    /// Starts the process and does not wait for it.
    pub(super) fn launch(&mut self) -> Result<(), TaskError> {
        self.daemon.launch(&self.kit, &self.node)
    }

    /// Waits until this broker answers and sees the brokers `ids`.
    pub(super) fn wait_until_ready(&mut self, ids: &[i32]) -> Result<(), TaskError> {
        let sees_all = || {
            let metadata = topics::metadata(self.port(), &[]);
            metadata.is_ok_and(|metadata| ids.iter().all(|id| metadata.brokers.contains(id)))
        };
        let mut ready = false;
        process::wait_until(READY_WITHIN, || {
            ready = sees_all();
            ready || self.pid().is_none()
        });
        if ready { Ok(()) } else { Err(self.daemon.unstarted(&self.node)) }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let Some(watchdog) = self.watchdog.take() else { return };
        if self.kill().and_then(|()| folder::remove(&self.node.folder)).is_ok() {
            watchdog.disarm();
        }
    }
}
