//! How the relay speaks: lines for people, or JSON for machines, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::{Log, Problem};

/// What is said at this level.
pub(crate) fn filter(log: &Log) -> Result<EnvFilter, Problem> {
    let wrong = |part: &str| {
        let what = "it must be off, error, warn, info, debug or trace; set it for one module as in \"postrider=debug\"";
        Problem::of("log.level", format!("{part:?} is not a log level; {what}"))
    };
    // A word that is no level would be taken for the name of a part, and silence all others.
    let is_level = |part: &&str| part.contains(['=', '[']) || part.parse::<LevelFilter>().is_ok();
    let mut parts = log.level.split(',').map(str::trim).filter(|part| !part.is_empty());
    if let Some(part) = parts.find(|part| !is_level(part)) {
        return Err(wrong(part));
    }
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).parse(&log.level);
    filter.map_err(|_| wrong(&log.level))
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
    started.map_err(|_| Problem::new("log: a logger is already installed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        let told = |level: &str| filter(&Log { json: false, level: level.to_owned() });
        for level in ["info", "OFF", "warn,postrider=debug", "postrider_relay::lane=trace", ""] {
            assert!(told(level).is_ok(), "{level}");
        }
        for (level, part) in
            [("inof", "inof"), ("warn,postrider", "postrider"), ("postrider=loud", "postrider=loud")]
        {
            let problem = told(level).expect_err("no level").to_string();
            assert!(problem.contains(&format!("{part:?} is not a log level")), "{problem}");
        }
    }
}
