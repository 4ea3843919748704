//! The servers for the length of one command, and the variables that tell it about them.

use std::env;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::postgres::{Cluster, binaries};
use crate::server::Server;
use crate::services::{Service, Services, Status};

/// The variable that holds the address of the PostgreSQL to test against.
pub const VARIABLE: &str = "POSTRIDER_TEST_POSTGRES";

/// A PostgreSQL to run a command against; what was started for it ends with it.
#[derive(Debug)]
pub struct Session {
    postgres: Option<Postgres>,
}

#[derive(Debug)]
enum Postgres {
    /// In the environment: somebody else's.
    Given(String),
    /// Left running by `services up`.
    Service(Service),
    /// Started for this run.
    Own(Server),
}

impl Session {
    /// A session without servers, for commands that shall see only what their environment says.
    pub fn without_servers() -> Self {
        Self { postgres: None }
    }

    /// For tests: the server in the environment, else the one of `services up`, else one of its own.
    pub fn open(services: &Services) -> Result<Self, Failure> {
        if let Some(url) = given() {
            return Ok(Self { postgres: Some(Postgres::Given(url)) });
        }
        if let Status::Running(service) = services.status()? {
            return Ok(Self { postgres: Some(Postgres::Service(service)) });
        }
        Self::start(&[])
    }

    /// For benchmarks: the server in the environment, else one of its own with `settings`.
    pub fn open_with(settings: &[(&str, &str)]) -> Result<Self, Failure> {
        match given() {
            Some(url) => Ok(Self { postgres: Some(Postgres::Given(url)) }),
            None => Self::start(settings),
        }
    }

    /// The variables that tell a command about the servers.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        self.postgres.as_ref().map(|postgres| environment(&postgres.url())).unwrap_or_default()
    }

    /// Where the server comes from, for people.
    pub fn describe(&self) -> String {
        match &self.postgres {
            None => "no servers".to_owned(),
            Some(Postgres::Given(_)) => format!("the PostgreSQL of {VARIABLE}"),
            Some(Postgres::Service(service)) => {
                format!("the PostgreSQL of `services up` ({})", service.url())
            }
            Some(Postgres::Own(server)) => format!("a PostgreSQL of its own ({})", server.url()),
        }
    }

    fn start(settings: &[(&str, &str)]) -> Result<Self, Failure> {
        Server::start(settings).map(|server| Self { postgres: Some(Postgres::Own(server)) })
    }
}

impl Postgres {
    fn url(&self) -> String {
        match self {
            Self::Given(url) => url.clone(),
            Self::Service(service) => service.url(),
            Self::Own(server) => server.url(),
        }
    }
}

/// The address in the environment.
pub fn given() -> Option<String> {
    env::var(VARIABLE).ok().filter(|url| !url.is_empty())
}

/// The variables for the PostgreSQL at `url`: its address, and the programs of this machine if there are any.
pub fn environment(url: &str) -> Vec<(&'static str, String)> {
    let programs =
        Cluster::binaries().map(PathBuf::into_os_string).ok().and_then(|path| path.into_string().ok());
    [(VARIABLE, url.to_owned())].into_iter().chain(programs.map(|path| (binaries::VARIABLE, path))).collect()
}
