//! A throw-away PostgreSQL in a Docker container, for machines without the programs.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::account::Account;
use crate::failure::Failure;
use crate::keeper::Keeper;
use crate::postgres::data::SETTINGS;
use crate::process;

const IMAGE: &str = "postgres:16";

/// How long the server in a new container may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A container that is stopped, and with that removed, when it is dropped or its process ends.
#[derive(Debug)]
pub struct Container {
    id: String,
    port: u16,
    /// Nobody: the container was detached and is not this value's to clean up.
    keeper: Option<Keeper>,
}

impl Container {
    /// Whether a Docker engine answers.
    pub fn is_available() -> bool {
        let mut info = docker(&["info", "--format", "{{.ServerVersion}}"]);
        process::output(&mut info, "ask Docker").is_ok_and(|version| !version.trim().is_empty())
    }

    /// Starts a container with [`SETTINGS`] and then `settings`, which win, and waits until it takes connections.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self, Failure> {
        let mut run = docker(&["run", "-d", "--rm", "-p", "127.0.0.1::5432", "--shm-size", "256m"]);
        run.args(["-e", "POSTGRES_HOST_AUTH_METHOD=trust", IMAGE]);
        for (name, value) in SETTINGS.iter().chain(settings) {
            run.arg("-c").arg(format!("{name}={value}"));
        }
        let id = process::output(&mut run, "start PostgreSQL in a container")?.trim().to_owned();
        // Docker's client needs its user's settings: it runs as whoever runs this.
        let keeper = Keeper::hire(&Account::own_user(), r#"docker stop "$1""#, &[&id])?;
        let mut container = Self { id, port: 0, keeper: Some(keeper) };
        container.port = container.published_port()?;
        container.wait_until_ready()?;
        Ok(container)
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets the container outlive this process. Whoever takes it over ends it with [`stop`].
    pub fn detach(mut self) -> (String, u16) {
        if let Some(keeper) = self.keeper.take() {
            keeper.dismiss();
        }
        (self.id.clone(), self.port)
    }

    fn published_port(&self) -> Result<u16, Failure> {
        let answer =
            process::output(&mut docker(&["port", &self.id, "5432/tcp"]), "find the container's port")?;
        let port = answer.lines().next().and_then(|line| line.rsplit_once(':')).map(|(_, port)| port.trim());
        port.and_then(|port| port.parse().ok())
            .ok_or_else(|| Failure::new(format!("Docker answered `{}` when asked for a port", answer.trim())))
    }

    fn wait_until_ready(&self) -> Result<(), Failure> {
        // By TCP: while the image sets itself up, a first server answers on the Unix socket only.
        let probe = ["exec", &self.id, "pg_isready", "-h", "127.0.0.1", "-U", "postgres"];
        if process::wait_until(READY_WITHIN, || {
            process::output(&mut docker(&probe), "ask the server").is_ok()
        }) {
            return Ok(());
        }
        let mut logs = docker(&["logs", "--tail", "20", &self.id]);
        let log = logs.output().map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        Err(Failure::new("PostgreSQL in a container did not start; the end of its log:")
            .with_log(&String::from_utf8_lossy(&log)))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        if stop(&self.id).is_ok() {
            keeper.dismiss();
        }
    }
}

/// Whether the container `id` runs.
pub fn is_running(id: &str) -> bool {
    let mut inspect = docker(&["inspect", "--format", "{{.State.Running}}", id]);
    process::output(&mut inspect, "look at a container").is_ok_and(|answer| answer.trim() == "true")
}

/// Stops the container `id`; Docker then removes it. One that is gone is no failure.
pub fn stop(id: &str) -> Result<(), Failure> {
    if !is_running(id) {
        return Ok(());
    }
    process::output(docker(&["stop", id]).process_group(0), "stop the container").map(drop)
}

fn docker(arguments: &[&str]) -> Command {
    let mut docker = Command::new("docker");
    docker.args(arguments);
    docker
}
