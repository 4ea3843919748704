//! Files that say which format they have.

mod unique;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use postrider_core::Result;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::invalid;

/// Reads a file of this kind. The message says what is wrong with it.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, kind: &str, known: u32) -> Result<T> {
    // Some editors put it before a text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = serde_json::from_str(text).map_err(|error| match conflict(text) {
        Some(line) => invalid(format!(
            "not a valid {kind}: line {line} is a marker of an unresolved merge conflict; keep the entries of both sides and remove \
             the markers, or restore the file of one side and write it again"
        )),
        None => {
            let (line, column) = (error.line(), error.column());
            invalid(format!("not a valid {kind}: it is not valid JSON (line {line}, column {column})"))
        }
    })?;
    let Some(format) = value.get("format") else {
        return Err(invalid(format!("not a valid {kind}: it has no `format`")));
    };
    match format.as_u64() {
        None | Some(0) => {
            return Err(invalid(format!(
                "not a valid {kind}: its `format` must be a positive integer, such as {known}"
            )));
        }
        Some(newer) if newer > u64::from(known) => {
            return Err(invalid(format!(
                "it has format {newer}, and this version reads formats up to {known}; use a newer postrider"
            )));
        }
        Some(_) => {}
    }
    unique::keys(text).map_err(|error| {
        invalid(format!("{error}; a merge may have left both keys; merge their contents into one"))
    })?;
    serde_json::from_value(value).map_err(|error| invalid(format!("not a valid {kind}: {error}")))
}

/// The first line that a merge left for a person to resolve.
fn conflict(text: &str) -> Option<usize> {
    let is_marker = |line: &str| ["<<<<<<<", ">>>>>>>"].iter().any(|marker| line.starts_with(marker));
    text.lines().position(is_marker).map(|index| index + 1)
}

/// Writes a file as a whole or not at all: a reader meets no half of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |error: std::io::Error| invalid(format!("can't write {}: {error}", path.display()));
    let (draft, mut file) = draft(path).map_err(failed)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    drop(file);
    written.and_then(|()| fs::rename(&draft, path)).map_err(|error| {
        // Only what was begun here.
        let _ = fs::remove_file(&draft);
        failed(error)
    })
}

/// A new file beside this one, which nobody else writes.
fn draft(path: &Path) -> std::io::Result<(PathBuf, File)> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    loop {
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = path.with_file_name(format!(".{name}.{}-{number}.draft", std::process::id()));
        match File::create_new(&draft) {
            // One that a process with this number left when it was killed.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (draft, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, write};

    fn refused(text: &str) -> String {
        parse::<serde_json::Value>(text, "lock of events", 1).expect_err("refused").message().to_owned()
    }

    #[test]
    fn a_file_is_read_with_a_byte_order_mark_and_the_line_ends_of_windows() {
        for text in ["\u{feff}{\"format\": 1}", "{\r\n  \"format\": 1\r\n}\r\n"] {
            assert!(parse::<serde_json::Value>(text, "lock of events", 1).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn what_a_merge_left_is_named_with_what_to_do() {
        let text = "{\r\n  \"format\": 1,\r\n<<<<<<< HEAD\r\n  \"a\": 1\r\n=======\r\n  \"a\": 2\r\n>>>>>>> other\r\n}";
        assert_eq!(
            refused(text),
            "not a valid lock of events: line 3 is a marker of an unresolved merge conflict; keep the entries of both sides and \
             remove the markers, or restore the file of one side and write it again"
        );
        assert_eq!(
            refused("{\"format\": 1, \"a\": {}, \"a\": {}}"),
            "duplicate key `a`; keys must be unique at line 1 column 26; a merge may have left both keys; merge their contents into \
             one"
        );
        assert_eq!(
            refused("{\"format\": 1,}"),
            "not a valid lock of events: it is not valid JSON (line 1, column 14)"
        );
    }

    #[test]
    fn a_format_that_is_none_is_told_from_a_newer_one() {
        for format in ["\"1\"", "-1", "1.0", "0", "null", "[1]"] {
            let said = "not a valid lock of events: its `format` must be a positive integer, such as 1";
            assert_eq!(refused(&format!("{{\"format\": {format}}}")), said, "{format}");
        }
        assert_eq!(refused("{}"), "not a valid lock of events: it has no `format`");
        assert_eq!(
            refused("{\"format\": 2}"),
            "it has format 2, and this version reads formats up to 1; use a newer postrider"
        );
    }

    #[test]
    fn a_draft_takes_the_place_of_no_file_and_two_writers_have_one_each() {
        let folder = std::env::temp_dir().join(format!("postrider-drafts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (path, other) = (folder.join("events.json"), folder.join("events.draft"));
        std::fs::write(&other, "of somebody else").expect("written");
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| (0..25).try_for_each(|_| write(&path, "whole")))).collect();
            for writer in writers {
                writer.join().expect("no panic").expect("written");
            }
        });
        let mut left: Vec<_> = std::fs::read_dir(&folder)
            .expect("the folder")
            .map(|entry| entry.expect("a file").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["events.draft", "events.json"]);
        assert_eq!(std::fs::read_to_string(&other).expect("a file"), "of somebody else");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
