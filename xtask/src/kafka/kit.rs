//! Kafka itself: its jars, fetched once by Maven, and what makes every later start quick.
//!
//! The folder of the kit holds `lib`, the jars; `classes.jsa`, the classes of a running broker in the form that
//! Java maps into memory, which halves the time of a start; and `bootstrap.checkpoint`, which is what formatting
//! puts into every data folder. The last is written last: a kit that has it is complete.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Broker, Options, java};
use crate::maven::{self, Artifact};
use crate::say;
use crate::task_error::TaskError;
use crate::workspace;

/// The version of Kafka.
pub const VERSION: &str = "4.1.1";

/// What is fetched: the broker, and the simplest of the loggers that it can do with.
const ARTIFACTS: [Artifact; 2] =
    [("org.apache.kafka", "kafka_2.13", VERSION), ("org.slf4j", "slf4j-simple", "1.7.36")];

/// For a small server that lives briefly. A Java that lacks one of these does without.
const FLAGS: [&str; 5] = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
];

/// A Java and the jars of Kafka.
#[derive(Debug, Clone)]
pub struct Kit {
    java: PathBuf,
    folder: PathBuf,
    /// It is being completed: the broker it starts now shows which classes it takes.
    in_making: bool,
}

impl Kit {
    /// The kit of this workspace; what it lacks is fetched and made now. It installs nothing.
    pub fn ready() -> Result<Self, TaskError> {
        let java = java::find().ok_or_else(java::missing)?;
        let kit = Self { java, folder: folder(), in_making: false };
        if kit.checkpoint().exists() {
            return Ok(kit);
        }
        let _alone = kit.lock()?;
        if !kit.lib().exists() {
            kit.fetch()?;
        }
        if !kit.checkpoint().exists() {
            kit.complete()?;
        }
        Ok(kit)
    }

    /// Whether [`ready`](Self::ready) would find the programs it needs.
    pub fn has_programs() -> bool {
        java::find().is_some() && (folder().join("lib").exists() || maven::is_there())
    }

    /// Kafka's class `class`, to be run to its end.
    pub fn tool(&self, class: &str) -> Command {
        let mut java = java::command(&self.java);
        java.args(FLAGS);
        if !self.in_making && self.archive().exists() {
            java.arg(flag("SharedArchiveFile", &self.archive()));
        }
        java.arg("-cp").arg(self.lib().join("*")).arg(class);
        java
    }

    /// The program of a broker with the properties in `properties`.
    pub fn broker(&self, properties: &Path) -> Command {
        let mut java = java::command(&self.java);
        if self.in_making {
            java.args(FLAGS).arg(flag("ArchiveClassesAtExit", &self.archive()));
            java.arg("-cp").arg(self.lib().join("*")).arg("kafka.Kafka");
        } else {
            java = self.tool("kafka.Kafka");
        }
        java.arg(properties);
        java
    }

    /// Java's program for keys and certificates.
    pub fn keytool(&self) -> Command {
        let mut keytool = java::command(&java::neighbour(&self.java, "keytool"));
        keytool.arg("-J-XX:TieredStopAtLevel=1");
        keytool
    }

    /// What formatting puts into a data folder; a kit in the making has none.
    pub fn checkpoint(&self) -> PathBuf {
        self.folder.join("bootstrap.checkpoint")
    }

    fn lib(&self) -> PathBuf {
        self.folder.join("lib")
    }

    fn archive(&self) -> PathBuf {
        self.folder.join("classes.jsa")
    }

    /// Waits until no other process completes this kit, and keeps others waiting while it is held.
    fn lock(&self) -> Result<File, TaskError> {
        let path = self.folder.join("lock");
        fs::create_dir_all(&self.folder)
            .and_then(|()| File::create(&path))
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| unwritable(&path, &error))
    }

    fn fetch(&self) -> Result<(), TaskError> {
        if !maven::is_there() {
            return Err(java::missing());
        }
        say(&format!("Kafka {VERSION} is missing: fetching it with Maven into {}", self.folder.display()));
        maven::fetch(&ARTIFACTS, &self.lib())
    }

    /// Runs a broker once, for the classes it takes and for what its data folder begins with.
    fn complete(&self) -> Result<(), TaskError> {
        say("preparing Kafka for quick starts: this once");
        let _ = fs::remove_file(self.archive());
        let in_making = Self { in_making: true, ..self.clone() };
        let mut broker = Broker::create_with(&in_making, &Options::new())?;
        broker.create_topics(&[("preparation", 1)])?;
        broker.stop()?;
        let partial = self.checkpoint().with_extension("partial");
        fs::copy(broker.data_dir().join("bootstrap.checkpoint"), &partial)
            .and_then(|_| fs::rename(&partial, self.checkpoint()))
            .map_err(|error| unwritable(&self.checkpoint(), &error))
    }

    /// Whether a data folder can be made without running Kafka's own tool.
    pub fn is_complete(&self) -> bool {
        !self.in_making && self.checkpoint().exists()
    }
}

/// Where the kit of this workspace lies.
pub fn folder() -> PathBuf {
    workspace::target().join("services").join(format!("kafka-{VERSION}"))
}

fn flag(name: &str, path: &Path) -> String {
    format!("-XX:{name}={}", path.display())
}

fn unwritable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}
