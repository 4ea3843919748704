//! `postrider catalog export`: the catalog in other formats.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use postrider::catalog::render;

use super::File;
use crate::config::Config;
use crate::{Failure, output};

/// The flags of `catalog export`.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    file: File,
    /// Format
    #[arg(value_enum)]
    format: Format,
    /// Write to this file, or for eventcatalog into this folder (default: standard output)
    #[arg(long, value_name = "PATH", required_if_eq("format", "eventcatalog"))]
    into: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A page for people
    Markdown,
    /// AsyncAPI 3.0, as JSON
    Asyncapi,
    /// A Mermaid graph of events, handlers and follow-ups
    Mermaid,
    /// The folders of EventCatalog
    Eventcatalog,
    /// The catalog itself
    Json,
}

/// Writes it.
pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<bool, Failure> {
    let catalog = arguments.file.read(config)?;
    let text = match arguments.format {
        Format::Markdown => render::markdown(&catalog),
        Format::Asyncapi => render::asyncapi(&catalog),
        Format::Mermaid => render::mermaid(&catalog),
        Format::Json => catalog.to_json(),
        Format::Eventcatalog => {
            let folder = arguments.into.clone().unwrap_or_default();
            for file in render::event_catalog(&catalog) {
                write(&folder.join(file.path), &file.text)?;
            }
            return Ok(true);
        }
    };
    match &arguments.into {
        Some(path) => write(path, &text)?,
        None => output::print(&text)?,
    }
    Ok(true)
}

fn write(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("can't write {}: {error}", path.display()).into())
}
