//! One table of the file while it is read: every key is asked for by name, and what is not described is refused.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use postrider::store::nearest;
use toml::{Table, Value};

use super::{Problem, Secrets, described, duration};

/// One table of the file while it is read.
pub(crate) struct Section<'a> {
    /// As it is called in sentences: `sink.kafka`.
    path: String,
    /// As it is described: `sink.*`.
    place: String,
    /// Its `type`, once that was asked for.
    kind: Option<String>,
    table: Table,
    asked: BTreeSet<&'static str>,
    secrets: &'a Secrets,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(crate) fn root(table: Table, secrets: &'a Secrets) -> Self {
        let (path, place, asked) = (String::new(), String::new(), BTreeSet::new());
        Self { path, place, kind: None, table, asked, secrets }
    }

    fn inner(&self, path: String, place: String, table: Table) -> Section<'a> {
        Section { path, place, kind: None, table, asked: BTreeSet::new(), secrets: self.secrets }
    }

    fn place_of(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A problem with a key of this section.
    pub(crate) fn problem(&self, key: &str, what: impl Display) -> Problem {
        Problem::of(self.path_of(key), what)
    }

    /// A problem with this section itself.
    pub(crate) fn own_problem(&self, what: impl Display) -> Problem {
        Problem::of(&self.path, what)
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.asked.insert(key);
        self.table.remove(key)
    }

    /// Text; `env:NAME` and `file:PATH` are looked up.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<String>, Problem> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => {
                let text = self.resolved(key, value)?;
                if key == "type" {
                    self.kind = Some(text.clone());
                }
                Ok(Some(text))
            }
        }
    }

    /// Text that has to be there.
    pub(crate) fn need(&mut self, key: &'static str, example: &str) -> Result<String, Problem> {
        let text = self.text(key)?;
        text.ok_or_else(|| self.problem(key, format!("it is required; for example {key} = {example:?}")))
    }

    fn resolved(&self, key: &str, value: Value) -> Result<String, Problem> {
        let text = match value {
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
            Value::Datetime(time) => time.to_string(),
            other => return Err(self.problem(key, format!("it must be text, not {}", kind(&other)))),
        };
        self.secrets.look_up(&text).map_err(|what| self.problem(key, what))
    }

    /// A time, as in `"5m"`.
    pub(crate) fn duration(&mut self, key: &'static str) -> Result<Option<Duration>, Problem> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let expected = || {
            self.problem(
                key,
                format!(
                    "{text:?} is not a duration; write it as \"500ms\", \"2s\", \"5m\", \"1h30m\" or \"7d\""
                ),
            )
        };
        duration::parse(&text).map(Some).ok_or_else(expected)
    }

    /// A number, or any other value that is written as text.
    pub(crate) fn parsed<T: FromStr>(
        &mut self,
        key: &'static str,
        expected: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.problem(key, format!("{text:?} is not {expected}")))
    }

    /// One of several words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*meaning));
        }
        let all: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        Err(self.problem(key, format!("it must be one of {}, not {text:?}", all.join(", "))))
    }

    /// A list of texts; one text is taken apart at its commas.
    pub(crate) fn list(&mut self, key: &'static str) -> Result<Option<Vec<String>>, Problem> {
        self.take(key).map(|value| self.listed(key, value)).transpose()
    }

    /// A table of lists by name.
    pub(crate) fn lists(&mut self, key: &'static str) -> Result<Vec<(String, Vec<String>)>, Problem> {
        let table = self.table(key)?.unwrap_or_default();
        let listed = |(name, value)| {
            let list = self.listed(&format!("{key}.{name}"), value)?;
            Ok((name, list))
        };
        table.into_iter().map(listed).collect()
    }

    fn listed(&self, key: &str, value: Value) -> Result<Vec<String>, Problem> {
        match value {
            Value::Array(values) => values.into_iter().map(|value| self.resolved(key, value)).collect(),
            Value::String(text) => {
                // From the environment, a flag or a file.
                let text = self.secrets.look_up(&text).map_err(|what| self.problem(key, what))?;
                Ok(text.split(',').map(|part| part.trim().to_owned()).collect())
            }
            other => {
                let what = format!("it must be a list such as [\"a\", \"b\"], not {}", kind(&other));
                Err(self.problem(key, what))
            }
        }
    }

    /// A table of texts by name.
    pub(crate) fn texts(&mut self, key: &'static str) -> Result<Vec<(String, String)>, Problem> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Table(table)) => table
                .into_iter()
                .map(|(name, value)| Ok((name.clone(), self.resolved(&format!("{key}.{name}"), value)?)))
                .collect(),
            Some(other) => Err(self.problem(key, format!("it must be a table, not {}", kind(&other)))),
        }
    }

    /// A table whose keys are the user's own, as it is: nothing in it is looked up.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<Option<Table>, Problem> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(self.problem(key, format!("it must be a table, not {}", kind(&other)))),
        }
    }

    /// A table in this one.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, Problem> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(self.inner(self.path_of(key), self.place_of(key), table))),
            Some(other) => {
                Err(self.problem(key, format!("it must be a table ([{key}]), not {}", kind(&other))))
            }
        }
    }

    /// The tables of a list of them, as in `[[subscription]]`.
    pub(crate) fn each(&mut self, key: &'static str) -> Result<Vec<Section<'a>>, Problem> {
        let found = self.take(key);
        let expected = |found: &Value| {
            self.problem(key, format!("it must be a list of tables ([[{key}]]), not {}", kind(found)))
        };
        match found {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                let mut sections = Vec::new();
                for (place, value) in values.into_iter().enumerate() {
                    let Value::Table(table) = value else { return Err(expected(&value)) };
                    let name = table.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
                    let path = format!("{key}[{}]", name.unwrap_or_else(|| (place + 1).to_string()));
                    sections.push(self.inner(self.path_of(&path), self.place_of(key), table));
                }
                Ok(sections)
            }
            Some(other) => Err(expected(&other)),
        }
    }

    /// The tables in a table, by name, as in `[sink.NAME]`.
    pub(crate) fn named(&mut self, key: &'static str) -> Result<Vec<(String, Section<'a>)>, Problem> {
        let Some(section) = self.section(key)? else { return Ok(Vec::new()) };
        let mut sections = Vec::new();
        for (name, value) in section.table {
            match value {
                Value::Table(table) => {
                    let path = self.path_of(&format!("{key}.{name}"));
                    let inner = self.inner(path, self.place_of(&format!("{key}.*")), table);
                    sections.push((name, inner));
                }
                other => {
                    let what = format!("it must be a table ([{key}.{name}]), not {}", kind(&other));
                    return Err(self.problem(&format!("{key}.{name}"), what));
                }
            }
        }
        Ok(sections)
    }

    /// Refuses what is not described.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        let known = described::names(&self.place, self.kind.as_deref());
        debug_assert_eq!(
            self.asked,
            known.iter().copied().collect(),
            "what is read of {:?} is what is described of it",
            self.place
        );
        let Some(key) = self.table.keys().next() else { return Ok(()) };
        let what = match nearest(key, known.iter().copied()) {
            Some(meant) => format!("there is no such setting; did you mean {meant:?}?"),
            None => format!("there is no such setting; the known ones are {}", known.join(", ")),
        };
        Err(self.problem(key, what))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a time",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}
