//! The kinds of servers that tests need: what each is called and how it is found.

use std::env;
use std::fmt;
use std::path::PathBuf;

use crate::postgres::{Cluster, binaries};

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A PostgreSQL.
    Postgres,
    /// A MariaDB, or a MySQL.
    Mysql,
    /// A Kafka of one broker.
    Kafka,
    /// A PgBouncer in transaction mode, in front of the PostgreSQL.
    Pgbouncer,
}

impl Kind {
    /// All kinds, in the order they are spoken of.
    pub const ALL: [Self; 4] = [Self::Postgres, Self::Mysql, Self::Kafka, Self::Pgbouncer];

    /// The variable that holds the address of the server to test against.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "POSTRIDER_TEST_POSTGRES",
            Self::Mysql => "POSTRIDER_TEST_MYSQL",
            Self::Kafka => "POSTRIDER_TEST_KAFKA",
            Self::Pgbouncer => "POSTRIDER_TEST_PGBOUNCER",
        }
    }

    /// The address in the environment.
    pub fn given(self) -> Option<String> {
        env::var(self.variable()).ok().filter(|address| !address.is_empty())
    }

    /// The address of a server on a loopback port: of its database `postgres` or `test`, or for Kafka's
    /// clients to begin with.
    pub fn address(self, port: u16) -> String {
        match self {
            Self::Postgres | Self::Pgbouncer => format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            Self::Mysql => format!("mysql://root@127.0.0.1:{port}/test"),
            Self::Kafka => format!("127.0.0.1:{port}"),
        }
    }

    /// The variables for the server at `address`: the address, and the programs of this machine if a test may want
    /// them.
    pub fn environment(self, address: &str) -> Vec<(&'static str, String)> {
        let mut variables = vec![(self.variable(), address.to_owned())];
        if self == Self::Postgres {
            let programs = Cluster::binaries().map(PathBuf::into_os_string).ok();
            let programs = programs.and_then(|path| path.into_string().ok());
            variables.extend(programs.map(|path| (binaries::VARIABLE, path)));
        }
        variables
    }

    /// The name of the file that remembers a server that was left running.
    pub fn file(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Kafka => "kafka",
            Self::Pgbouncer => "pgbouncer",
        }
    }

    /// The signal that ends such a server at once and whole: nobody will read its data again.
    pub fn last_signal(self) -> &'static str {
        match self {
            // A killed one would leave its child processes.
            Self::Postgres => "QUIT",
            Self::Mysql | Self::Kafka | Self::Pgbouncer => "KILL",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MariaDB",
            Self::Kafka => "Kafka",
            Self::Pgbouncer => "PgBouncer",
        })
    }
}
