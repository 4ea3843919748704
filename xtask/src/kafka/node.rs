//! One node of a Kafka: its number, its folder and its ports.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use super::kit::Kit;
use super::options::{Listener, Options};
use super::{properties, tls};
use crate::account::Account;
use crate::folder;
use crate::port;
use crate::process;
use crate::task_error::TaskError;

/// A broker and controller in one process, as it lies on the disk.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its number, from 1.
    pub id: i32,
    /// The folder that holds all of it.
    pub folder: PathBuf,
    /// The ports it takes clients on.
    pub listeners: Vec<(Listener, u16)>,
    /// The port that controllers talk to each other on.
    pub controller: u16,
}

impl Node {
    /// A node with a new folder and free ports; nothing is in the folder yet.
    pub fn new(id: i32, options: &Options) -> Result<Self, TaskError> {
        let wanted = options.listeners();
        let mut ports: Vec<u16> = Vec::new();
        while ports.len() <= wanted.len() {
            let port = port::free()?;
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        let controller = ports.pop().unwrap_or_default();
        // Kafka runs as anybody, and its jars need not be readable for others: it runs as whoever runs this.
        let folder = folder::create(&Account::own_user())?;
        Ok(Self { id, folder, listeners: wanted.into_iter().zip(ports).collect(), controller })
    }

    /// The port of a listener, if the node has it.
    pub fn port(&self, listener: Listener) -> Option<u16> {
        self.listeners.iter().find(|(it, _)| *it == listener).map(|(_, port)| *port)
    }

    /// The file of its properties.
    pub fn properties(&self) -> PathBuf {
        self.folder.join("server.properties")
    }

    /// The data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The log file.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Writes the properties, the keys and the empty data of one of `nodes`.
    pub fn set_up(
        &self,
        nodes: &[Self],
        cluster: &str,
        options: &Options,
        kit: &Kit,
    ) -> Result<(), TaskError> {
        let path = self.properties();
        fs::write(&path, properties::of(self, nodes, options)).map_err(|error| unwritable(&path, &error))?;
        if let Some(names) = &options.tls {
            // One authority for all nodes: a client trusts them all by one certificate.
            match nodes.first().filter(|first| first.id != self.id) {
                Some(first) => tls::copy(&first.folder, &self.folder)?,
                None => tls::make(kit, &self.folder, names)?,
            }
        }
        self.format(cluster, options, kit)
    }

    fn format(&self, cluster: &str, options: &Options, kit: &Kit) -> Result<(), TaskError> {
        if options.users.is_empty() && kit.is_complete() {
            return self.format_by_hand(cluster, &kit.checkpoint());
        }
        let mut format = kit.tool("kafka.tools.StorageTool");
        format.args(["format", "-t", cluster, "-c"]).arg(self.properties());
        for (name, password) in &options.users {
            for scram in options.scrams() {
                format.arg("--add-scram").arg(format!("{scram}=[name={name},password={password}]"));
            }
        }
        process::output(format.current_dir(&self.folder), "make a Kafka data folder").map(drop)
    }

    /// Does what Kafka's tool does, without waiting for Java.
    fn format_by_hand(&self, cluster: &str, checkpoint: &Path) -> Result<(), TaskError> {
        let data = self.data_dir();
        let meta =
            format!("version=1\ncluster.id={cluster}\nnode.id={}\ndirectory.id={}\n", self.id, random_id());
        fs::create_dir(&data)
            .and_then(|()| fs::write(data.join("meta.properties"), meta))
            .and_then(|()| fs::copy(checkpoint, data.join("bootstrap.checkpoint")).map(drop))
            .map_err(|error| unwritable(&data, &error))
    }
}

/// A random id as Kafka writes them: 16 bytes in the alphabet of URLs.
pub fn random_id() -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let random = RandomState::new();
    // The 22nd letter holds the last two bits only; an id that begins with a dash would look like an option.
    let letters = (0..20).map(|n| char::from(ALPHABET[random.hash_one(n) as usize % ALPHABET.len()]));
    std::iter::once('P').chain(letters).chain(['A']).collect()
}

fn unwritable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_id_has_the_length_of_kafkas_and_is_never_the_same() {
        let (one, other) = (random_id(), random_id());
        assert_eq!(one.len(), 22);
        assert_ne!(one, other);
    }
}
