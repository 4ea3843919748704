//! Values that are not to be seen: where they come from, and how they are hidden.

use std::borrow::Cow;
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
            let path = &*self.credential(path)?;
            let value = std::fs::read_to_string(path);
            let value = value.map_err(|error| format!("can't read the file {path}: {}", plain(&error)))?;
            let value = value.trim_end_matches(['\r', '\n']);
            if value.trim().is_empty() {
                return Err(format!("the file {path} is empty; write the value to it"));
            }
            return Ok(value.to_owned());
        }
        Ok(text.to_owned())
    }
}

/// What a path begins with that is a credential which systemd gives to a unit.
const CREDENTIALS: &str = "$CREDENTIALS_DIRECTORY/";

impl Secrets {
    /// The path, with the folder of the unit's credentials in its place.
    fn credential<'p>(&self, path: &'p str) -> Result<Cow<'p, str>, String> {
        let Some(name) = path.strip_prefix(CREDENTIALS) else { return Ok(Cow::Borrowed(path)) };
        let folder = self.environment.get("CREDENTIALS_DIRECTORY").filter(|folder| !folder.is_empty());
        let folder = folder.ok_or_else(|| {
            format!(
                "CREDENTIALS_DIRECTORY is not set: systemd sets it for a unit with LoadCredential={name}:…"
            )
        })?;
        Ok(Cow::Owned(format!("{folder}/{name}")))
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
    // The last one ends the login, whatever stands before it: a password that was not encoded may have a `?` in it.
    let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let login = match login.map(|login| login.split_once(':').ok_or(login)) {
        // No user: an `@` in a setting behind the address, perhaps in a password.
        Some(Ok((user, _)) | Err(user)) if user.contains('?') => return format!("{scheme}://***"),
        Some(Ok((user, _))) => format!("{user}:***@"),
        Some(Err(user)) => format!("{user}@"),
        None => String::new(),
    };
    // A password may be there, too.
    match query {
        Some(query) if query.to_lowercase().contains("password") => format!("{scheme}://{login}{place}?***"),
        Some(query) => format!("{scheme}://{login}{place}?{query}"),
        None => format!("{scheme}://{login}{place}"),
    }
}

/// An endpoint as it may be shown: where it is, and not what is behind it, which is a secret where it is a webhook's.
pub(crate) fn endpoint(url: &str) -> String {
    let Ok(url) = reqwest::Url::parse(url) else { return "***".to_owned() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let rest = if url.path() == "/" && url.query().is_none() { "" } else { "…" };
    format!("{}://{}{port}/{rest}", url.scheme(), url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_endpoint_only_its_place_is_shown() {
        for (url, shown) in [
            ("https://hooks.example/T0/geheim", "https://hooks.example/…"),
            ("https://hooks.example:8443?token=geheim", "https://hooks.example:8443/…"),
            ("http://ada:geheim@[::1]:80/", "http://[::1]/"),
            ("http://ada:ge/heim@h/", "***"),
            ("geheim", "***"),
        ] {
            assert_eq!(endpoint(url), shown);
        }
    }

    #[test]
    fn no_part_of_a_password_is_shown_however_the_address_is_written() {
        for (url, shown) in [
            ("postgres://ada:geheim@db/shop", "postgres://ada:***@db/shop"),
            ("postgres://ada@db/shop?sslmode=require", "postgres://ada@db/shop?sslmode=require"),
            ("postgres://db/shop", "postgres://db/shop"),
            ("postgres://ada:ge?heim@db/shop", "postgres://ada:***@db/shop"),
            ("postgres://ada:ge@heim@db/shop", "postgres://ada:***@db/shop"),
            ("postgres://ada:geheim@db/shop?x=1", "postgres://ada:***@db/shop?x=1"),
            ("postgres://db/shop?user=ada&password=geheim", "postgres://db/shop?***"),
            ("postgres://db/shop?password=ge@heim", "postgres://***"),
            ("postgres://db/shop?password=ge:he@im", "postgres://***"),
            ("sqlite:shop.db", "sqlite:shop.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
