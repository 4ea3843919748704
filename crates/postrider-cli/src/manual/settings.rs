//! The reference of the settings, as Markdown.

use crate::config::described::{Described, TABLES};

const HEAD: &str = "\
# Configuration

`cargo xtask docs` generates this page from the code. `postrider.example.toml` is a commented example, and
`postrider config check` prints the settings in effect, with secrets hidden.

Settings come from three places. Each overrides the one before:

1. a TOML file: `--config FILE`, or `POSTRIDER_CONFIG`, or `./postrider.toml` if it exists
2. the environment, as in `POSTRIDER_RELAY_LEASE`, for the tables that say so below
3. flags, as in `--set relay.lease=10s`, for every setting outside of lists

A duration is written as `\"500ms\"`, `\"2s\"`, `\"5m\"`, `\"1h30m\"` or `\"7d\"`. Keep secrets out of the file: `\"env:NAME\"` reads an
environment variable, `\"file:PATH\"` reads a file. Under systemd, `\"file:$CREDENTIALS_DIRECTORY/NAME\"` reads the credential of
`LoadCredential=NAME:…`. Postrider rejects a setting that it does not know, and suggests the closest name.
";

/// The page.
pub(crate) fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for table in TABLES {
        page.push_str(&section(table));
    }
    page
}

fn section(table: &Described) -> String {
    let mut text = format!("\n## `{}`\n\n{}", table.head, table.what);
    if table.environment {
        text.push_str(&format!(" In the environment: `POSTRIDER_{}_…`.", table.place.to_uppercase()));
    }
    text.push_str("\n\n| setting | type | default | description |\n|---|---|---|---|\n");
    for setting in table.settings {
        let usual = setting.usual.as_ref().map(|usual| format!("`{usual}`")).unwrap_or_default();
        text.push_str(&format!(
            "| `{}` | {} | {usual} | {} |\n",
            setting.name,
            setting.kind,
            setting.what.replace('|', "\\|")
        ));
    }
    text
}
