//! How long files and functions may be.
//!
//! Functions are found by their braces, in text whose strings, characters and comments are blanked. Nothing here knows more of Rust.

use std::fs;
use std::process::Command;

use crate::process;
use crate::task_error::TaskError;
use crate::workspace;

/// A file with more lines has a second noun.
pub const FILE_LINES: usize = 400;

/// A function with more lines has a second step.
pub const FUNCTION_LINES: usize = 60;

/// What counts as code.
const ENDINGS: [&str; 4] = [".rs", ".sql", ".js", ".py"];

/// Functions that are tables, by file and name: cutting them would only scatter rows.
const TABLES: [(&str, &str); 0] = [];

/// A function in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// From its `fn` to its last brace.
    pub lines: usize,
}

/// Every file and function of the workspace that is too long, a sentence each.
pub fn too_long() -> Result<Vec<String>, TaskError> {
    let mut git = Command::new("git");
    // In a container the checkout belongs to another account than the one that runs this, which git refuses by itself.
    git.args(["-c", "safe.directory=*", "ls-files", "-z"]).current_dir(workspace::root());
    let files = process::output(&mut git, "list the files of the workspace")?;
    let mut found = Vec::new();
    for file in files.split('\0').filter(|file| ENDINGS.iter().any(|ending| file.ends_with(ending))) {
        // A file that was removed is listed until that is committed.
        if let Ok(text) = fs::read_to_string(workspace::root().join(file)) {
            found.extend(findings(file, &text));
        }
    }
    Ok(found)
}

/// What is too long in one file.
pub fn findings(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES {
        found.push(format!("{file} has {lines} lines; it must have at most {FILE_LINES}"));
    }
    if file.ends_with(".rs") {
        let is_table = |name: &str| TABLES.contains(&(file, name));
        let long = functions(text).into_iter().filter(|f| f.lines > FUNCTION_LINES && !is_table(&f.name));
        found.extend(long.map(|Function { name, line, lines }| {
            format!("{file}:{line}: {name} has {lines} lines; it must have at most {FUNCTION_LINES}")
        }));
    }
    found
}

/// The functions with a body in Rust source; one inside another counts for both.
pub fn functions(source: &str) -> Vec<Function> {
    let code = blanked(source);
    let mut found = Vec::new();
    for at in 0..code.len() {
        let starts = code[at..].starts_with(&['f', 'n']) && (at == 0 || !is_word(code[at - 1]));
        if !starts || !code.get(at + 2).is_some_and(|next| next.is_whitespace()) {
            continue;
        }
        let rest = code[at + 2..].iter().skip_while(|next| next.is_whitespace());
        let name: String = rest.take_while(|next| is_word(**next) || matches!(next, '$' | '#')).collect();
        if let Some(end) = end_of_body(&code, at).filter(|_| !name.is_empty()) {
            let line = 1 + lines_in(&code[..at]);
            found.push(Function { name, line, lines: 1 + lines_in(&code[at..end]) });
        }
    }
    found
}

fn lines_in(code: &[char]) -> usize {
    code.iter().filter(|each| **each == '\n').count()
}

/// The place of the last brace of the function that starts at a place; none without a body.
fn end_of_body(code: &[char], start: usize) -> Option<usize> {
    let (mut brackets, mut braces) = (0_usize, 0_usize);
    for (at, each) in code.iter().enumerate().skip(start) {
        match each {
            '(' | '[' if braces == 0 => brackets += 1,
            ')' | ']' if braces == 0 => brackets = brackets.checked_sub(1)?,
            ';' if brackets == 0 && braces == 0 => return None,
            '{' if brackets == 0 => braces += 1,
            '}' if brackets == 0 => {
                braces = braces.checked_sub(1)?;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The source with a space for every character of a string, a character literal or a comment; lines stay.
fn blanked(source: &str) -> Vec<char> {
    let mut code: Vec<char> = source.chars().collect();
    let mut at = 0;
    while at < code.len() {
        let end = skipped(&code, at);
        for each in code[at..end].iter_mut().filter(|each| **each != '\n') {
            *each = ' ';
        }
        at = end.max(at + 1);
    }
    code
}

/// The end of what is no code at a place; the place itself where code is.
fn skipped(code: &[char], at: usize) -> usize {
    let rest = &code[at..];
    let found = match rest {
        ['/', '/', ..] => rest.iter().position(|each| *each == '\n'),
        ['/', '*', ..] => comment(rest),
        ['"', ..] => quoted(rest, '"'),
        ['r', '"' | '#', ..] if !is_in_word(code, at) => match raw_string(rest) {
            Some(end) => end,
            None => return at,
        },
        ['\'', '\\', ..] => quoted(rest, '\''),
        ['\'', _, '\'', ..] => Some(3),
        _ => return at,
    };
    found.map_or(code.len(), |length| at + length)
}

/// Whether a word goes on at a place; the `b` or `c` of a literal begins one.
fn is_in_word(code: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).is_some_and(|place| is_word(code[place]));
    before(1) && (!matches!(code[at - 1], 'b' | 'c') || before(2))
}

/// The length of a comment between `/*` and `*/`, which may have others in it.
fn comment(rest: &[char]) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    while at + 1 < rest.len() {
        match rest[at..at + 2] {
            ['/', '*'] => depth += 1,
            ['*', '/'] => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The length of a literal that ends at a quote without a backslash before it.
fn quoted(rest: &[char], quote: char) -> Option<usize> {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 1,
            each if each == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The length of a raw string, or of what is left if it does not end; none for a raw name such as `r#type`.
fn raw_string(rest: &[char]) -> Option<Option<usize>> {
    let hashes = rest[1..].iter().take_while(|each| **each == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let from = hashes + 2;
    let found = rest[from..].windows(end.len()).position(|window| *window == end[..]);
    Some(found.map(|at| from + at + end.len()))
}

fn is_word(each: char) -> bool {
    each.is_alphanumeric() || each == '_'
}
