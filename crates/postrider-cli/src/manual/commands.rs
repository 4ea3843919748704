//! The reference of the command line, as Markdown.

use clap::{Arg, Command};

const HEAD: &str = "\
# Command line

`cargo xtask docs` generates this page from the code. `postrider COMMAND --help` prints the same text.

- **JSON.** Every command that prints results takes `--json`. It prints one object or array, with times in RFC 3339.
- **Confirmation.** A command that deletes, pauses or delivers again asks first. `--yes` skips the question.
- **Audit.** Every change that an operator makes is stored with who and why. `postrider audit` lists them.
- **Exit codes.** 0 for success, 1 for failure, 2 for wrong usage.
- **Settings** come from the file, then the environment, then flags: see [configuration.md](configuration.md).

";

/// The page.
pub(crate) fn markdown(mut command: Command) -> String {
    command.build();
    let mut page = HEAD.to_owned();
    page.push_str("## Flags of every command\n\n");
    page.push_str(&table(command.get_arguments().filter(|arg| arg.is_global_set())));
    for each in command.get_subcommands() {
        describe(each, &mut page);
    }
    page
}

fn describe(command: &Command, page: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let nested: Vec<&Command> = command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
        .collect();
    let level = if command.get_bin_name().unwrap_or_default().split(' ').count() > 2 { "###" } else { "##" };
    page.push_str(&format!("\n{level} {}\n\n", command.get_bin_name().unwrap_or_default()));
    if let Some(about) = command.get_about() {
        page.push_str(&format!("{}.\n", escaped(&about.to_string())));
    }
    // One that only has others under it is described by these.
    if !command.is_subcommand_required_set() {
        let usage = command.clone().render_usage().to_string();
        let usage: Vec<&str> = usage.trim_start_matches("Usage: ").lines().map(str::trim).collect();
        page.push_str(&format!("\n```\n{}\n```\n", usage.join("\n")));
        let own = command.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
        let own: Vec<&Arg> = own.filter(|arg| arg.get_id() != "help").collect();
        if !own.is_empty() {
            page.push_str(&format!("\n{}", table(own.into_iter())));
        }
    }
    for inner in nested {
        describe(inner, page);
    }
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut table = "| flag | description |\n|---|---|\n".to_owned();
    for argument in arguments {
        let mut what = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let usual: Vec<String> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        let takes_value = argument.get_action().takes_values();
        let possible: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| takes_value && !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !possible.is_empty() {
            what.push_str(&format!(": {}", possible.join(", ")));
        }
        if takes_value && !usual.is_empty() {
            what.push_str(&format!(" (default: {})", usual.join(" ")));
        }
        table.push_str(&format!("| `{}` | {} |\n", spelled(argument), escaped(&what)));
    }
    table
}

/// A flag as it is written.
fn spelled(argument: &Arg) -> String {
    let names: Vec<String> = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .map(|names| names.iter().map(ToString::to_string).collect())
        .unwrap_or_default();
    let values = names.join(" ");
    let optional = argument.get_num_args().is_some_and(|range| range.min_values() == 0);
    let flag = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => return values,
    };
    match (values.is_empty(), optional) {
        (true, _) => flag,
        (false, true) => format!("{flag}[={values}]"),
        (false, false) => format!("{flag} {values}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;")
}
