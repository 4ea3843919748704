//! The servers for the length of one command, and the variables that tell it about them.

use crate::failure::Failure;
use crate::kind::Kind;
use crate::server::{self, Server};
use crate::service::{Service, Status};
use crate::services::Services;

/// Servers to run a command against; what was started for it ends with it.
#[derive(Debug)]
pub struct Session {
    servers: Vec<(Kind, Source)>,
}

#[derive(Debug)]
enum Source {
    /// In the environment: somebody else's.
    Given(String),
    /// Left running by `services up`.
    Service(Service),
    /// Started for this run.
    Own(Server),
}

impl Session {
    /// For tests: of each kind the server in the environment, else the one of `services up`, else one of its own.
    /// Those that have to be started are started at the same time.
    pub fn open(services: &Services, kinds: &[Kind]) -> Result<Self, Failure> {
        Self::of(kinds, |kind| match services.status(kind)? {
            Status::Running(service) => Ok(Source::Service(service)),
            Status::Absent | Status::Dead(_) => Server::start(kind, &[]).map(Source::Own),
        })
    }

    /// For benchmarks: of each kind the server in the environment, else one of its own, a database with `settings`.
    pub fn open_with(kinds: &[Kind], settings: &[(&str, &str)]) -> Result<Self, Failure> {
        Self::of(kinds, |kind| {
            let settings = if kind == Kind::Kafka { &[] } else { settings };
            Server::start(kind, settings).map(Source::Own)
        })
    }

    /// To stay: of each kind the server in the environment, else the one of `services up`, which is started now if
    /// need be and outlives the session.
    pub fn leave(services: &Services, kinds: &[Kind]) -> Result<Self, Failure> {
        let missing: Vec<Kind> = kinds.iter().copied().filter(|kind| kind.given().is_none()).collect();
        let mut started = services.up(&missing)?.into_iter();
        let servers = kinds.iter().filter_map(|kind| match kind.given() {
            Some(address) => Some((*kind, Source::Given(address))),
            None => started.next().map(|service| (*kind, Source::Service(service))),
        });
        Ok(Self { servers: servers.collect() })
    }

    /// The variables that tell a command about the servers.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        self.servers.iter().flat_map(|(kind, source)| kind.environment(&source.address(*kind))).collect()
    }

    /// Where the servers come from, for people.
    pub fn describe(&self) -> String {
        let described: Vec<String> =
            self.servers.iter().map(|(kind, source)| source.describe(*kind)).collect();
        if described.is_empty() { "no servers".to_owned() } else { described.join(" and ") }
    }

    fn of(kinds: &[Kind], start: impl Fn(Kind) -> Result<Source, Failure> + Sync) -> Result<Self, Failure> {
        let servers = server::at_once(kinds, |kind| match kind.given() {
            Some(address) => Ok((kind, Source::Given(address))),
            None => start(kind).map(|source| (kind, source)),
        })?;
        Ok(Self { servers })
    }
}

impl Source {
    fn address(&self, kind: Kind) -> String {
        match self {
            Self::Given(address) => address.clone(),
            Self::Service(service) => kind.address(service.port()),
            Self::Own(server) => kind.address(server.port()),
        }
    }

    fn describe(&self, kind: Kind) -> String {
        match self {
            Self::Given(_) => format!("the {kind} of {}", kind.variable()),
            Self::Service(_) => format!("the {kind} of `services up` ({})", self.address(kind)),
            Self::Own(_) => format!("a {kind} of its own ({})", self.address(kind)),
        }
    }
}
