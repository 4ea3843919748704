//! A small shop on an embedded database: what is recorded, what fails, who is killed, and what became of all that.
//!
//! The shop records in this process; two relays handle in processes of their own, and one of them is killed. Every figure of
//! the summary is counted in the shop's tables.

mod fault;
mod glance;
mod rider;
mod screen;
mod script;
mod shop;
mod staff;
mod tally;

use std::path::{Path, PathBuf};

use clap::Args;
use postrider::{Uuid, asked_to_end};

use crate::Failure;
use crate::config::Problem;
use fault::Fault;
use screen::Screen;
use script::Ending;

/// How the demo is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Where the shop is kept: an empty folder, or one to be made; a temporary one unless given
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// For developers: let a handler break a promise once, to see that the summary tells
    #[arg(long = "break", hide = true, value_name = "PROMISE")]
    fault: Option<Fault>,
    /// For the demo itself: be one of its relays
    #[arg(long, hide = true, value_name = "NAME", requires = "keep")]
    relay: Option<String>,
}

/// Runs the demo; whether every promise held.
pub(crate) async fn run(options: &Options) -> Result<bool, Failure> {
    if let (Some(name), Some(folder)) = (&options.relay, &options.keep) {
        return staff::work(folder, name, options.fault).await;
    }
    let folder = prepared(options.keep.as_deref())?;
    let mut screen = Screen::of_stdout();
    let ending = tokio::select! {
        ending = script::play(&mut screen, &folder, options.fault) => ending?,
        () = asked_to_end() => Ending::Interrupted,
    };
    screen.clear();
    if let Ending::Whole { held } = ending {
        return Ok(held);
    }
    // Half a shop is of no use to anybody.
    let kept = options.keep.is_some() || std::fs::remove_dir_all(&folder).is_err();
    match ending {
        Ending::Interrupted if kept => {
            Err(format!("interrupted; its relays have ended, and {} is left", folder.display()).into())
        }
        Ending::Interrupted => Err("interrupted; its relays have ended, and its folder is removed".into()),
        // Whoever closed the pipe has seen enough.
        Ending::Unseen | Ending::Whole { .. } => Ok(true),
    }
}

/// The folder, made if need be.
fn prepared(keep: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = match keep {
        Some(folder) => folder.to_owned(),
        None => {
            let name = Uuid::new_v4().simple().to_string();
            std::env::temp_dir().join(format!("postrider-demo-{}", &name[..8]))
        }
    };
    std::fs::create_dir_all(&folder).map_err(|error| {
        let remedy = if keep.is_some() { "name another" } else { "set TMPDIR to one where it can" };
        format!("the folder {} can't be made ({error}); {remedy}", folder.display())
    })?;
    if std::fs::read_dir(&folder)?.next().is_some() {
        let what = format!("--keep: the folder {} is not empty; name one that is", folder.display());
        return Err(Problem::new(what).into());
    }
    Ok(folder)
}
