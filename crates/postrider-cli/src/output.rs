//! What commands say: lines, tables and JSON on standard output, remarks on standard error.
//!
//! A reader that closed the pipe has seen enough: that is no failure, and what a command does goes on to its end.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::Failure;

mod plain;
mod table;
mod words;

pub(crate) use plain::plain;
pub(crate) use table::{Column, Table, crop, wrapped};
pub(crate) use words::{Time, age, count, number, quoted, seconds, since, when};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes a text as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if is_closed() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Release);
            Ok(())
        }
        Err(error) => Err(format!("can't write to standard output: {error}").into()),
    }
}

/// Writes a line, without anything that a terminal would obey.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    print(&format!("{}\n", plain::plain_lines(&text.to_string())))
}

/// Writes a line to standard error, beside what programs read. Nobody there to read it is no trouble.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{}", plain::plain_lines(&text.to_string()));
}

/// Writes one JSON value: for people on a terminal in several lines, for programs in one.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    if is_terminal() {
        return print(&format!("{}\n", plain::escaped(&serde_json::to_string_pretty(value)?)));
    }
    print(&format!("{}\n", serde_json::to_string(value)?))
}

/// Whether the reader has closed the pipe.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Acquire)
}

/// Whether a person reads it.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// How many characters fit into a line: the terminal's, or what `COLUMNS` says; anything goes into a pipe.
pub(crate) fn width() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || {
        let size = terminal_size::terminal_size_of(std::io::stdout());
        size.map(|(terminal_size::Width(width), _)| usize::from(width))
    };
    told.or_else(seen).filter(|width| *width > 0)
}
