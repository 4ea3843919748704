//! What this process logs.

#![allow(dead_code, unreachable_pub)]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What this process logs, from the first look at it on.
#[derive(Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// The same for all tests of a process; the first to ask says how much.
    pub fn here(filter: &str) -> &'static Self {
        static LOGS: OnceLock<Logs> = OnceLock::new();
        LOGS.get_or_init(|| {
            let logs = Self::default();
            let writer = logs.clone();
            let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
            let targets: Targets = filter.parse().expect("levels");
            tracing_subscriber::registry().with(lines.with_filter(targets)).init();
            logs
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// The lines that say all of this.
    pub fn lines(&self, words: &[&str]) -> Vec<String> {
        let says = |line: &&str| words.iter().all(|word| line.contains(word));
        self.text().lines().filter(says).map(ToOwned::to_owned).collect()
    }
}

impl std::io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
