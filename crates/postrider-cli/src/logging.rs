//! How the relay speaks: lines for people, or JSON for machines, on standard error.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::config::{Log, Problem};

/// What is said at this level.
pub(crate) fn filter(log: &Log) -> Result<Targets, Problem> {
    let wrong = |part: &str| {
        let what = "it must be off, error, warn, info, debug or trace; set it for one module as in \"postrider=debug\"";
        Problem::of("log.level", format!("{part:?} is not a log level; {what}"))
    };
    // A word that is no level would be taken for the name of a part, and silence all others; no word at all for `error`.
    let is_word = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let is_level = |part: &&str| match part.rsplit_once('=') {
        Some((name, level)) => !name.trim().is_empty() && is_word(level.trim()),
        None => is_word(part),
    };
    let mut parts = log.level.split(',').map(str::trim).filter(|part| !part.is_empty());
    if let Some(part) = parts.find(|part| !is_level(part)) {
        return Err(wrong(part));
    }
    let parts: Vec<&str> = log.level.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Ok(Targets::new().with_default(LevelFilter::INFO));
    }
    let targets: Targets = parts.join(",").parse().map_err(|_| wrong(&log.level))?;
    Ok(match targets.default_level() {
        Some(_) => targets,
        None => targets.with_default(LevelFilter::INFO),
    })
}

/// Begins to write log lines.
pub(crate) fn start(log: &Log) -> Result<(), Problem> {
    let filter = filter(log)?;
    // A line that nobody reads is no trouble; told of on the same closed pipe it would be a panic.
    let lines = fmt::layer().log_internal_errors(false).with_writer(std::io::stderr);
    let lines = if log.json {
        lines.json().flatten_event(true).with_current_span(false).boxed()
    } else {
        lines.compact().boxed()
    };
    let started = registry().with(lines.with_filter(filter)).try_init();
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
        for (level, part) in [
            ("inof", "inof"),
            ("warn,postrider", "postrider"),
            ("postrider=loud", "postrider=loud"),
            ("postrider=", "postrider="),
            ("info,postrider= ,sqlx=warn", "postrider="),
            ("=debug", "=debug"),
        ] {
            let problem = told(level).expect_err("no level").to_string();
            assert!(problem.contains(&format!("{part:?} is not a log level")), "{problem}");
        }
    }

    #[test]
    fn what_has_no_level_of_its_own_is_logged_from_info_on() {
        let enabled = |level: &str, part: &str, event: tracing::Level| {
            filter(&Log { json: false, level: level.to_owned() }).expect("levels").would_enable(part, &event)
        };
        assert!(enabled("", "sqlx", tracing::Level::INFO));
        assert!(!enabled("postrider=debug", "sqlx", tracing::Level::DEBUG));
        assert!(enabled("postrider=debug", "postrider_relay::engine", tracing::Level::DEBUG));
        assert!(enabled(" warn , postrider=info ", "postrider", tracing::Level::INFO));
        assert!(!enabled("warn,postrider=info", "hyper", tracing::Level::INFO));
    }
}
