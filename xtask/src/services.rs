//! Servers that stay up between commands: `cargo xtask services up`, `down` and `status`.
//!
//! What was started is written to a small file in the target folder; that it still runs is asked of the system.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::container;
use crate::failure::Failure;
use crate::postgres::Detached;
use crate::server::{self, Server};
use crate::workspace;

/// The servers of one target folder.
#[derive(Debug)]
pub struct Services {
    folder: PathBuf,
}

/// A server that was left running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Service {
    /// A process of this machine.
    Process(Detached),
    /// A container.
    Container {
        /// Docker's id of it.
        id: String,
        /// The port it is published on.
        port: u16,
    },
}

/// What is known of the service.
#[derive(Debug, PartialEq, Eq)]
pub enum Status {
    /// None was started.
    Absent,
    /// It runs.
    Running(Service),
    /// It was started and has ended since, but not by `down`.
    Dead(Service),
}

impl Services {
    /// Those of this workspace.
    pub fn of_workspace() -> Self {
        Self { folder: workspace::target().join("services") }
    }

    /// Starts what does not run; what runs is used again.
    pub fn up(&self) -> Result<Service, Failure> {
        let _alone = self.lock()?;
        match self.status()? {
            Status::Running(service) => return Ok(service),
            Status::Dead(service) => service.stop()?,
            Status::Absent => {}
        }
        let service = match Server::start(&[])? {
            Server::Cluster(cluster) => Service::Process(cluster.detach()?),
            Server::Container(container) => {
                let (id, port) = container.detach();
                Service::Container { id, port }
            }
        };
        if let Err(error) = fs::write(self.file(), service.to_text()) {
            service.stop()?;
            return Err(unwritable(&self.file(), &error));
        }
        Ok(service)
    }

    /// Stops what was started and removes its folder; gives what it was.
    pub fn down(&self) -> Result<Status, Failure> {
        let _alone = self.lock()?;
        let status = self.status()?;
        if let Status::Running(service) | Status::Dead(service) = &status {
            service.stop()?;
            fs::remove_file(self.file()).map_err(|error| unwritable(&self.file(), &error))?;
        }
        Ok(status)
    }

    /// What was started, and whether it runs.
    pub fn status(&self) -> Result<Status, Failure> {
        let path = self.file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Status::Absent),
            Err(error) => return Err(Failure::new(format!("could not read {}: {error}", path.display()))),
        };
        let service = Service::of_text(&text).ok_or_else(|| {
            let path = path.display();
            Failure::new(format!("{path} is not readable: stop what it names by hand and remove it"))
        })?;
        Ok(if service.is_running() { Status::Running(service) } else { Status::Dead(service) })
    }

    fn file(&self) -> PathBuf {
        self.folder.join("postgres")
    }

    /// Waits until no other command changes the services, and keeps others waiting while it is held.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.folder.join("lock");
        fs::create_dir_all(&self.folder)
            .and_then(|()| File::create(&path))
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| unwritable(&path, &error))
    }
}

impl Service {
    /// The address of its database `postgres`.
    pub fn url(&self) -> String {
        let (Self::Process(Detached { port, .. }) | Self::Container { port, .. }) = self;
        server::url(*port)
    }

    fn is_running(&self) -> bool {
        match self {
            Self::Process(process) => process.is_running(),
            Self::Container { id, .. } => container::is_running(id),
        }
    }

    fn stop(&self) -> Result<(), Failure> {
        match self {
            Self::Process(process) => process.stop(),
            Self::Container { id, .. } => container::stop(id),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Process(Detached { pid, port, folder, binaries }) => {
                format!(
                    "pid={pid}\nport={port}\nfolder={}\nbinaries={}\n",
                    folder.display(),
                    binaries.display()
                )
            }
            Self::Container { id, port } => format!("container={id}\nport={port}\n"),
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        let fields: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
        let port = fields.get("port")?.parse().ok()?;
        if let Some(id) = fields.get("container") {
            return Some(Self::Container { id: (*id).to_owned(), port });
        }
        Some(Self::Process(Detached {
            pid: fields.get("pid")?.parse().ok()?,
            port,
            folder: fields.get("folder")?.into(),
            binaries: fields.get("binaries")?.into(),
        }))
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => {
                write!(
                    f,
                    "PostgreSQL on port {} (process {}, {})",
                    process.port,
                    process.pid,
                    process.folder.display()
                )
            }
            Self::Container { id, port } => write!(f, "PostgreSQL on port {port} (container {id:.12})"),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("PostgreSQL: not started"),
            Self::Running(service) => write!(f, "{service}: running"),
            Self::Dead(service) => write!(f, "{service}: dead"),
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_read_as_it_was_written() {
        let process = Service::Process(Detached {
            pid: 77,
            port: 20_001,
            folder: "/tmp/postrider-a=b".into(),
            binaries: "/usr/lib/postgresql/15/bin".into(),
        });
        let container = Service::Container { id: "0123456789abcdef".into(), port: 20_002 };
        for service in [process, container] {
            assert_eq!(Service::of_text(&service.to_text()), Some(service));
        }
    }
}
