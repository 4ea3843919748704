//! What is wrong with a setting, and where it was set.

use std::collections::BTreeMap;
use std::fmt;

use super::{File, Origins, variable};

/// What is wrong with a setting: one sentence that names it and says what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What the sentence begins with: the file, the flag or the variable, and the setting.
    head: Vec<String>,
    /// The setting, if it is one of a single setting: `relay.lease`.
    setting: Option<String>,
    what: String,
}

impl Problem {
    /// A problem, in a sentence.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { head: Vec::new(), setting: None, what: sentence.into() }
    }

    /// A problem with one setting.
    pub(crate) fn of(setting: impl Into<String>, what: impl fmt::Display) -> Self {
        let setting = setting.into();
        Self { head: vec![setting.clone()], setting: Some(setting), what: what.to_string() }
    }

    /// The same problem; one that is of no single setting is the file's.
    pub(super) fn of_file(mut self, file: Option<&File>) -> Self {
        if let (None, Some(file)) = (&self.setting, file) {
            self.head.insert(0, file.path.display().to_string());
        }
        self
    }

    /// The same problem with where its setting is from: the flag that set it, or the variable, or else the file.
    pub(crate) fn blamed_on(
        mut self,
        origins: &Origins,
        environment: &BTreeMap<String, String>,
        file: Option<&File>,
    ) -> Self {
        let Some(setting) = self.setting.take() else { return self };
        let is = |name: &str| within(&setting, name);
        // Of a table as a whole: the flag whose value the sentence quotes.
        let quoted = |name: &str, value: &str| {
            within(name, &setting) && !value.is_empty() && self.what.contains(value)
        };
        let mut flags = origins.flags.iter().rev();
        if let Some((name, _)) = flags.find(|(name, value)| is(name) || quoted(name, value)) {
            self.head = vec![Origins::flag(name)];
            if setting != *name {
                self.head.push(setting);
            }
            return self;
        }
        let set_by = |variable_name: &&String| {
            let found = variable(variable_name).ok().flatten();
            found.is_some_and(|(section, key)| is(&format!("{section}.{key}")))
        };
        if let Some(name) = environment.keys().find(set_by) {
            self.head.insert(0, name.clone());
        } else if let Some(file) = file {
            self.head.insert(0, file.path.display().to_string());
        }
        self
    }
}

/// Whether a setting is that one, or one in it.
fn within(setting: &str, name: &str) -> bool {
    setting.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for head in &self.head {
            write!(f, "{head}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Problem {}
