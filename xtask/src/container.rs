//! A throw-away server in a Docker container, for machines without the programs.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::account::Account;
use crate::kafka::{properties, topics};
use crate::kind::Kind;
use crate::mariadb;
use crate::port;
use crate::postgres::data::SETTINGS;
use crate::process;
use crate::task_error::TaskError;
use crate::watchdog::Watchdog;

const POSTGRES_IMAGE: &str = "postgres:16";
const MARIADB_IMAGE: &str = "mariadb:10.11";
const KAFKA_IMAGE: &str = "apache/kafka:4.1.1";

/// How long the server in a new container may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A container that is stopped, and with that removed, when it is dropped or its process ends.
#[derive(Debug)]
pub struct Container {
    id: String,
    port: u16,
    /// Nobody: the container was detached and is not this value's to clean up.
    watchdog: Option<Watchdog>,
}

impl Container {
    /// Whether a Docker engine answers.
    pub fn is_available() -> bool {
        let mut info = docker(&["info", "--format", "{{.ServerVersion}}"]);
        process::output(&mut info, "ask Docker").is_ok_and(|version| !version.trim().is_empty())
    }

    /// Starts a PostgreSQL with [`SETTINGS`] and then `settings`, which win, and waits until it takes connections.
    pub fn postgres(settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        let mut run = run(&["-p", "127.0.0.1::5432", "--shm-size", "256m"]);
        run.args(["-e", "POSTGRES_HOST_AUTH_METHOD=trust", POSTGRES_IMAGE]);
        for (name, value) in SETTINGS.iter().chain(settings) {
            run.arg("-c").arg(format!("{name}={value}"));
        }
        let mut container = Self::start(&mut run, Kind::Postgres)?;
        container.port = container.published_port("5432/tcp")?;
        // By TCP: while the image sets itself up, a first server answers on the Unix socket only.
        let probe = ["exec", &container.id, "pg_isready", "-h", "127.0.0.1", "-U", "postgres"];
        container
            .wait_until(Kind::Postgres, || process::output(&mut docker(&probe), "ask the server").is_ok())?;
        Ok(container)
    }

    /// Starts a MariaDB with [`mariadb::SETTINGS`] and then `settings`, which win, and waits until it takes connections.
    pub fn mariadb(settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        let mut run = run(&["-p", "127.0.0.1::3306", "-e", "MARIADB_DATABASE=test"]);
        run.args(["-e", "MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1", MARIADB_IMAGE]);
        for (name, value) in mariadb::SETTINGS.iter().chain(settings) {
            run.arg(format!("--{name}={value}"));
        }
        let mut container = Self::start(&mut run, Kind::Mysql)?;
        container.port = container.published_port("3306/tcp")?;
        // While the image sets itself up, its first server listens on no port.
        container.wait_until(Kind::Mysql, || mariadb::greets(container.port))?;
        Ok(container)
    }

    /// Starts a Kafka of one broker, and waits until it takes part.
    pub fn kafka() -> Result<Self, TaskError> {
        // A broker tells its clients its address: it has to know the port outside before it starts.
        let port = port::free()?;
        let mut run = run(&["-p", &format!("127.0.0.1:{port}:{port}")]);
        for (name, value) in kafka_properties(port) {
            run.arg("-e").arg(format!("{}={value}", kafka_variable(&name)));
        }
        let mut container = Self::start(run.arg(KAFKA_IMAGE), Kind::Kafka)?;
        container.port = port;
        container.wait_until(Kind::Kafka, || {
            topics::metadata(port, &[]).is_ok_and(|metadata| !metadata.brokers.is_empty())
        })?;
        Ok(container)
    }

    fn start(run: &mut Command, kind: Kind) -> Result<Self, TaskError> {
        let id = process::output(run, &format!("start {kind} in a container"))?.trim().to_owned();
        // Docker's client needs its user's settings: it runs as whoever runs this.
        let watchdog = Watchdog::spawn(&Account::own_user(), r#"docker stop "$1""#, &[&id])?;
        Ok(Self { id, port: 0, watchdog: Some(watchdog) })
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets the container outlive this process. Whoever takes it over ends it with [`stop`].
    pub fn detach(mut self) -> (String, u16) {
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.disarm();
        }
        (self.id.clone(), self.port)
    }

    fn published_port(&self, inside: &str) -> Result<u16, TaskError> {
        let answer = process::output(&mut docker(&["port", &self.id, inside]), "find the container's port")?;
        let port = answer.lines().next().and_then(|line| line.rsplit_once(':')).map(|(_, port)| port.trim());
        port.and_then(|port| port.parse().ok()).ok_or_else(|| {
            TaskError::new(format!("Docker answered `{}` when asked for a port", answer.trim()))
        })
    }

    fn wait_until(&self, kind: Kind, ready: impl FnMut() -> bool) -> Result<(), TaskError> {
        if process::wait_until(READY_WITHIN, ready) {
            return Ok(());
        }
        let mut logs = docker(&["logs", "--tail", "20", &self.id]);
        let log = logs.output().map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        Err(TaskError::new(format!("{kind} in a container did not start; the end of its log:"))
            .with_log(&String::from_utf8_lossy(&log)))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let Some(watchdog) = self.watchdog.take() else { return };
        if stop(&self.id).is_ok() {
            watchdog.disarm();
        }
    }
}

/// Whether the container `id` runs.
pub fn is_running(id: &str) -> bool {
    let mut inspect = docker(&["inspect", "--format", "{{.State.Running}}", id]);
    process::output(&mut inspect, "look at a container").is_ok_and(|answer| answer.trim() == "true")
}

/// Stops the container `id`; Docker then removes it. One that is gone is no failure.
pub fn stop(id: &str) -> Result<(), TaskError> {
    if !is_running(id) {
        return Ok(());
    }
    process::output(docker(&["stop", id]).process_group(0), "stop the container").map(drop)
}

/// The properties of a broker that its clients reach on `port`.
fn kafka_properties(port: u16) -> impl Iterator<Item = (String, String)> {
    let own = [
        ("node.id", "1".to_owned()),
        ("controller.quorum.voters", "1@127.0.0.1:9093".to_owned()),
        ("listeners", format!("PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:9093")),
        ("advertised.listeners", format!("PLAINTEXT://{}", Kind::Kafka.address(port))),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned()),
    ];
    let settings = properties::SETTINGS.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let given = own.into_iter().chain(settings).map(|(name, value)| (name.to_owned(), value));
    given.chain(properties::of_replication(1))
}

/// How the image wants a property to be named.
fn kafka_variable(property: &str) -> String {
    format!("KAFKA_{}", property.to_uppercase().replace('.', "_"))
}

fn run(arguments: &[&str]) -> Command {
    let mut run = docker(&["run", "-d", "--rm"]);
    run.args(arguments);
    run
}

fn docker(arguments: &[&str]) -> Command {
    let mut docker = Command::new("docker");
    docker.args(arguments);
    docker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_in_a_container_is_told_the_port_that_its_clients_see() {
        let variables: Vec<String> = kafka_properties(20_001)
            .map(|(name, value)| format!("{}={value}", kafka_variable(&name)))
            .collect();
        for variable in [
            "KAFKA_PROCESS_ROLES=broker,controller",
            "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:20001",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1",
        ] {
            assert!(variables.iter().any(|it| it == variable), "{variable} is missing in {variables:?}");
        }
    }
}
