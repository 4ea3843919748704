//! `postrider archive` and `postrider prune`.

use std::time::{Duration, Instant};

use clap::Args;
use postrider::store::{Pacing, Sweep, Sweepable};
use postrider::{Error, asked_to_end};
use serde::Serialize;
use tokio::sync::watch;

use super::{Ended, LEASE, LEASE_NAME, Sweeper, Task, owner, unfit};
use crate::Failure;
use crate::commands::progress::{Progress, bar};
use crate::commands::times;
use crate::config::{Config, Problem};
use crate::confirm::Consent;
use crate::database::{self};
use crate::output;

/// What `archive` takes.
#[derive(Args)]
pub(crate) struct ArchiveArguments {
    /// Archive events that every subscription settled longer ago than this (default: retention.delivered)
    #[arg(long, value_name = "TIME", value_parser = times::ago)]
    older_than: Option<Duration>,
    #[command(flatten)]
    how: How,
}

/// What `prune` takes.
#[derive(Args)]
pub(crate) struct PruneArguments {
    /// Delete events that every subscription settled longer ago than this
    #[arg(long, value_name = "TIME", value_parser = times::ago)]
    older_than: Option<Duration>,
    /// Delete inbox marks that consumers made longer ago than this
    #[arg(long, value_name = "TIME", value_parser = times::ago)]
    inbox: Option<Duration>,
    /// Drop months of the archive that ended longer ago than this
    #[arg(long, value_name = "TIME", value_parser = times::ago)]
    archived: Option<Duration>,
    #[command(flatten)]
    how: How,
}

/// What both take.
#[derive(Args)]
struct How {
    /// Rows per batch (default: retention.batch)
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: Option<u32>,
    /// Shortest pause between two batches (default: retention.pause)
    #[arg(long, value_name = "TIME", value_parser = times::ago)]
    pause: Option<Duration>,
    /// Count the rows, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

/// What came of a command, as JSON.
#[derive(Serialize)]
struct Report {
    command: &'static str,
    dry_run: bool,
    finished: bool,
    seconds: f64,
    taken: Vec<Taken>,
}

#[derive(Serialize)]
struct Taken {
    what: &'static str,
    older_than_seconds: u64,
    rows: u64,
    counted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

/// Moves settled events into the archive.
pub(crate) async fn archive(config: &Config, arguments: ArchiveArguments) -> Result<bool, Failure> {
    let settings = config.retention.as_ref();
    let pacing = arguments.how.pacing(config);
    let Some(older_than) = arguments.older_than.or(settings.map(|settings| settings.delivered)) else {
        return Err(
            Problem::new("nothing is selected; pass --older-than 30d, or set retention.delivered").into()
        );
    };
    let archiving = settings.map(|settings| settings.archiving.clone()).unwrap_or_default();
    let sweep = Sweep::Archive { older_than, limit: pacing.batch, archiving };
    run(config, "archive", vec![Task { sweep }], pacing, &arguments.how).await
}

/// Deletes settled events, old marks of inboxes and old months of the archive.
pub(crate) async fn prune(config: &Config, arguments: PruneArguments) -> Result<bool, Failure> {
    let pacing = arguments.how.pacing(config);
    let limit = pacing.batch;
    let PruneArguments { mut older_than, mut inbox, mut archived, how } = arguments;
    if let (None, None, None, Some(settings)) = (older_than, inbox, archived, &config.retention) {
        // What is to be archived is not deleted unless somebody says so.
        older_than = (!settings.archive).then_some(settings.delivered);
        (inbox, archived) = (Some(settings.inbox), settings.archived);
    }
    let sweeps = [
        older_than.map(|older_than| Sweep::Prune { older_than, limit }),
        archived.map(|older_than| Sweep::Archived { older_than, limit }),
        inbox.map(|older_than| Sweep::Inbox { older_than, limit }),
    ];
    let tasks: Vec<Task> = sweeps.into_iter().flatten().map(|sweep| Task { sweep }).collect();
    if tasks.is_empty() {
        let what =
            "nothing is selected; pass --older-than 30d, --inbox 7d or --archived 5y, or set [retention]";
        return Err(Problem::new(what).into());
    }
    run(config, "prune", tasks, pacing, &how).await
}

impl How {
    fn pacing(&self, config: &Config) -> Pacing {
        let set = config.retention.as_ref().map(|settings| settings.pacing).unwrap_or_default();
        Pacing { batch: self.batch.unwrap_or(set.batch), pause: self.pause.unwrap_or(set.pause), ..set }
    }
}

async fn run(
    config: &Config,
    command: &'static str,
    tasks: Vec<Task>,
    pacing: Pacing,
    how: &How,
) -> Result<bool, Failure> {
    how.consent.check()?;
    let log = database::open(&config.store).await?;
    let mut counts = Vec::new();
    for task in &tasks {
        if let Sweep::Archive { archiving, .. } = &task.sweep {
            let checked = log.check_archive(archiving).await;
            checked.map_err(|error| unfit(archiving, &error))?;
        }
        counts.push(log.sweepable(&task.sweep).await?);
    }
    let nothing = counts.iter().all(|count| count.rows == 0);
    if how.dry_run || nothing {
        return report(command, how, &tasks, &counts, true, Duration::ZERO);
    }
    let question = question(command, &tasks, &counts);
    if !how.consent.given(&question)? {
        return Ok(false);
    }
    let owner = owner(Some(command));
    if log.acquire_leader_lease(LEASE_NAME, &owner, LEASE).await?.is_none() {
        return Err(
            "retention is already running in a relay or another command; wait until it has finished".into()
        );
    }
    let began = Instant::now();
    let sweeper = Sweeper::new(log.clone(), owner.clone(), LEASE, pacing, stop());
    let (taken, finished) = sweep_all(sweeper, &tasks, &counts).await;
    let left = log.release_leader_lease(LEASE_NAME, &owner).await;
    for (task, taken) in tasks.iter().zip(&taken).filter(|(_, taken)| taken.rows > 0) {
        let what = format!("{} {}", task.verb(), task.many(taken.rows));
        how.consent.audit(log.as_ref(), &what, None, None).await?;
    }
    let done = matches!(finished, Ok(Ended::Done));
    report(command, how, &tasks, &taken, done, began.elapsed())?;
    match finished? {
        Ended::Done => {
            left?;
            Ok(true)
        }
        Ended::Stopped => Err("stopped before it was finished; run it again to continue".into()),
        Ended::Lost => Err("another process has taken over retention and continues it".into()),
    }
}

fn question(command: &str, tasks: &[Task], counts: &[Sweepable]) -> String {
    let all: Vec<String> = tasks.iter().zip(counts).map(|(task, count)| task.counted(*count)).collect();
    let into = tasks.iter().find_map(Task::target).map(|target| format!(" into {}", target.name()));
    match command {
        "archive" => format!("Archive {}{}?", all.join(", "), into.unwrap_or_default()),
        _ => format!("Delete {} permanently?", all.join(", ")),
    }
}

/// Does one task after another, until one is not finished. What was taken by each, and how the last one ended.
async fn sweep_all(
    mut sweeper: Sweeper,
    tasks: &[Task],
    counts: &[Sweepable],
) -> (Vec<Sweepable>, Result<Ended, Error>) {
    let mut finished = Ok(Ended::Done);
    let mut taken = Vec::new();
    for (task, count) in tasks.iter().zip(counts) {
        let (mut progress, mut done) = (Progress::new(), 0);
        let swept = sweeper.sweep(task, |rows| {
            done += rows;
            progress.show(task.doing(), &how_far(done, *count));
        });
        finished = swept.await;
        progress.end();
        taken.push(Sweepable { rows: done, counted: true });
        if !matches!(finished, Ok(Ended::Done)) {
            break;
        }
    }
    (taken, finished)
}

fn how_far(done: u64, of: Sweepable) -> String {
    let least = if of.counted { "" } else { "at least " };
    format!(" {}  {} of {least}{}", bar(done, of.rows), output::number(done), output::number(of.rows))
}

/// True once the process is asked to end: the batch under way is finished first.
fn stop() -> watch::Receiver<bool> {
    let (end, ended) = watch::channel(false);
    tokio::spawn(async move {
        asked_to_end().await;
        end.send_replace(true);
    });
    ended
}

fn report(
    command: &'static str,
    how: &How,
    tasks: &[Task],
    counts: &[Sweepable],
    finished: bool,
    took: Duration,
) -> Result<bool, Failure> {
    if how.json {
        let taken = tasks.iter().zip(counts).map(|(task, count)| Taken {
            what: task.what(),
            older_than_seconds: task.sweep.older_than().as_secs(),
            rows: count.rows,
            counted: count.counted,
            target: task.target().map(postrider::store::ArchiveTable::name),
        });
        let taken = taken.collect();
        output::json(&Report {
            command,
            dry_run: how.dry_run,
            finished,
            seconds: took.as_secs_f64(),
            taken,
        })?;
        return Ok(true);
    }
    for (task, count) in tasks.iter().zip(counts) {
        let would = if how.dry_run { "would " } else { "" };
        let verb = match (task.verb(), how.dry_run) {
            ("archive", false) => "archived",
            ("archive", true) => "archive",
            (_, false) => "deleted",
            (_, true) => "delete",
        };
        let time = if took.is_zero() { String::new() } else { format!(" in {}", output::age(took)) };
        output::line(format!("{would}{verb} {}{time}", task.counted(*count)))?;
    }
    Ok(true)
}
