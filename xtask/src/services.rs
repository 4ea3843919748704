//! Servers that stay up between commands: `cargo xtask services up`, `down` and `status`.
//!
//! What was started is written to a small file each in the target folder; that it still runs is asked of the system.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::kind::Kind;
use crate::pgbouncer;
use crate::server::{self, Server};
use crate::service::{Place, Service, Status};
use crate::task_error::TaskError;
use crate::workspace;

/// The servers of one target folder.
#[derive(Debug)]
pub struct Services {
    folder: PathBuf,
}

impl Services {
    /// Those of this workspace.
    pub fn of_workspace() -> Self {
        Self { folder: workspace::target().join("services") }
    }

    /// Starts of `kinds` what does not run, at the same time; what runs is used again. Gives them in order.
    ///
    /// Where one of them fails, the others stay up. A pooler comes last: it goes in front of the PostgreSQL at `given`, or of that
    /// of these services; one that is in front of another is replaced.
    pub fn up(&self, kinds: &[Kind], given: Option<&str>) -> Result<Vec<Service>, TaskError> {
        let _alone = self.lock()?;
        let servers: Vec<Kind> = kinds.iter().copied().filter(|kind| *kind != Kind::Pgbouncer).collect();
        let mut services = server::at_once(&servers, |kind| self.up_one(kind, None))?;
        if kinds.contains(&Kind::Pgbouncer) {
            let own = services.iter().find(|service| service.kind == Kind::Postgres);
            let own = own.map(|service| Kind::Postgres.address(service.port()));
            let behind = given.map(ToOwned::to_owned).or(own);
            if self.pooler_before(behind.as_deref())?.is_none() {
                self.end(Kind::Pgbouncer)?;
            }
            services.push(self.up_one(Kind::Pgbouncer, behind.as_deref())?);
        }
        Ok(services)
    }

    /// The pooler that runs, if it is in front of the PostgreSQL at this address.
    pub fn pooler_before(&self, address: Option<&str>) -> Result<Option<Service>, TaskError> {
        Ok(match self.status(Kind::Pgbouncer)? {
            Status::Running(pooler) if pooler.behind.as_deref() == address.map(pgbouncer::place_of) => {
                Some(pooler)
            }
            _ => None,
        })
    }

    /// The address in the environment, unless it is that of a service: `services up` exports its own, which says nothing about
    /// whether they still run.
    pub fn given(&self, kind: Kind) -> Result<Option<String>, TaskError> {
        let Some(address) = kind.given() else { return Ok(None) };
        Ok(match self.status(kind)? {
            Status::Running(service) | Status::Dead(service) if kind.address(service.port()) == address => {
                None
            }
            _ => Some(address),
        })
    }

    /// Stops what was started and removes its folder; gives what it was.
    pub fn down(&self) -> Result<Vec<(Kind, Status)>, TaskError> {
        let _alone = self.lock()?;
        server::at_once(&Kind::ALL, |kind| Ok((kind, self.end(kind)?)))
    }

    /// Stops what was started of that kind; gives what it was.
    fn end(&self, kind: Kind) -> Result<Status, TaskError> {
        let status = self.status(kind)?;
        if let Status::Running(service) | Status::Dead(service) = &status {
            service.stop()?;
            fs::remove_file(self.file(kind)).map_err(|error| unwritable(&self.file(kind), &error))?;
        }
        Ok(status)
    }

    /// What was started of that kind, and whether it runs.
    pub fn status(&self, kind: Kind) -> Result<Status, TaskError> {
        let path = self.file(kind);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Status::Absent),
            Err(error) => return Err(TaskError::new(format!("could not read {}: {error}", path.display()))),
        };
        let service = Service::of_text(kind, &text).ok_or_else(|| {
            let path = path.display();
            TaskError::new(format!("{path} is not readable: stop what it names by hand and remove it"))
        })?;
        Ok(if service.is_running() { Status::Running(service) } else { Status::Dead(service) })
    }

    fn up_one(&self, kind: Kind, behind: Option<&str>) -> Result<Service, TaskError> {
        match self.status(kind)? {
            Status::Running(service) => return Ok(service),
            Status::Dead(service) => service.stop()?,
            Status::Absent => {}
        }
        let place = match Server::start(kind, &[], behind)? {
            Server::Cluster(cluster) => Place::Process(cluster.detach()?),
            Server::Mariadb(server) => Place::Process(server.detach()?),
            Server::Broker(broker) => Place::Process(broker.detach()?),
            Server::Pooler(pooler) => Place::Process(pooler.detach()?),
            Server::Container(container) => {
                let (id, port) = container.detach();
                Place::Container { id, port }
            }
        };
        let behind = behind.map(|address| pgbouncer::place_of(address).to_owned());
        let service = Service { kind, place, behind };
        if let Err(error) = fs::write(self.file(kind), service.to_text()) {
            service.stop()?;
            return Err(unwritable(&self.file(kind), &error));
        }
        Ok(service)
    }

    fn file(&self, kind: Kind) -> PathBuf {
        self.folder.join(kind.file())
    }

    /// Waits until no other command changes the services, and keeps others waiting while it is held.
    fn lock(&self) -> Result<File, TaskError> {
        let path = self.folder.join("lock");
        fs::create_dir_all(&self.folder)
            .and_then(|()| File::create(&path))
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| unwritable(&path, &error))
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}
