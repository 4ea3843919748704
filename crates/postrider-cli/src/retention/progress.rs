//! How far a command is: a bar on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use postrider::Sweepable;

use crate::output::number;

/// How often a line is written where there is no bar.
const EVERY: Duration = Duration::from_secs(5);
const WIDTH: usize = 30;

/// How far a command is, on standard error.
pub(super) struct Progress {
    verb: &'static str,
    all: Sweepable,
    done: u64,
    bar: bool,
    said: Instant,
}

impl Progress {
    pub(super) fn new(verb: &'static str, all: Sweepable) -> Self {
        Self { verb, all, done: 0, bar: std::io::stderr().is_terminal(), said: Instant::now() }
    }

    /// So many more are done.
    pub(super) fn took(&mut self, rows: u64) {
        self.done += rows;
        let often = if self.bar { Duration::from_millis(100) } else { EVERY };
        if self.said.elapsed() < often {
            return;
        }
        self.said = Instant::now();
        // Whoever closed the pipe has seen enough.
        let mut out = std::io::stderr().lock();
        let _ =
            if self.bar { write!(out, "\r\x1b[K{}", self.text()) } else { writeln!(out, "{}", self.text()) };
        let _ = out.flush();
    }

    /// Makes room for what comes after it.
    pub(super) fn end(&self) {
        if self.bar {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }

    fn text(&self) -> String {
        let least = if self.all.counted { "" } else { "at least " };
        let figures = format!("{}: {} of {least}{}", self.verb, number(self.done), number(self.all.rows));
        if !self.bar {
            return figures;
        }
        let part = self.done as f64 / self.all.rows.max(self.done).max(1) as f64;
        let filled = (part * WIDTH as f64) as usize;
        format!("[{}{}] {figures}", "=".repeat(filled), " ".repeat(WIDTH - filled))
    }
}
