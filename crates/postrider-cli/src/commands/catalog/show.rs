//! `postrider catalog`: the events, and what the log has really seen of them.

use std::collections::{HashMap, HashSet};

use clap::Args;
use postrider::catalog::{CatalogFile, EventEntry, LogContents, Seen};
use serde::Serialize;

use super::File;
use crate::config::Config;
use crate::output::{self, Column, Table, Time};
use crate::{Failure, database};

/// The flags of `catalog`.
#[derive(Args)]
pub(super) struct Shown {
    #[command(flatten)]
    file: File,
    /// Maximum number of rows of the log and its archive to read, newest first
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rows: u64,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'c> {
    catalog: &'c CatalogFile,
    /// What the log has seen. Absent: no store is set.
    log: Option<Log<'c>>,
}

#[derive(Serialize)]
struct Log<'c> {
    rows: u64,
    complete: bool,
    seen: Vec<Row<'c>>,
    /// In the log, but not in the catalog.
    unknown: Vec<Row<'c>>,
    /// In the catalog, but not in the log.
    unseen: Vec<&'c str>,
    /// Versions that are in the catalog, but not in the log, of events that the log has in others.
    unseen_versions: Vec<Version<'c>>,
}

#[derive(Serialize)]
struct Version<'c> {
    event: &'c str,
    version: u32,
}

#[derive(Serialize)]
struct Row<'c> {
    event: &'c str,
    version: u32,
    stream: &'c str,
    count: u64,
    per_day: Option<f64>,
    last: Time,
}

impl<'c> Row<'c> {
    fn of(contents: &LogContents, seen: &'c Seen) -> Self {
        Self {
            event: &seen.name,
            version: seen.version,
            stream: &seen.stream,
            count: seen.count,
            per_day: contents.per_day(seen).map(|rate| (rate * 10.0).round() / 10.0),
            last: Time(seen.last),
        }
    }
}

/// Shows the catalog beside the log.
pub(super) async fn run(config: &Config, arguments: Shown) -> Result<bool, Failure> {
    let catalog = arguments.file.read(config)?;
    let contents = match &config.store.url {
        None => None,
        Some(_) => {
            let log = database::open(&config.store).await?;
            Some(LogContents::read(&*log, arguments.rows).await?)
        }
    };
    if arguments.json {
        let log = contents.as_ref().map(|contents| Log {
            rows: contents.rows,
            complete: contents.complete,
            seen: contents.seen.iter().map(|seen| Row::of(contents, seen)).collect(),
            unknown: contents.unknown(&catalog).map(|seen| Row::of(contents, seen)).collect(),
            unseen: contents.unseen(&catalog).collect(),
            unseen_versions: contents
                .unseen_versions(&catalog)
                .map(|event| Version { event: &event.name, version: event.version })
                .collect(),
        });
        output::json(&Report { catalog: &catalog, log })?;
        return Ok(true);
    }
    output::print(&text(&catalog, contents.as_ref()))?;
    Ok(true)
}

fn text(catalog: &CatalogFile, contents: Option<&LogContents>) -> String {
    let mut table = Table::new([
        Column::whole("event"),
        Column::number("version"),
        Column::text("stream"),
        Column::text("subscribers"),
        Column::number("seen"),
        Column::number("a day").spare(),
        Column::whole("last").spare(),
    ]);
    let seen = contents.map(by_version).unwrap_or_default();
    let entries: HashSet<(&str, u32)> =
        catalog.events.iter().map(|event| (event.name.as_str(), event.version)).collect();
    for event in &catalog.events {
        table.row(row(catalog, event, seen.get(&(event.name.as_str(), event.version)).copied(), contents));
        // Versions that the log still has, and the catalog knows by their upcasters only, below the newest.
        for version in event.upcast_from.iter().rev() {
            let key = (event.name.as_str(), *version);
            if let Some(seen) = seen.get(&key).filter(|_| !entries.contains(&key)) {
                table.row(older_row(seen, contents));
            }
        }
    }
    let mut text = table.text(output::width());
    let Some(contents) = contents else {
        text.push_str("\nNo store is set, so what the log has seen is not shown; name it with --store.\n");
        return text;
    };
    let unknown: Vec<String> = contents
        .unknown(catalog)
        .map(|seen| format!("{} version {} ({})", seen.name, seen.version, seen.count))
        .collect();
    if !unknown.is_empty() {
        text.push_str(&format!("\nIn the log, but not in the catalog: {}\n", unknown.join(", ")));
    }
    let versions = contents.unseen_versions(catalog);
    let versions = versions.map(|event| format!("{} version {}", event.name, event.version));
    let unseen: Vec<String> = contents.unseen(catalog).map(str::to_owned).chain(versions).collect();
    if !unseen.is_empty() {
        text.push_str(&format!("\nIn the catalog, but not in the log: {}\n", unseen.join(", ")));
    }
    if !contents.complete {
        let rows = output::number(contents.rows);
        text.push_str(&format!(
            "\nOnly the newest {rows} rows of the log were read; read more with --rows.\n"
        ));
    }
    text
}

/// What the log has, by name and version.
fn by_version(contents: &LogContents) -> HashMap<(&str, u32), &Seen> {
    contents.seen.iter().map(|seen| ((seen.name.as_str(), seen.version), seen)).collect()
}

fn older_row(seen: &Seen, contents: Option<&LogContents>) -> [String; 7] {
    [
        seen.name.clone(),
        seen.version.to_string(),
        seen.stream.clone(),
        "(converted)".to_owned(),
        output::number(seen.count),
        rate(contents, seen),
        output::when(seen.last),
    ]
}

fn rate(contents: Option<&LogContents>, seen: &Seen) -> String {
    let rate = contents.and_then(|contents| contents.per_day(seen));
    rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"))
}

fn row(
    catalog: &CatalogFile,
    event: &EventEntry,
    seen: Option<&Seen>,
    contents: Option<&LogContents>,
) -> [String; 7] {
    let subscribers: Vec<&str> =
        catalog.subscribers_of(event).map(|subscriber| subscriber.name.as_str()).collect();
    let none = || if contents.is_some() { "0".to_owned() } else { "-".to_owned() };
    [
        event.name.clone(),
        event.version.to_string(),
        event.stream.clone(),
        if subscribers.is_empty() { "-".to_owned() } else { subscribers.join(", ") },
        seen.map_or_else(none, |seen| output::number(seen.count)),
        seen.map_or("-".to_owned(), |seen| rate(contents, seen)),
        seen.map_or("-".to_owned(), |seen| output::when(seen.last)),
    ]
}
