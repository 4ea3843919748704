//! A point-in-time restore: a base backup, an archive of the write-ahead log, and a point to stop at.

use std::path::Path;
use std::time::Duration;

use super::Cluster;
use super::data::{self, setting};
use crate::process;
use crate::task_error::TaskError;

/// The settings of a cluster that archives its write-ahead log beside its data, so that it can be restored.
pub const ARCHIVING: &[(&str, &str)] = &[
    ("archive_mode", "on"),
    (
        "archive_command",
        "mkdir -p ../archive && cp %p ../archive/%f.part && mv ../archive/%f.part ../archive/%f",
    ),
];

/// How long the archive, or the restored server, may take.
const PATIENCE: Duration = Duration::from_secs(30);

impl Cluster {
    /// Makes a base backup of the running server in `dir`, which must not exist yet and must lie where the server's account
    /// can write, in [`folder`](Self::folder) for instance.
    pub fn back_up_to(&self, dir: impl AsRef<Path>) -> Result<(), TaskError> {
        data::back_up(self, dir.as_ref())
    }

    /// Names this moment of the log, for [`restore_to`](Self::restore_to).
    pub fn restore_point(&self, name: &str) -> Result<(), TaskError> {
        self.ask(&format!("select pg_create_restore_point('{name}')")).map(drop)
    }

    /// Sets the cluster back to a restore point, from a base backup made before it and the archive; the address stays.
    ///
    /// It must have been created with [`ARCHIVING`]. The running server is killed once the point is archived; what came after
    /// the point never was.
    pub fn restore_to(&mut self, backup: impl AsRef<Path>, point: &str) -> Result<(), TaskError> {
        let segment = self.ask("select pg_walfile_name(pg_switch_wal())")?;
        let archived = self.folder().join("archive").join(&segment);
        if !process::wait_until(PATIENCE, || archived.is_file()) {
            return Err(TaskError::new(format!("{segment} was not archived within {PATIENCE:?}"))
                .with_log_file(&self.log()));
        }
        self.kill()?;
        self.replace_data_from(backup)?;
        let lines: String = [
            ("archive_mode", "off"),
            ("restore_command", "cp ../archive/%f %p"),
            ("recovery_target_name", point),
            ("recovery_target_action", "promote"),
        ]
        .map(|(name, value)| setting(name, value))
        .concat();
        data::append(self, &lines)?;
        data::signal(self, "recovery.signal")?;
        self.start()?;
        let done = || self.ask("select pg_is_in_recovery()").is_ok_and(|answer| answer == "f");
        if !process::wait_until(PATIENCE, done) {
            return Err(TaskError::new(format!("the server did not reach {point} within {PATIENCE:?}"))
                .with_log_file(&self.log()));
        }
        Ok(())
    }
}
