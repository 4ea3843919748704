//! The servers of the tests, as the environment names them.

use std::net::SocketAddr;
use std::str::FromStr;

use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use xtask::kind::Kind;

/// The address of a server of the tests.
fn given(kind: Kind) -> String {
    kind.given().unwrap_or_else(|| {
        let variable = kind.variable();
        panic!("{variable} must name a {kind}: run the tests with `cargo xtask test`, or set it")
    })
}

/// An address where nobody listens. No outgoing connection is given its port, as one that was free a moment ago may be.
pub fn nobody() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], xtask::port::free().expect("a free port")))
}

/// The PostgreSQL, as `postgres://…`.
pub fn postgres() -> String {
    given(Kind::Postgres)
}

/// The PostgreSQL.
pub fn postgres_options() -> PgConnectOptions {
    PgConnectOptions::from_str(&postgres())
        .expect("POSTRIDER_TEST_POSTGRES must be an address of a PostgreSQL server")
}

/// The PostgreSQL behind its PgBouncer. As Debian configures that, it refuses a setting that the driver asks for.
pub fn pgbouncer_options() -> PgConnectOptions {
    let address = PgConnectOptions::from_str(&given(Kind::Pgbouncer));
    address.expect("POSTRIDER_TEST_PGBOUNCER must be an address of a PgBouncer").extra_float_digits(None)
}

/// The MariaDB or MySQL, as `mysql://…`.
pub fn mysql() -> String {
    given(Kind::Mysql)
}

/// The MariaDB or MySQL.
pub fn mysql_options() -> MySqlConnectOptions {
    MySqlConnectOptions::from_str(&mysql())
        .expect("POSTRIDER_TEST_MYSQL must be an address of a MySQL server")
}

/// The Kafka broker, as `host:port`.
pub fn kafka() -> String {
    given(Kind::Kafka)
}

/// Creates topics on the broker of the tests, each with its number of partitions.
pub fn create_topics(topics: &[(&str, u16)]) {
    let address = kafka();
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port = port.expect("POSTRIDER_TEST_KAFKA must be host:port");
    xtask::kafka::topics::create(port, topics, &[]).expect("topics");
    let names: Vec<&str> = topics.iter().map(|(name, _)| *name).collect();
    xtask::kafka::topics::wait_until_complete(port, &names).expect("topics with leaders");
}

/// The same address with another database: `postgres://…/NAME`.
pub fn with_database(address: &str, database: &str) -> String {
    let (server, _) = address.rsplit_once('/').expect("an address with a database");
    format!("{server}/{database}")
}
