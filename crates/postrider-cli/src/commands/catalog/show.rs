//! `postrider catalog`: the events, and what the log has really seen of them.

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
    for event in &catalog.events {
        table.row(row(catalog, event, contents));
        // Older versions that the log still has, and upcasters convert, below the newest.
        let older = contents.into_iter().flat_map(|contents| older(catalog, event, contents));
        older.for_each(|seen| table.row(older_row(seen, contents)));
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
    let unseen: Vec<&str> = contents.unseen(catalog).collect();
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

/// What the log has of an event in versions that the catalog knows by their upcasters only, newest first.
fn older<'c>(
    catalog: &'c CatalogFile,
    event: &'c EventEntry,
    contents: &'c LogContents,
) -> impl Iterator<Item = &'c Seen> {
    let is_entry = |version: u32| {
        catalog.events.iter().any(|other| (&other.name, other.version) == (&event.name, version))
    };
    contents.seen.iter().rev().filter(move |seen| {
        seen.name == event.name && event.upcast_from.contains(&seen.version) && !is_entry(seen.version)
    })
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

fn row(catalog: &CatalogFile, event: &EventEntry, contents: Option<&LogContents>) -> [String; 7] {
    let subscribers: Vec<&str> =
        catalog.subscribers_of(event).map(|subscriber| subscriber.name.as_str()).collect();
    let seen = contents.and_then(|contents| {
        contents.seen.iter().find(|seen| (&seen.name, seen.version) == (&event.name, event.version))
    });
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
