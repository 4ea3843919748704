//! A server that was left running, as a small file remembers it and the system knows it.

use std::collections::HashMap;
use std::fmt;

use crate::container;
use crate::detached::Detached;
use crate::kind::Kind;
use crate::task_error::TaskError;

/// A server that was left running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// What it is.
    pub kind: Kind,
    /// Where it runs.
    pub place: Place,
    /// For a pooler, the server that it is in front of: `host:port`.
    pub behind: Option<String>,
}

/// Where a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// As a process of this machine.
    Process(Detached),
    /// In a container.
    Container {
        /// Docker's id of it.
        id: String,
        /// The port it is published on.
        port: u16,
    },
}

/// What is known of a service.
#[derive(Debug, PartialEq, Eq)]
pub enum Status {
    /// None was started.
    Absent,
    /// It runs.
    Running(Service),
    /// It was started and has ended since, but not by `down`.
    Dead(Service),
}

impl Service {
    /// The port it listens on.
    pub fn port(&self) -> u16 {
        let (Place::Process(Detached { port, .. }) | Place::Container { port, .. }) = &self.place;
        *port
    }

    /// Whether it runs and is still the one that was started.
    pub fn is_running(&self) -> bool {
        match &self.place {
            Place::Process(process) => process.is_running(),
            Place::Container { id, .. } => container::is_running(id),
        }
    }

    /// Stops it, if it runs, and removes its folder.
    pub fn stop(&self) -> Result<(), TaskError> {
        match &self.place {
            Place::Process(process) => process.stop(self.kind.last_signal()),
            Place::Container { id, .. } => container::stop(id),
        }
    }

    /// What a file remembers of it.
    pub fn to_text(&self) -> String {
        let mut text = match &self.place {
            Place::Process(Detached { pid, port, folder }) => {
                format!("pid={pid}\nport={port}\nfolder={}\n", folder.display())
            }
            Place::Container { id, port } => format!("container={id}\nport={port}\n"),
        };
        if let Some(behind) = &self.behind {
            text.push_str(&format!("behind={behind}\n"));
        }
        text
    }

    /// The service that a file remembers, if the file makes sense.
    pub fn of_text(kind: Kind, text: &str) -> Option<Self> {
        let fields: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
        let port = fields.get("port")?.parse().ok()?;
        let place = match fields.get("container") {
            Some(id) => Place::Container { id: (*id).to_owned(), port },
            None => Place::Process(Detached {
                pid: fields.get("pid")?.parse().ok()?,
                port,
                folder: fields.get("folder")?.into(),
            }),
        };
        Some(Self { kind, place, behind: fields.get("behind").map(|behind| (*behind).to_owned()) })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on port {} ", self.kind, self.port())?;
        match &self.place {
            Place::Process(process) => write!(f, "(process {}, {})", process.pid, process.folder.display()),
            Place::Container { id, .. } => write!(f, "(container {id:.12})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_read_as_it_was_written() {
        let process = Place::Process(Detached { pid: 77, port: 20_001, folder: "/tmp/postrider-a=b".into() });
        let container = Place::Container { id: "0123456789abcdef".into(), port: 20_002 };
        for place in [process, container] {
            for (kind, behind) in
                Kind::ALL.into_iter().zip([None, Some("127.0.0.1:20000".to_owned())].into_iter().cycle())
            {
                let service = Service { kind, place: place.clone(), behind };
                assert_eq!(Service::of_text(kind, &service.to_text()), Some(service));
            }
        }
    }
}
