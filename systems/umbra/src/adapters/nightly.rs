//! The job of the night: retention, once a day at 04:00 in Seoul, by one worker.
//!
//! It runs `postrider archive` with the settings file, so that what is archived, masked and kept is written down there alone.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use postrider::store::Store;
use tokio::process::Command;
use uuid::Uuid;

use crate::contracts::{Answer, DAY, Timestamp};

/// When it runs, as in the settings file.
pub const AT: &str = "04:00";
/// The zone of that time, as in the settings file. It is 9 hours ahead of UTC, the whole year.
pub const ZONE: &str = "Asia/Seoul";

const DUTY: &str = "umbra-nightly";
/// How long a worker that died in the middle keeps others away. `postrider archive` has a lease of its own: two never run at once.
const LEASE: Duration = Duration::from_secs(5);

/// The number of the last night that has begun.
pub fn night(now: Timestamp) -> i64 {
    (now + 9 * 3600 - 4 * 3600).div_euclid(DAY)
}

/// The job, as one worker knows it.
#[derive(Debug)]
pub struct Nightly {
    owner: String,
    settings: PathBuf,
    /// The last night of which this worker knows that the job is done.
    done: Option<i64>,
}

impl Nightly {
    /// The job with this settings file.
    pub fn new(settings: PathBuf) -> Self {
        Self { owner: format!("worker-{}", Uuid::new_v4()), settings, done: None }
    }

    /// Does the job if no worker did it since the night began; whether it did.
    pub async fn look(&mut self, store: &dyn Store, now: Timestamp) -> Answer<bool> {
        let night = night(now);
        if self.done.is_some_and(|done| done >= night) {
            return Ok(false);
        }
        let Some(lease) = store.acquire_leader_lease(DUTY, &self.owner, LEASE).await? else {
            return Ok(false);
        };
        let last: Option<i64> = lease.note.and_then(|note| note.parse().ok());
        let is_due = last.is_none_or(|last| last < night);
        if is_due {
            let archived = archive(&self.settings).await;
            if archived.is_ok() {
                store.save_leader_note(DUTY, &self.owner, &night.to_string()).await?;
            }
            store.release_leader_lease(DUTY, &self.owner).await?;
            archived?;
        } else {
            store.release_leader_lease(DUTY, &self.owner).await?;
        }
        self.done = Some(night);
        Ok(is_due)
    }
}

async fn archive(settings: &Path) -> Answer<()> {
    let program = std::env::var_os("POSTRIDER").map_or_else(story::process::postrider_path, Into::into);
    let mut command = Command::new(program);
    command.arg("archive").arg("--config").arg(settings).args(["--yes", "--who", "umbra-worker"]);
    command.args(["--why", "daily retention"]).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.kill_on_drop(true).status().await?;
    if status.success() { Ok(()) } else { Err(format!("postrider archive ended with {status}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X2: the night begins at 04:00 in Seoul, which is 19:00 UTC of the day before.
    #[test]
    fn a_night_begins_at_four_in_seoul() {
        let four = 1_763_406_000; // 2025-11-17 19:00 UTC
        assert_eq!(four % DAY, 19 * 3600);
        assert_eq!(night(four - 1) + 1, night(four));
        assert_eq!(night(four), night(four + DAY - 1));
    }
}
