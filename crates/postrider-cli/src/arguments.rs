//! What is written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    audit, dead, doctor, events, health, record, relays, replay, sinks, status, subscriptions,
};
use crate::config::Origins;
use crate::demo;
use crate::manual;
use crate::retention::{ArchiveArguments, PruneArguments};

/// A transactional outbox: what an application records in its own transaction is delivered, at least once and in order.
#[derive(Parser)]
#[command(name = "postrider", version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const SETTINGS: &str = "Settings";

/// What every command takes.
#[derive(Args)]
pub(crate) struct Common {
    /// The file with the settings; POSTRIDER_CONFIG unless given, or else ./postrider.toml if it is there
    #[arg(long, short, global = true, help_heading = SETTINGS, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The database: postgres://…, mysql://… or sqlite:…
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "URL")]
    store: Option<String>,
    /// The schema on PostgreSQL
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "NAME")]
    schema: Option<String>,
    /// Any other setting, as in --set relay.lease=10s; it wins over the file and the environment
    #[arg(long = "set", global = true, help_heading = SETTINGS, value_name = "SETTING=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

impl Common {
    /// The database that is named on the command line.
    pub(crate) fn store(&self) -> Option<&str> {
        self.store.as_deref()
    }

    /// The schema that is named on the command line.
    pub(crate) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Where settings are taken from.
    pub(crate) fn origins(&self) -> Origins {
        let mut flags = self.settings.clone();
        let named = [("store.url", &self.store), ("store.schema", &self.schema)];
        flags.extend(named.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value).clone()?))));
        Origins { named: self.config.clone(), flags }
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a setting and its value are expected, as in relay.lease=10s".to_owned()),
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a small shop on an embedded database, or on a server (--store): what is recorded, delivered, lost (nothing)
    Demo(demo::Options),
    /// Run the relay: deliver what is recorded to Kafka, HTTP endpoints or stdout
    Relay,
    /// Look after alerts
    Alerts {
        #[command(subcommand)]
        action: AlertsAction,
    },
    /// Move events that every subscription has settled into the archive
    Archive(ArchiveArguments),
    /// Delete events that every subscription has settled, old marks of inboxes, old months of the archive
    Prune(PruneArguments),
    /// Create or update the schema
    Migrate {
        /// Print the SQL that the database lacks instead, for who runs it by hand
        #[arg(long)]
        print: bool,
        /// Print all of it, for a database without the schema, and ask no database
        #[arg(long, requires = "print")]
        all: bool,
        /// Print a JSON object
        #[arg(long, conflicts_with = "print")]
        json: bool,
    },
    /// Show how the subscriptions are doing, and who holds their lanes
    Status(status::Arguments),
    /// Show the relays that are there, their subscriptions and lanes, and what does not fit together
    Relays(relays::Arguments),
    /// Look for events, or at one of them
    Events(events::Arguments),
    /// Look at what was given up, and requeue or discard it
    Dead {
        #[command(subcommand)]
        action: dead::Action,
    },
    /// Look at subscriptions, make, pause, resume and remove them, change their lanes
    Subscriptions {
        #[command(subcommand)]
        action: subscriptions::Action,
    },
    /// Let a subscription, or a new one like it, read again from a time or an event on
    Replay(replay::Arguments),
    /// Record an event from the shell
    Record(record::Arguments),
    /// Say what is wrong with the database, the settings and the destinations, or will be, and what to do
    Doctor(doctor::Arguments),
    /// Send a probe to a destination
    Sinks {
        #[command(subcommand)]
        action: sinks::Action,
    },
    /// Say whether the relay on this machine is ready, by its /readyz: for a container's health check
    Health(health::Arguments),
    /// Show who did what, and why
    Audit(audit::Arguments),
    /// Print what a shell needs to complete commands
    Completions(manual::Completions),
    /// Print the manual page, or write one for each command
    Man(manual::Man),
    /// Print a page of the reference
    #[command(hide = true)]
    Reference { page: manual::Page },
    /// Look at the settings
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
}

#[derive(Subcommand)]
pub(crate) enum AlertsAction {
    /// Say how each alert stands now, and tell nobody; exits with 1 if one fires
    Check {
        /// One JSON array instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Look after alerts without delivering anything: beside relays that are part of an application
    Run,
    /// Send a test message to everybody who can be told, or to one of them
    Test {
        /// The NAME of a [notify.NAME]
        name: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum ConfigAction {
    /// Say what was understood, with secrets hidden
    Check {
        /// Print a JSON object: the tables of the file, with all their settings
        #[arg(long)]
        json: bool,
    },
}
