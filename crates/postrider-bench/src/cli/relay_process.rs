//! `postrider relay` as a child process: one subscription to its standard output, which is counted, and default settings.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::AnyError;
use crate::cli::postrider;
use crate::data::Bench;
use crate::engine::Tally;

const SETTINGS: &str = "[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
/// How long it may take to end once it is asked to.
const PATIENCE: Duration = Duration::from_secs(30);

/// The process; dropped, it is killed.
pub(crate) struct RelayProcess {
    process: Child,
    /// Where it answers `/metrics`.
    address: SocketAddr,
    tally: Arc<Tally>,
    reader: JoinHandle<Result<(), AnyError>>,
    settings: Settings,
}

/// A file that goes away.
struct Settings(PathBuf);

impl Drop for Settings {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Counts the events in an output, each of which may come only once.
async fn count(output: ChildStdout, tally: Arc<Tally>) -> Result<(), AnyError> {
    let mut seen = HashSet::new();
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        let event: serde_json::Value = serde_json::from_str(&line)?;
        let id = event["id"].as_str().ok_or("there is an event without an id")?;
        if !seen.insert(id.to_owned()) {
            return Err(format!("event {id} came twice").into());
        }
        tally.add();
    }
    Ok(())
}

impl RelayProcess {
    /// Starts it on a log with so many events.
    pub(crate) async fn start(bench: &Bench, events: u64) -> Result<Self, AnyError> {
        let settings = Settings(std::env::temp_dir().join(format!("{}.toml", bench.schema)));
        std::fs::write(&settings.0, SETTINGS)?;
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let mut process = postrider(bench)?
            .arg("--config")
            .arg(&settings.0)
            .args(["--set", &format!("http.listen={address}"), "--set", "log.level=warn", "relay"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let tally = Tally::new(events);
        let output = process.stdout.take().ok_or("the relay has no output")?;
        let reader = tokio::spawn(count(output, Arc::clone(&tally)));
        Ok(Self { process, address, tally, reader, settings })
    }

    /// Waits until it has delivered all.
    pub(crate) async fn delivered(&mut self) -> Result<(), AnyError> {
        tokio::select! {
            all = self.tally.wait() => all,
            status = self.process.wait() => Err(format!("the relay ended early: {}", status?).into()),
        }
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> Result<u32, AnyError> {
        self.process.id().ok_or_else(|| "the relay has ended".into())
    }

    /// What it answers to who collects metrics.
    pub(crate) async fn metrics(&self) -> Result<String, AnyError> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(answer),
            false => Err(format!("/metrics answers {:?}", answer.lines().next()).into()),
        }
    }

    /// Asks it to end, and makes sure that all came, and nothing twice.
    pub(crate) async fn stop(mut self) -> Result<(), AnyError> {
        let mut kill = Command::new("kill");
        let asked = kill.args(["-TERM", &self.id()?.to_string()]).status().await?;
        if !asked.success() {
            return Err(format!("the relay could not be asked to end: {asked}").into());
        }
        let status = tokio::time::timeout(PATIENCE, self.process.wait()).await;
        let status = status.map_err(|_| format!("the relay did not end within {PATIENCE:?}"))??;
        if !status.success() {
            return Err(format!("the relay failed: {status}").into());
        }
        self.reader.await??;
        drop(self.settings);
        self.tally.check()
    }
}
