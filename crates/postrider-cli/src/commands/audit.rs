//! `postrider audit`: who did what, and why.

use clap::Args;
use postrider::store::Audit;
use serde::Serialize;

use crate::Failure;
use crate::config::Config;
use crate::database::{self};
use crate::output::{self, Column, Table, Time};

/// The flags of `audit`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Maximum number of entries, newest first
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    id: i64,
    at: Time,
    who: String,
    what: String,
    why: Option<String>,
    subscription: Option<String>,
    event_id: Option<String>,
}

impl Entry {
    fn of(audit: Audit) -> Self {
        let entry = audit.entry;
        Self {
            id: audit.id,
            at: Time(audit.at),
            who: entry.who,
            what: entry.what,
            why: entry.why,
            subscription: entry.subscription,
            event_id: entry.event_id.map(|id| id.to_string()),
        }
    }
}

/// Lists what was done.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let log = database::open(&config.store).await?;
    let entries: Vec<Entry> = log.audits(arguments.limit).await?.into_iter().map(Entry::of).collect();
    if arguments.json {
        output::json(&entries)?;
        return Ok(true);
    }
    let mut table = Table::new([
        Column::whole("when"),
        Column::text("who"),
        Column::text("what"),
        Column::text("subscription"),
        Column::text("why"),
        Column::whole("event").spare(),
    ]);
    for entry in entries {
        table.row([
            output::when(entry.at.0),
            entry.who,
            entry.what,
            entry.subscription.unwrap_or_default(),
            entry.why.unwrap_or_default(),
            entry.event_id.unwrap_or_default(),
        ]);
    }
    if table.is_empty() {
        output::line("the audit log is empty")?;
    } else {
        table.show()?;
    }
    Ok(true)
}
