//! A throw-away server by whatever means this machine has.

use std::panic;
use std::thread;

use crate::container::Container;
use crate::kafka::kit::Kit;
use crate::kafka::{self, Broker, java};
use crate::kind::Kind;
use crate::mariadb::programs::Programs;
use crate::mariadb::{self, Mariadb};
use crate::package;
use crate::pgbouncer::{self, Pgbouncer};
use crate::postgres::{self, Cluster, binaries};
use crate::task_error::TaskError;

/// A server that this process started and that ends with it.
#[derive(Debug)]
pub enum Server {
    /// A PostgreSQL of the programs on this machine.
    Cluster(Cluster),
    /// A MariaDB of the programs on this machine.
    Mariadb(Mariadb),
    /// A Kafka of the programs on this machine.
    Broker(Box<Broker>),
    /// A PgBouncer of the programs on this machine.
    Pooler(Pgbouncer),
    /// Any of them, of an image.
    Container(Container),
}

impl Server {
    /// Starts a server of that kind: from the programs of this machine, which are installed first where they are
    /// missing and that is possible, else in a container. A database gets `settings` beside the usual ones; a pooler goes in front
    /// of the PostgreSQL at `behind`.
    pub fn start(kind: Kind, settings: &[(&str, &str)], behind: Option<&str>) -> Result<Self, TaskError> {
        let (there, packages) = match kind {
            Kind::Postgres => (binaries::find()?.is_some(), postgres::PACKAGES),
            Kind::Mysql => (Programs::find()?.is_some(), mariadb::PACKAGES),
            Kind::Kafka => (Kit::has_programs(), java::PACKAGES),
            Kind::Pgbouncer => (Pgbouncer::program().is_some(), pgbouncer::PACKAGES),
        };
        if !there {
            if package::can_install()? {
                package::install(&kind.to_string(), packages)?;
            } else if Container::is_available() {
                return match kind {
                    Kind::Postgres => Container::postgres(settings).map(Self::Container),
                    Kind::Mysql => Container::mariadb(settings).map(Self::Container),
                    Kind::Kafka => Container::kafka().map(Self::Container),
                    Kind::Pgbouncer => Err(pgbouncer::missing()),
                };
            }
        }
        match kind {
            Kind::Postgres => Cluster::create(settings).map(Self::Cluster),
            Kind::Mysql => Mariadb::create(settings).map(Self::Mariadb),
            Kind::Kafka => Broker::create(&kafka::Options::new()).map(Box::new).map(Self::Broker),
            Kind::Pgbouncer => {
                let behind =
                    behind.ok_or_else(|| TaskError::new("a PgBouncer must have a PostgreSQL behind it"))?;
                Pgbouncer::before(pgbouncer::place_of(behind), &[]).map(Self::Pooler)
            }
        }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        match self {
            Self::Cluster(cluster) => cluster.port(),
            Self::Mariadb(server) => server.port(),
            Self::Broker(broker) => broker.port(),
            Self::Pooler(pooler) => pooler.port(),
            Self::Container(container) => container.port(),
        }
    }
}

/// Does something for several kinds of servers at the same time; gives the results in order, or the first failure.
pub fn at_once<T: Send>(
    kinds: &[Kind],
    action: impl Fn(Kind) -> Result<T, TaskError> + Sync,
) -> Result<Vec<T>, TaskError> {
    let action = &action;
    thread::scope(|scope| {
        let threads: Vec<_> = kinds.iter().map(|kind| scope.spawn(move || action(*kind))).collect();
        // All are waited for: what one has started is dropped, and with that stopped, when another failed.
        let results: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
            .collect();
        results.into_iter().collect()
    })
}
