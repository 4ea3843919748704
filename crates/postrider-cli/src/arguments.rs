//! What is written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    audit, catalog, dead, dead_letters, doctor, events, health, record, relays, replay, sinks, status,
    subscriptions,
};
use crate::config::Origins;
use crate::demo;
use crate::manual;
use crate::retention::{ArchiveArguments, PruneArguments};

/// A transactional outbox: delivers the events that an application records in its own transactions, at least once and in order.
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
    /// Settings file (default: POSTRIDER_CONFIG, or ./postrider.toml if it exists)
    #[arg(long, short, global = true, help_heading = SETTINGS, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Database URL: postgres://…, mysql://… or sqlite:…
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "URL")]
    store: Option<String>,
    /// PostgreSQL schema that holds the tables
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "NAME")]
    schema: Option<String>,
    /// Set any other setting, as in --set relay.lease=10s; overrides the file and the environment
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
        _ => Err("expected SETTING=VALUE, as in relay.lease=10s".to_owned()),
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a demo: a small shop with two relays, an outage and a crash, on SQLite or on a server (--store)
    Demo(demo::Options),
    /// Run the relay: deliver recorded events to Kafka, HTTP endpoints or standard output
    Relay,
    /// Check, run and test alerts
    Alerts {
        #[command(subcommand)]
        action: AlertsAction,
    },
    /// Move events that every subscription has settled to the archive
    Archive(ArchiveArguments),
    /// Delete events that every subscription has settled, old inbox marks and old months of the archive
    Prune(PruneArguments),
    /// Create or update the schema
    Migrate {
        /// Print the SQL of the pending migrations instead of running it
        #[arg(long)]
        print: bool,
        /// Print the SQL of every migration, without connecting to a database (PostgreSQL only)
        #[arg(long, requires = "print")]
        all: bool,
        /// Print a JSON object
        #[arg(long, conflicts_with = "print")]
        json: bool,
    },
    /// Show the state and backlog of each subscription, and which relay holds its lanes
    Status(status::Arguments),
    /// List the relays with their subscriptions and lanes, and report settings that conflict
    Relays(relays::Arguments),
    /// Search for events, or show one
    Events(events::Arguments),
    /// List dead events, requeue, discard or replace them
    Dead {
        #[command(subcommand)]
        action: dead::Action,
    },
    /// List and requeue the dead letters of Kafka consumers
    DeadLetters {
        #[command(subcommand)]
        action: dead_letters::Action,
    },
    /// List, create, pause, resume and remove subscriptions, or change their lanes
    Subscriptions {
        #[command(subcommand)]
        action: subscriptions::Action,
    },
    /// Deliver events again, from a time or an event on, to a subscription or to a copy of it
    Replay(replay::Arguments),
    /// Record an event from the shell
    Record(record::Arguments),
    /// Check the database, the settings and the destinations, and say how to fix what is wrong
    Doctor(doctor::Arguments),
    /// Send a test event to a sink
    Sinks {
        #[command(subcommand)]
        action: sinks::Action,
    },
    /// Check whether the relay on this machine is ready (GET /readyz): for container health checks
    Health(health::Arguments),
    /// Show the events of the system and what the log has seen of them, or check a change
    Catalog(catalog::Arguments),
    /// List what operators did, when and why
    Audit(audit::Arguments),
    /// Print a completion script for a shell
    Completions(manual::Completions),
    /// Print the manual page, or write one page per command
    Man(manual::Man),
    /// Print a page of the reference
    #[command(hide = true)]
    Reference { page: manual::Page },
    /// Check the settings
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
}

#[derive(Subcommand)]
pub(crate) enum AlertsAction {
    /// Evaluate every alert now, without notifying anyone; exits with 1 if one is firing
    Check {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Watch alerts without delivering events: for relays that run inside an application
    Run,
    /// Send a test message to every [notify.NAME], or to one of them
    Test {
        /// NAME of a [notify.NAME] (default: all)
        name: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the settings and print them, with secrets hidden
    Check {
        /// Print a JSON object with every table and setting
        #[arg(long)]
        json: bool,
    },
}
