//! How the relay speaks: lines for people, or JSON for machines, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::{Log, Problem};

/// What is said at this level.
pub(crate) fn filter(log: &Log) -> Result<EnvFilter, Problem> {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).parse(&log.level);
    filter.map_err(|_| {
        Problem::new(format!("log.level: {:?} is no level; write \"info\" or \"postrider=debug\"", log.level))
    })
}

/// Begins to write log lines.
pub(crate) fn start(log: &Log) -> Result<(), Problem> {
    let filter = filter(log)?;
    // A line that nobody reads is no trouble; told of on the same closed pipe it would be a panic.
    let lines = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    let lines = lines.with_writer(std::io::stderr);
    let started = if log.json {
        lines.json().flatten_event(true).with_current_span(false).try_init()
    } else {
        lines.compact().try_init()
    };
    started.map_err(|_| Problem::new("log: somebody else writes log lines already"))
}
