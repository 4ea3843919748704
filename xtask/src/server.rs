//! A throw-away PostgreSQL by whatever means this machine has.

use crate::container::Container;
use crate::failure::Failure;
use crate::postgres::{Cluster, binaries, package};

/// A PostgreSQL that this process started and that ends with it.
#[derive(Debug)]
pub enum Server {
    /// Of the programs on this machine.
    Cluster(Cluster),
    /// Of an image.
    Container(Container),
}

impl Server {
    /// Starts a server with `settings` beside the usual ones: from the programs of this machine, which are
    /// installed first where they are missing and that is possible, else in a container.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self, Failure> {
        if binaries::find()?.is_none() {
            if package::can_install()? {
                package::install()?;
            } else if Container::is_available() {
                return Container::start(settings).map(Self::Container);
            }
        }
        Cluster::create(settings).map(Self::Cluster)
    }

    /// The address of its database `postgres`.
    pub fn url(&self) -> String {
        match self {
            Self::Cluster(cluster) => url(cluster.port()),
            Self::Container(container) => url(container.port()),
        }
    }
}

/// The address of the database `postgres` of a server on the loopback address.
pub fn url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}
