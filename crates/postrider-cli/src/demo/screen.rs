//! What people see of the demo: on a terminal a few lines that are drawn again and again below what happened; elsewhere timed
//! lines, one after the other.
//!
//! No line is longer than 79 columns, and a narrower terminal cuts them off: the size of it is never asked for.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::snapshot::{Snapshot, SubscriptionProgress};

/// How often a line says how things stand where nothing can be drawn.
const EVERY: Duration = Duration::from_secs(2);
const BAR: u64 = 24;

/// A colour of a terminal, where colours are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
}

/// Where the demo is shown.
pub(crate) struct Screen {
    began: Instant,
    live: bool,
    coloured: bool,
    /// How many lines are drawn below what happened.
    drawn: usize,
    stood: Duration,
    closed: bool,
}

impl Screen {
    /// The one that stdout is.
    pub(crate) fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let live = std::io::stdout().is_terminal() && !dumb;
        Self {
            began: Instant::now(),
            live,
            coloured: live && !set("NO_COLOR"),
            drawn: 0,
            stood: Duration::ZERO,
            closed: false,
        }
    }

    /// How long the demo has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether whoever read this has closed the pipe.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// A text in a colour, or as it is.
    pub(crate) fn paint(&self, colour: Colour, text: &str) -> String {
        if self.coloured { format!("\x1b[{}m{text}\x1b[0m", colour as u8) } else { text.to_owned() }
    }

    /// Lines that stay.
    pub(crate) fn say(&mut self, lines: &str) {
        let wiped = self.wiped();
        self.write(&format!("{wiped}{lines}\n"));
    }

    /// Something happened: a line that stays, with its time.
    pub(crate) fn happened(&mut self, what: &str) {
        let time = self.time();
        self.say(&format!("{time}  {what}"));
    }

    /// How things stand now.
    pub(crate) fn show(&mut self, snapshot: &Snapshot, relays: [&str; 2]) {
        if self.live {
            let lines = self.lines(snapshot, relays);
            let wiped = self.wiped();
            self.drawn = lines.len();
            // Without wrapping: a line that is too long must not become two.
            self.write(&format!("\x1b[?25l\x1b[?7l{wiped}{}\n\x1b[?7h", lines.join("\n")));
        } else if self.elapsed() >= self.stood + EVERY {
            self.stood = self.elapsed();
            let subscriptions = snapshot.subscriptions.iter();
            let delivered: Vec<String> =
                subscriptions.map(|progress| format!("{} {}", progress.name, progress.delivered)).collect();
            let retrying: u64 = snapshot.subscriptions.iter().map(|progress| progress.retrying).sum();
            let mut line = format!("{} recorded; {}", snapshot.recorded, delivered.join(", "));
            if retrying > 0 {
                line.push_str(&format!("; {retrying} retrying"));
            }
            self.happened(&line);
        }
    }

    /// Takes away what was drawn, and gives the cursor back.
    pub(crate) fn clear(&mut self) {
        if self.live {
            let wiped = self.wiped();
            self.write(&format!("{wiped}\x1b[?25h"));
        }
    }

    fn time(&self) -> String {
        let time = format!("{:5.1} s", self.elapsed().as_secs_f64());
        self.paint(Colour::Dim, &time)
    }

    fn lines(&self, snapshot: &Snapshot, relays: [&str; 2]) -> Vec<String> {
        let mut lines = vec![
            String::new(),
            format!("{}  {} recorded, {} rolled back", self.time(), snapshot.recorded, snapshot.rolled_back),
        ];
        lines.extend(snapshot.subscriptions.iter().map(|progress| self.bar(progress, snapshot.recorded)));
        let lanes = |index: usize| match snapshot.lanes[index] {
            _ if index == 0 && snapshot.killed => self.paint(Colour::Red, "killed"),
            0 => "no lanes".to_owned(),
            1 => "1 lane".to_owned(),
            lanes => format!("{lanes} lanes"),
        };
        lines.push(format!("  {}: {}, {}: {}", relays[0], lanes(0), relays[1], lanes(1)));
        lines
    }

    fn bar(&self, progress: &SubscriptionProgress, recorded: u64) -> String {
        let full = (progress.delivered.min(recorded) * BAR).checked_div(recorded).unwrap_or(0);
        let (done, rest) = ("█".repeat(full as usize), "░".repeat((BAR - full) as usize));
        let (done, rest) = (self.paint(Colour::Green, &done), self.paint(Colour::Dim, &rest));
        let mut line = format!("  {:<10} {done}{rest} {:>5} delivered", progress.name, progress.delivered);
        if progress.retrying > 0 {
            let text = format!(", {} retrying", progress.retrying);
            line.push_str(&self.paint(Colour::Yellow, &text));
        }
        if progress.dead > 0 {
            line.push_str(&self.paint(Colour::Red, &format!(", {} dead", progress.dead)));
        }
        line
    }

    /// What takes away the drawn lines, which are no more then.
    fn wiped(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    fn write(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        self.closed |= out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}
