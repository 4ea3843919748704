//! Values that are not to be seen: where they come from, and how they are hidden.

use std::collections::BTreeMap;

/// Where values come from that are not in the file: `env:NAME` and `file:PATH`.
pub(crate) struct Secrets {
    environment: BTreeMap<String, String>,
}

impl Secrets {
    /// With these variables.
    pub(crate) fn new(environment: BTreeMap<String, String>) -> Self {
        Self { environment }
    }

    /// The value that a text stands for.
    pub(crate) fn look_up(&self, text: &str) -> Result<String, String> {
        if let Some(name) = text.strip_prefix("env:") {
            let value = self.environment.get(name).filter(|value| !value.is_empty());
            return value.cloned().ok_or_else(|| format!("the environment variable {name} is not set"));
        }
        if let Some(path) = text.strip_prefix("file:") {
            let value = std::fs::read_to_string(path);
            let value = value.map_err(|error| format!("the file {path} can't be read: {}", plain(&error)))?;
            return Ok(value.trim_end_matches(['\r', '\n']).to_owned());
        }
        Ok(text.to_owned())
    }
}

/// What is wrong with a file, for people.
pub(crate) fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        _ => error.to_string(),
    }
}

/// An address as it may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let shown = match rest.rsplit_once('@') {
        Some((login, host)) => match login.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
            None => format!("{scheme}://{rest}"),
        },
        None => format!("{scheme}://{rest}"),
    };
    // A password may be there, too.
    match query {
        Some(query) if query.to_lowercase().contains("password") => format!("{shown}?***"),
        Some(query) => format!("{shown}?{query}"),
        None => shown,
    }
}
