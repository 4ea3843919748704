//! What is written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::Origins;

/// A transactional outbox: what an application records in its own transaction is delivered, at least once and in order.
#[derive(Parser)]
#[command(name = "postrider", version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args)]
pub(crate) struct Common {
    /// The file with the settings; POSTRIDER_CONFIG unless given
    #[arg(long, short, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The database: postgres://…, mysql://… or sqlite:…
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// The schema on PostgreSQL
    #[arg(long, global = true, value_name = "NAME")]
    schema: Option<String>,
    /// Any other setting, as in --set relay.lease=10s; it wins over the file and the environment
    #[arg(long = "set", global = true, value_name = "SETTING=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

impl Common {
    /// Where settings are taken from.
    pub(crate) fn origins(&self) -> Origins {
        let mut flags = self.settings.clone();
        let named = [("store.url", &self.store), ("store.schema", &self.schema)];
        flags.extend(named.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value).clone()?))));
        Origins { file: self.config.clone(), flags }
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
    /// Run a small shop on an embedded database: what is recorded, delivered, lost (nothing)
    Demo,
    /// Run the relay: deliver what is recorded to Kafka, HTTP endpoints or stdout
    Relay,
    /// Create or update the schema
    Migrate {
        /// Print the SQL instead, for who runs it by hand (PostgreSQL)
        #[arg(long)]
        print: bool,
    },
    /// Look at the settings
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
}

#[derive(Subcommand)]
pub(crate) enum ConfigAction {
    /// Say what was understood, with secrets hidden
    Check,
}
