//! The binary `postrider`: the only place that reads arguments, files and the environment.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use arguments::{AlertsAction, Arguments, Command, ConfigAction};
use config::Config;

mod alerts;
mod arguments;
mod bounded;
mod commands;
mod config;
mod confirm;
mod daemon;
mod database;
mod demo;
mod endpoints;
mod logging;
mod manual;
mod migrate;
mod output;
mod retention;
mod sinks;
mod summary;

/// What ends a command.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            // Whoever closed the pipe has seen enough.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let name = arguments.command.name();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::note(format!("postrider: can't start threads: {error}"));
            return ExitCode::from(1);
        }
    };
    let code = match runtime.block_on(run(arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            output::note(format!("postrider: {name}: {failure}"));
            ExitCode::from(if is_misused(&failure) { 2 } else { 1 })
        }
    };
    // A line for a reader that does not read may be stuck for ever: it was not settled, and is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

/// Whether it failed because of what it was told, not because of what it found.
fn is_misused(failure: &Failure) -> bool {
    let invalid = |error: &postrider::Error| error.kind() == postrider::ErrorKind::Invalid;
    failure.is::<config::Problem>() || failure.downcast_ref().is_some_and(invalid)
}

/// Runs a command; whether all is well.
async fn run(arguments: Arguments) -> Result<bool, Failure> {
    // What needs no settings.
    match &arguments.command {
        Command::Demo(options) => {
            return demo::run(options, arguments.common.store(), arguments.common.schema()).await;
        }
        Command::Completions(arguments) => return manual::completions(arguments),
        Command::Man(arguments) => return manual::man(arguments),
        Command::Reference { page } => return manual::reference(*page),
        _ => {}
    }
    let (origins, environment) = (arguments.common.origins(), environment()?);
    let config = Config::load(&origins, environment.clone())?;
    let file = config.file.clone();
    let done = with_settings(arguments.command, config).await;
    // What is wrong with a setting may be found out later, too.
    done.map_err(|failure| match failure.downcast::<config::Problem>() {
        Ok(problem) => problem.blamed_on(&origins, &environment, file.as_ref()).into(),
        Err(other) => other,
    })
}

/// Runs a command that has settings; whether all is well.
async fn with_settings(command: Command, config: Config) -> Result<bool, Failure> {
    match command {
        Command::Demo(_) | Command::Completions(_) | Command::Man(_) | Command::Reference { .. } => Ok(true),
        Command::Relay => daemon::run(config).await,
        Command::Alerts { action: AlertsAction::Check { json } } => alerts::check(&config, json).await,
        Command::Alerts { action: AlertsAction::Run } => alerts::run(&config).await,
        Command::Alerts { action: AlertsAction::Test { name, json } } => {
            alerts::test(&config, name.as_deref(), json).await
        }
        Command::Archive(arguments) => retention::archive(&config, arguments).await,
        Command::Prune(arguments) => retention::prune(&config, arguments).await,
        Command::Migrate { print: true, all, .. } => migrate::print(&config.store, all).await,
        Command::Migrate { json, .. } => migrate::run(&config.store, json).await,
        Command::Config { action: ConfigAction::Check { json } } => summary::check(&config, json),
        Command::Status(arguments) => commands::status::run(&config, arguments).await,
        Command::Relays(arguments) => commands::relays::run(&config, arguments).await,
        Command::Events(arguments) => commands::events::run(&config, arguments).await,
        Command::Dead { action } => commands::dead::run(&config, action).await,
        Command::DeadLetters { action } => commands::dead_letters::run(&config, action).await,
        Command::Subscriptions { action } => commands::subscriptions::run(&config, action).await,
        Command::Replay(arguments) => commands::replay::run(&config, arguments).await,
        Command::Record(arguments) => commands::record::run(&config, arguments).await,
        Command::Doctor(arguments) => commands::doctor::run(&config, arguments).await,
        Command::Sinks { action } => commands::sinks::run(&config, action).await,
        Command::Health(arguments) => commands::health::run(&config, &arguments).await,
        Command::Catalog(arguments) => commands::catalog::run(&config, arguments).await,
        Command::Audit(arguments) => commands::audit::run(&config, arguments).await,
    }
}

/// The variables that are text. Those that are not are none of ours, unless they have a name of ours.
fn environment() -> Result<BTreeMap<String, String>, config::Problem> {
    let mut environment = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => _ = environment.insert(name, value),
            Err(_) if name.starts_with("POSTRIDER_") => {
                let what = format!("the environment variable {name} must be valid UTF-8");
                return Err(config::Problem::new(what));
            }
            Err(_) => {}
        }
    }
    Ok(environment)
}

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Self::Demo(_) => "demo",
            Self::Relay => "relay",
            Self::Alerts { .. } => "alerts",
            Self::Archive(_) => "archive",
            Self::Prune(_) => "prune",
            Self::Migrate { .. } => "migrate",
            Self::Config { .. } => "config",
            Self::Status(_) => "status",
            Self::Relays(_) => "relays",
            Self::Events(_) => "events",
            Self::Dead { .. } => "dead",
            Self::DeadLetters { .. } => "dead-letters",
            Self::Subscriptions { .. } => "subscriptions",
            Self::Replay(_) => "replay",
            Self::Record(_) => "record",
            Self::Doctor(_) => "doctor",
            Self::Sinks { .. } => "sinks",
            Self::Health(_) => "health",
            Self::Audit(_) => "audit",
            Self::Catalog(_) => "catalog",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
            Self::Reference { .. } => "reference",
        }
    }
}
