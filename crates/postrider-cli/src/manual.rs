//! What there is to read about the binary, made from the binary itself: completions, manual pages, references.

mod commands;
mod settings;

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::Failure;
use crate::arguments::Arguments;
use crate::config::secret::plain;
use crate::output;

/// The flags of `completions`.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// The flags of `man`.
#[derive(Args)]
pub(crate) struct Man {
    /// Write one page per command to this folder, instead of printing the main page
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// The pages of the reference.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    /// docs/cli.md
    Cli,
    /// docs/configuration.md
    Configuration,
}

/// Prints what a shell needs to complete commands.
pub(crate) fn completions(arguments: &Completions) -> Result<bool, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "postrider", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(true)
}

/// Prints the manual page, or writes all of them.
pub(crate) fn man(arguments: &Man) -> Result<bool, Failure> {
    let Some(folder) = &arguments.into else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
        output::print(&String::from_utf8_lossy(&page))?;
        return Ok(true);
    };
    write_pages(folder).map_err(|error| {
        format!("can't write the manual pages to {}: {}", folder.display(), plain(&error))
    })?;
    output::line(format!("wrote the manual pages to {}", folder.display()))?;
    Ok(true)
}

fn write_pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Arguments::command(), folder)
}

/// Prints a page of the reference.
pub(crate) fn reference(page: Page) -> Result<bool, Failure> {
    output::print(&match page {
        Page::Cli => commands::markdown(Arguments::command()),
        Page::Configuration => settings::markdown(),
    })?;
    Ok(true)
}
