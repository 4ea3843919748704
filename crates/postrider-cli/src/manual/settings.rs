//! The reference of the settings, as Markdown.

use crate::config::described::{Described, TABLES};

const HEAD: &str = "\
# Configuration

Made from the code by `cargo xtask docs`; a test keeps it fresh. `postrider.example.toml` is a commented example, and
`postrider config check` says what was understood, with secrets hidden.

Settings come from a TOML file (`--config FILE`, or `POSTRIDER_CONFIG`, or else `./postrider.toml` if it is there), then from the
environment, then from flags: each wins over the one before. A time is written as `\"500ms\"`, `\"2s\"`, `\"5m\"`, `\"1h30m\"` or `\"7d\"`. A value may be `\"env:NAME\"`, which is
an environment variable, or `\"file:PATH\"`, which is a file's content: that is for secrets. Under systemd
`\"file:$CREDENTIALS_DIRECTORY/NAME\"` is what the unit has by `LoadCredential=NAME:…`. What is not known is refused, with what was meant.

Any setting outside of lists can be given by a flag, as in `--set relay.lease=10s`. Those of the tables marked so can be given
in the environment, as in `POSTRIDER_RELAY_LEASE`.
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
    text.push_str("\n\n| setting | kind | unless set | what it does |\n|---|---|---|---|\n");
    for setting in table.settings {
        let usual = setting.usual.map(|usual| format!("`{usual}`")).unwrap_or_default();
        text.push_str(&format!(
            "| `{}` | {} | {usual} | {} |\n",
            setting.name,
            setting.kind,
            setting.what.replace('|', "\\|")
        ));
    }
    text
}
