//! The job of the night: retention, once a day by one worker.
//!
//! It runs `postrider archive` with the settings file, so that what is archived, masked and kept, and when, is written down there alone.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use postrider::store::Store;
use tokio::process::Command;
use uuid::Uuid;

use crate::contracts::{Answer, DAY, Timestamp};

const DUTY: &str = "umbra-nightly";
/// How long a worker that died in the middle keeps others away. `postrider archive` has a lease of its own: two never run at once.
/// Where that takes longer than this lease, the next tick archives what is left, which is little.
const LEASE: Duration = Duration::from_secs(20);

/// The one zone that the worker knows: 9 hours ahead of UTC, the whole year.
const ZONE: (&str, Timestamp) = ("Asia/Seoul", 9 * 3600);

/// When the nights begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nights {
    /// In seconds since midnight, UTC; less than nothing for the evening before.
    begin: Timestamp,
}

impl Nights {
    /// The time and the zone of `[retention]` in a settings file.
    pub fn parse(settings: &str) -> Answer<Self> {
        let settings: toml::Table = settings.parse()?;
        let text = |name: &str| settings.get("retention")?.get(name)?.as_str();
        let (zone, ahead) = ZONE;
        if text("zone") != Some(zone) {
            return Err(
                format!("zone in [retention] must be {zone:?}, because the worker knows no other").into()
            );
        }
        let at = text("at").and_then(|at| at.split_once(':'));
        let at = at.and_then(|(hour, minute)| {
            Some((hour.parse::<Timestamp>().ok()?, minute.parse::<Timestamp>().ok()?))
        });
        let at = at.filter(|(hour, minute): &(Timestamp, Timestamp)| {
            (0..24).contains(hour) && (0..60).contains(minute)
        });
        let (hour, minute) = at.ok_or("at in [retention] must be a time such as \"04:00\"")?;
        Ok(Self { begin: hour * 3600 + minute * 60 - ahead })
    }

    /// The number of the last night that has begun.
    pub fn last(self, now: Timestamp) -> i64 {
        (now - self.begin).div_euclid(DAY)
    }
}

/// The job, as one worker knows it.
#[derive(Debug)]
pub struct Nightly {
    owner: String,
    settings: PathBuf,
    nights: Nights,
    /// The last night of which this worker knows that the job is done.
    done: Option<i64>,
}

impl Nightly {
    /// The job with this settings file.
    pub fn new(settings: PathBuf) -> Answer<Self> {
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", settings.display());
        let text = std::fs::read_to_string(&settings).map_err(|error| wrong(&error))?;
        let nights = Nights::parse(&text).map_err(|fault| wrong(&fault))?;
        Ok(Self { owner: format!("worker-{}", Uuid::new_v4()), settings, nights, done: None })
    }

    /// Does the job if no worker did it since the night began; whether it did.
    pub async fn look(&mut self, store: &dyn Store, now: Timestamp) -> Answer<bool> {
        let night = self.nights.last(now);
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
            let is_noted =
                archived.is_ok() && store.save_leader_note(DUTY, &self.owner, &night.to_string()).await?;
            store.release_leader_lease(DUTY, &self.owner).await?;
            archived?;
            if !is_noted {
                return Err("postrider archive took longer than the lease of the night".into());
            }
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

    /// X2: by the settings file the night begins at 04:00 in Seoul, which is 19:00 UTC of the day before.
    #[test]
    fn a_night_begins_at_four_in_seoul() {
        let settings = include_str!("../../umbra.toml");
        let nights = Nights::parse(settings).expect("a time and a zone");
        let four = 1_763_406_000; // 2025-11-17 19:00 UTC
        assert_eq!(four % DAY, 19 * 3600);
        assert_eq!(nights.last(four - 1) + 1, nights.last(four));
        assert_eq!(nights.last(four), nights.last(four + DAY - 1));

        let later = Nights::parse(&settings.replace("\"04:00\"", "\"05:30\"")).expect("a time and a zone");
        assert_eq!(later.last(four + 5400 - 1) + 1, later.last(four + 5400));
        assert_eq!(later.last(four), later.last(four - 1), "no longer at four");
        for wrong in [settings.replace("Asia/Seoul", "UTC"), settings.replace("\"04:00\"", "\"24:00\"")] {
            assert!(Nights::parse(&wrong).is_err());
        }
    }
}
