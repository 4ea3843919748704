//! Where settings are taken from: a file that is named or found, and flags.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The file that is found by itself, in the folder that the program is started in.
const FOUND: &str = "./postrider.toml";

/// Where settings are taken from.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The file, if one was named.
    pub(crate) named: Option<PathBuf>,
    /// Settings by flag, as `relay.lease` and `10s`.
    pub(crate) flags: Vec<(String, String)>,
}

/// The file that settings are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whether nobody named it.
    pub(crate) found: bool,
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = if self.found { " (found in the current folder)" } else { "" };
        write!(f, "{}{found}", self.path.display())
    }
}

impl Origins {
    /// The file: the one that is named by `--config`, or by `POSTRIDER_CONFIG`, or else the one that is in this folder.
    pub(super) fn file(&self, environment: &BTreeMap<String, String>) -> Option<File> {
        let named = self.named.clone().or_else(|| environment.get("POSTRIDER_CONFIG").map(PathBuf::from));
        let found = || Path::new(FOUND).exists().then(|| File { path: FOUND.into(), found: true });
        named.map(|path| File { path, found: false }).or_else(found)
    }

    /// The flag that sets a setting, as somebody wrote it.
    pub(super) fn flag(setting: &str) -> String {
        match setting {
            "store.url" => "--store".to_owned(),
            "store.schema" => "--schema".to_owned(),
            other => format!("--set {other}"),
        }
    }
}
