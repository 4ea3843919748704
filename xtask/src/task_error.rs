//! What went wrong, in one sentence, with the end of the log that shows it.

use std::fmt;
use std::fs;
use std::path::Path;

/// How many lines of a log are worth showing.
const SHOWN_LINES: usize = 20;

/// A reason to stop: one clear sentence and, where a program wrote one, the last lines of its log.
pub struct TaskError {
    sentence: String,
    log: String,
}

impl TaskError {
    /// A failure that its sentence explains.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), log: String::new() }
    }

    /// Adds the last lines of what a program wrote.
    #[must_use]
    pub fn with_log(mut self, text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        self.log = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        self
    }

    /// Adds the last lines of a log file; one that cannot be read adds nothing.
    #[must_use]
    pub fn with_log_file(self, path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        self.with_log(&String::from_utf8_lossy(&bytes))
    }

    /// Whether the sentence or the log contains `text`.
    pub fn mentions(&self, text: &str) -> bool {
        self.sentence.contains(text) || self.log.contains(text)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        for line in self.log.lines() {
            write!(f, "\n  | {line}")?;
        }
        Ok(())
    }
}

// A test that returns a failure prints it by `Debug`: it should read the same there.
impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for TaskError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_shown_by_its_last_twenty_lines() {
        let log: Vec<String> = (1..=50).map(|n| format!("line {n}")).collect();
        let shown = TaskError::new("the server did not start").with_log(&log.join("\n")).to_string();
        assert_eq!(shown.lines().count(), 21);
        assert!(shown.contains("line 31") && shown.ends_with("line 50"));
        assert!(!shown.contains("line 30"));
    }
}
