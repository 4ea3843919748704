//! `postrider catalog check`: the gate.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use postrider::catalog::{Catalog, CatalogFile, Lock, LogCheck, Report, check, check_log};

use super::{File, wrong};
use crate::config::{Config, Problem};
use crate::{Failure, database, output};

/// The flags of `catalog check`.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    file: File,
    /// Lock with every schema that events were recorded with (default: catalog.lock, or events.lock.json)
    #[arg(long, value_name = "LOCK")]
    against: Option<PathBuf>,
    /// Write the lock if the check passes
    #[arg(long)]
    update: bool,
    /// Accept that the system no longer has this event
    #[arg(long, value_name = "EVENT", requires = "update")]
    retire: Vec<String>,
    /// Also read events of the log and its archive by their schemas
    #[arg(long)]
    against_log: bool,
    /// How many events of each type and version to try: half of them the newest, the others drawn from the rest
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "against_log")]
    sample: usize,
    /// Maximum number of rows of the log and its archive to read, newest first
    #[arg(long, value_name = "N", default_value_t = 1_000_000, requires = "against_log")]
    rows: u64,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// A JSON object
    Json,
    /// Annotations of GitHub Actions
    Github,
    /// A JUnit file
    Junit,
}

/// Checks the catalog; whether it passes.
pub(super) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let catalog = arguments.file.read(config)?;
    let path = arguments.against.clone().unwrap_or_else(|| config.catalog.lock.clone());
    // Without a lock there is nothing to compare with, but the log can be read. A lock that was named must be there.
    let only_the_log = arguments.against_log && arguments.against.is_none();
    let mut lock = read(&path, arguments.update || only_the_log)?;
    let has_lock = path.exists();
    if only_the_log && !arguments.update && !has_lock {
        output::note(format!(
            "warning: there is no lock {}, so no schema was compared; write the first one with --update",
            path.display()
        ));
    }
    for name in &arguments.retire {
        if catalog.event(name).is_some() {
            return Err(Problem::new(format!(
                "can't retire {name}: the catalog still has it; remove it from the application and write the catalog again"
            ))
            .into());
        }
        lock.retire(name).map_err(|error| wrong(&path, &error))?;
    }
    let mut report = check(&catalog, &lock);
    if has_lock && !arguments.update {
        report.check_lock(&catalog, &lock);
    }
    report.check_names(&catalog, &config.catalog.conventions());
    report.check_versions(&catalog);
    report.check_routes(&catalog);
    if arguments.against_log {
        let log = database::open(&config.store).await?;
        let options = LogCheck { per_version: arguments.sample, rows: arguments.rows, ..LogCheck::default() };
        let found = check_log(&Catalog::from_file(catalog.clone()), &*log, &options).await?;
        report.check_log(&found);
        // Beside a report that programs read.
        output::note(found.summary());
    }
    print(&report, &catalog, &path, arguments.format)?;
    let passed = report.passed();
    if arguments.update && passed {
        lock.update(&catalog);
        lock.write(&path).map_err(|error| error.message().to_owned())?;
        output::note(format!("wrote {}", path.display()));
    }
    Ok(passed)
}

fn read(path: &Path, may_be_absent: bool) -> Result<Lock, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Lock::parse(&text).map_err(|error| wrong(path, &error))?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && may_be_absent => Ok(Lock::new()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Problem::new(format!(
            "there is no lock {}; write the first one with --update",
            path.display()
        ))
        .into()),
        Err(error) => Err(Problem::new(format!("can't read the lock {}: {error}", path.display())).into()),
    }
}

fn print(report: &Report, catalog: &CatalogFile, lock: &Path, format: Format) -> Result<(), Failure> {
    match format {
        Format::Text => output::line(report),
        Format::Json => output::print(&report.to_json()),
        Format::Github => output::print(&report.to_github(&lock.display().to_string())),
        Format::Junit => {
            let names: Vec<&str> = catalog.events.iter().map(|event| event.name.as_str()).collect();
            output::print(&report.to_junit(&names))
        }
    }
}
