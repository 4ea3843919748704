//! `postrider catalog`: the events of a system, what the log has seen of them, and whether a change breaks anyone.

mod check;
mod export;
mod show;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use postrider::catalog::CatalogFile;

use crate::Failure;
use crate::config::{Config, Problem};

/// The flags of `catalog`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    show: show::Shown,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Compare the catalog with the lock, and with the events of the log; exits with 1 if a change breaks a reader
    Check(check::Arguments),
    /// Write the catalog as a page, a graph or another format
    Export(export::Arguments),
}

/// The file with the catalog.
#[derive(Args)]
struct File {
    /// Catalog that the application wrote (default: catalog.file, or events.json)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl File {
    fn read(&self, config: &Config) -> Result<CatalogFile, Failure> {
        let path = self.file.clone().unwrap_or_else(|| config.catalog.file.clone());
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let hint = "the application writes it with Catalog::write; name it with --file";
            Problem::new(format!("can't read the catalog {}: {error}; {hint}", path.display()))
        })?;
        Ok(CatalogFile::parse(&text).map_err(|error| wrong(&path, &error))?)
    }
}

/// A file that is not what it should be.
fn wrong(path: &Path, error: &postrider::Error) -> Problem {
    Problem::new(format!("{}: {}", path.display(), error.message()))
}

/// Runs `catalog` or one of its actions.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    match arguments.action {
        None => show::run(config, arguments.show).await,
        Some(Action::Check(arguments)) => check::run(config, arguments).await,
        Some(Action::Export(arguments)) => export::run(config, &arguments),
    }
}
