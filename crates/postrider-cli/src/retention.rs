//! Retention at work: daily in the relay, and by the commands `archive` and `prune`.

use std::time::Duration;

use postrider::store::{ArchiveOptions, ArchiveTable, Sweep, Sweepable};

use crate::Failure;
use crate::config::{Config, Problem, Retention, duration};
use crate::database::Database;

mod command;
mod daily;
mod metrics;
mod sweeper;

pub(crate) use command::{ArchiveArguments, PruneArguments, archive, prune};
pub(crate) use daily::{Daily, ended};
use sweeper::{Ended, Sweeper};

/// The leader lease of one relay, or of one command, at a time.
const LEASE_NAME: &str = "retention";

/// One thing that retention does.
#[derive(Debug, Clone)]
struct Task {
    sweep: Sweep,
}

impl Task {
    /// What is done every day.
    fn daily(retention: &Retention) -> Vec<Self> {
        let limit = retention.pacing.batch;
        let older_than = retention.delivered;
        let mut tasks = vec![if retention.archive {
            Sweep::Archive { older_than, limit, archiving: retention.archiving.clone() }
        } else {
            Sweep::Prune { older_than, limit }
        }];
        tasks.extend(retention.archived.map(|older_than| Sweep::Archived { older_than, limit }));
        tasks.push(Sweep::Inbox { older_than: retention.inbox, limit });
        tasks.into_iter().map(|sweep| Self { sweep }).collect()
    }

    /// What is taken, in metrics and JSON.
    fn what(&self) -> &'static str {
        match self.sweep {
            Sweep::Archive { .. } | Sweep::Prune { .. } => "events",
            Sweep::Inbox { .. } => "marks",
            Sweep::Archived { .. } => "archived",
        }
    }

    /// What is done to them, in JSON and in the audit.
    fn verb(&self) -> &'static str {
        match self.sweep {
            Sweep::Archive { .. } => "archive",
            Sweep::Prune { .. } | Sweep::Inbox { .. } | Sweep::Archived { .. } => "prune",
        }
    }

    /// What is being done, for people.
    fn doing(&self) -> &'static str {
        match self.sweep {
            Sweep::Archive { .. } => "archiving events",
            Sweep::Prune { .. } => "deleting events",
            Sweep::Inbox { .. } => "deleting inbox marks",
            Sweep::Archived { .. } => "dropping months of the archive",
        }
    }

    fn target(&self) -> Option<&ArchiveTable> {
        match &self.sweep {
            Sweep::Archive { archiving, .. } => archiving.target.as_ref(),
            _ => None,
        }
    }

    /// So many of them, for people: `12 events that every subscription settled more than 30d ago`.
    fn many(&self, rows: u64) -> String {
        let age = duration::show(self.sweep.older_than());
        let (thing, since) = match self.sweep {
            Sweep::Archive { .. } | Sweep::Prune { .. } => ("event", "every subscription settled more than"),
            Sweep::Inbox { .. } => ("inbox mark", "consumers made more than"),
            Sweep::Archived { .. } => ("archived event", "were recorded in months that ended more than"),
        };
        format!("{} that {since} {age} ago", crate::output::count(rows, thing))
    }

    fn counted(&self, counted: Sweepable) -> String {
        let least = if counted.counted { "" } else { "at least " };
        format!("{least}{}", self.many(counted.rows))
    }
}

/// Whether events can be filed as the settings say: found out at the start, not at night.
pub(crate) async fn check(database: &Database, config: &Config) -> Result<(), Failure> {
    let asked = |retention: &&Retention| retention.archiving.target.is_some() || retention.archiving.by_month;
    let Some(retention) = config.retention.as_ref().filter(asked) else {
        return Ok(());
    };
    let checked = database.log().await?.check_archive(&retention.archiving).await;
    checked.map_err(|error| match error.kind() {
        postrider::ErrorKind::Unreachable => Failure::from(error),
        _ => unfit(&retention.archiving, &error).into(),
    })
}

/// What is wrong with how events are filed, said of the setting.
fn unfit(archiving: &ArchiveOptions, error: &postrider::Error) -> Problem {
    let setting = if archiving.target.is_some() { "target" } else { "by_month" };
    Problem::of(format!("retention.{setting}"), error.message())
}

/// A name that no other process has.
fn owner(name: Option<&str>) -> String {
    format!("{} {}", name.unwrap_or(LEASE_NAME), postrider::Uuid::new_v4())
}

/// How long a leader lease is held without being extended.
const LEASE: Duration = Duration::from_secs(30);
