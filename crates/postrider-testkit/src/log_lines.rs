//! The log lines of a test's own process.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// What this process logs, from the first [`capture`](Self::capture) on.
#[derive(Debug, Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<u8>>>);

impl LogLines {
    /// Captures every line of this process from DEBUG on. One test of a test program can do so.
    pub fn capture() -> Self {
        let lines = Self::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false);
        let set = subscriber.with_max_level(LevelFilter::DEBUG).try_init();
        set.expect("nobody else captures the lines of this process");
        lines
    }

    /// The lines that contain all of these parts.
    pub fn with(&self, parts: &[&str]) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
        text.lines().filter(has_all).map(ToOwned::to_owned).collect()
    }
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
