//! A relay of the demo as its parent has it: a process that can be killed, and that is never left behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Server;
use super::fault::Fault;
use crate::Failure;

/// How long a relay may take to give everything back.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where a relay finds the address of the server, if the shop is on one.
pub(crate) const ADDRESS: &str = "POSTRIDER_DEMO_ADDRESS";
const LOOK: Duration = Duration::from_millis(20);

/// A relay in a process of its own. Dropped, it is killed.
///
/// It ends by itself when its stdin does, so that it can't outlive the demo, however that ends.
pub(crate) struct RelayProcess {
    name: &'static str,
    process: Child,
    log: PathBuf,
}

impl RelayProcess {
    /// Starts one: this program again.
    pub(crate) fn start(
        name: &'static str,
        folder: &Path,
        server: Option<Server<'_>>,
        fault: Option<Fault>,
    ) -> Result<Self, Failure> {
        let log = folder.join(format!("{name}.log").replace(' ', "-"));
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["demo", "--relay", name, "--keep"]).arg(folder);
        // Not an argument: everybody sees those, and a password may be in it.
        if let Some(server) = server {
            command.env(ADDRESS, server.address);
            command.args(server.schema.iter().flat_map(|schema| ["--schema", schema]));
        }
        if let Some(fault) = fault {
            command.args(["--break", &format!("{fault:?}").to_lowercase()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(&log)?);
        // A group of its own: Ctrl-C is the parent's to hear.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(Self { name, process: command.spawn()?, log })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// An error if it has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let (name, log) = (self.name, self.log.display());
                Err(format!("{name} exited unexpectedly ({status}); its log is {log}").into())
            }
        }
    }

    /// Ends it as a power cut does: SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Lets it finish what it has in hand and give its lanes back.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        drop(self.process.stdin.take());
        let end = Instant::now() + PATIENCE;
        while self.process.try_wait()?.is_none() {
            if Instant::now() > end {
                return Err(format!("{} does not stop; it was killed", self.name).into());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
