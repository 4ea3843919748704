//! The servers for the length of one command, and the variables that tell it about them.

use crate::kind::Kind;
use crate::server::{self, Server};
use crate::service::{Service, Status};
use crate::services::Services;
use crate::task_error::TaskError;

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
    pub fn open(services: &Services, kinds: &[Kind]) -> Result<Self, TaskError> {
        let start = |kind: Kind, behind: Option<&str>| {
            let running = match services.status(kind)? {
                // One that was left running may be in front of the PostgreSQL that was.
                _ if kind == Kind::Pgbouncer => services.pooler_before(behind)?,
                Status::Running(service) => Some(service),
                Status::Absent | Status::Dead(_) => None,
            };
            running.map_or_else(
                || Server::start(kind, &[], behind).map(Source::Own),
                |it| Ok(Source::Service(it)),
            )
        };
        Self::of(kinds, |kind| services.given(kind), start)
    }

    /// For benchmarks: of each kind the server in the environment, else one of its own, a database with `settings`.
    pub fn open_with(kinds: &[Kind], settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        let start = |kind: Kind, behind: Option<&str>| {
            let settings = if kind == Kind::Kafka { &[] } else { settings };
            Server::start(kind, settings, behind).map(Source::Own)
        };
        Self::of(kinds, |kind| Ok(kind.given()), start)
    }

    /// To stay: of each kind the server in the environment, else the one of `services up`, which is started now if
    /// need be and outlives the session.
    pub fn leave(services: &Services, kinds: &[Kind]) -> Result<Self, TaskError> {
        let given: Vec<Option<String>> =
            kinds.iter().map(|kind| services.given(*kind)).collect::<Result<_, _>>()?;
        let given = || kinds.iter().copied().zip(&given);
        let missing: Vec<Kind> = given().filter(|(_, given)| given.is_none()).map(|(kind, _)| kind).collect();
        let mut started = services.up(&missing, services.given(Kind::Postgres)?.as_deref())?.into_iter();
        let servers = given().filter_map(|(kind, given)| match given {
            Some(address) => Some((kind, Source::Given(address.clone()))),
            None => started.next().map(|service| (kind, Source::Service(service))),
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

    /// All at the same time, but for the pooler: it goes in front of the PostgreSQL, which has to be there.
    fn of(
        kinds: &[Kind],
        given: impl Fn(Kind) -> Result<Option<String>, TaskError> + Sync,
        start: impl Fn(Kind, Option<&str>) -> Result<Source, TaskError> + Sync,
    ) -> Result<Self, TaskError> {
        let source = |kind: Kind, behind: Option<&str>| match given(kind)? {
            Some(address) => Ok((kind, Source::Given(address))),
            None => start(kind, behind).map(|source| (kind, source)),
        };
        let (poolers, others): (Vec<Kind>, Vec<Kind>) =
            kinds.iter().copied().partition(|kind| *kind == Kind::Pgbouncer);
        let mut servers = server::at_once(&others, |kind| source(kind, None))?;
        for kind in poolers {
            let behind = servers.iter().find(|(kind, _)| *kind == Kind::Postgres);
            let behind = behind.map(|(kind, source)| source.address(*kind));
            servers.push(source(kind, behind.as_deref())?);
        }
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
