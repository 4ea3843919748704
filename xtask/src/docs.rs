//! The pages of `docs/` that are made from the code.

use std::fs;

use crate::foreground::Foreground;
use crate::say;
use crate::task_error::TaskError;
use crate::workspace;

/// Each page, and what the binary calls it.
pub const PAGES: &[(&str, &str)] = &[("docs/cli.md", "cli"), ("docs/configuration.md", "configuration")];

/// Writes them.
pub fn write(foreground: &Foreground) -> Result<u8, TaskError> {
    let mut cargo = workspace::cargo();
    let code = foreground.run(cargo.args(["build", "--package", "postrider-cli"]))?;
    if code != 0 {
        return Ok(code);
    }
    for (file, page) in PAGES {
        let mut cargo = workspace::cargo();
        cargo.args(["run", "--quiet", "--package", "postrider-cli", "--", "reference", page]);
        let made = cargo.output().map_err(|error| TaskError::new(format!("cargo can't be run: {error}")))?;
        if !made.status.success() {
            return Err(TaskError::new(format!("the page {page} could not be made")));
        }
        let path = workspace::root().join(file);
        let written =
            fs::create_dir_all(path.parent().unwrap_or(&path)).and_then(|()| fs::write(&path, &made.stdout));
        written.map_err(|error| TaskError::new(format!("{} can't be written: {error}", path.display())))?;
        say(&format!("{file} is written"));
    }
    Ok(0)
}
