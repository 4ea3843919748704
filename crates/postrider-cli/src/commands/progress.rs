//! How far something is that takes its time: a line that is drawn anew on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr;

use crate::output;

/// How wide the bar is.
const BAR: u64 = 24;
/// What is being done is not cropped below this.
const LEAST: usize = 12;
/// Into a file a line is written no more often than this.
const PLAIN_PAUSE: Duration = Duration::from_secs(5);

/// How far something is, on standard error.
pub(crate) struct Progress {
    terminal: bool,
    drawn: bool,
    said: Option<(String, Instant)>,
}

impl Progress {
    /// Nothing is shown yet.
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), drawn: false, said: None }
    }

    /// Shows how far it is. `step` is what is being done: a new one is said at once.
    pub(crate) fn show(&mut self, step: &str, rest: &str) {
        let step = &*output::plain(step);
        let mut err = std::io::stderr().lock();
        // Whoever does not look does not stop the work.
        if self.terminal {
            let _ = write!(err, "\r\x1b[K{}", fitted(step, rest, width()));
            let _ = err.flush();
            self.drawn = true;
            return;
        }
        let same = |(said, at): &(String, Instant)| said == step && at.elapsed() < PLAIN_PAUSE;
        if !self.said.as_ref().is_some_and(same) {
            let _ = writeln!(err, "{step}{rest}");
            self.said = Some((step.to_owned(), Instant::now()));
        }
    }

    /// Ends the line that was drawn.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

/// How many characters fit into a line, one less than the terminal has: a full line would be continued below.
fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let seen = size.map(|(terminal_size::Width(width), _)| usize::from(width));
    told.or(seen).filter(|width| *width > 0).unwrap_or(80).saturating_sub(1)
}

/// One line that fits: a long name gives way, and how far it is stays.
fn fitted(step: &str, rest: &str, width: usize) -> String {
    let room = width.saturating_sub(rest.width());
    output::crop(&format!("{}{rest}", output::crop(step, room.max(LEAST))), width)
}

/// `[######..................]  25 %`.
pub(crate) fn bar(done: u64, of: u64) -> String {
    let part = |whole: u64| {
        if of == 0 { whole } else { (u128::from(done.min(of)) * u128::from(whole) / u128::from(of)) as u64 }
    };
    let full = part(BAR);
    let (full, empty) = ("#".repeat(full as usize), ".".repeat((BAR - full) as usize));
    format!("[{full}{empty}] {:>3} %", part(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_keeps_how_far_it_is() {
        let rest = format!("{}, up to 1,234,567 to go", bar(1, 2));
        let step = format!("catching up: {} ", "a-subscription-with-a-long-name".repeat(4));
        for width in [40, 79, 200] {
            let line = fitted(&step, &rest, width);
            assert!(line.width() <= width, "{width}: {line}");
            assert!(line.starts_with("catching up"), "{line}");
        }
        assert!(fitted(&step, &rest, 79).ends_with(&rest), "{}", fitted(&step, &rest, 79));
        assert_eq!(fitted("short ", &rest, 79), format!("short {rest}"));
    }

    #[test]
    fn a_bar_is_full_when_all_is_done_and_not_before() {
        assert_eq!(bar(0, 10), format!("[{}]   0 %", ".".repeat(24)));
        assert_eq!(bar(10, 10), format!("[{}] 100 %", "#".repeat(24)));
        assert_eq!(bar(0, 0), bar(3, 2), "nothing to do is done");
        assert!(bar(999_999, 1_000_000).ends_with(" 99 %"));
    }
}
