//! Node.js with packages that tests ask for: each set in a folder of its own in the target folder, made once.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::task_error::TaskError;
use crate::{package, process, say, workspace};

/// The driver that publishers in JavaScript use.
pub const DRIVER: &str = "pg@8.23.1";

/// Debian's and Ubuntu's packages of Node.js and of what installs packages for it.
pub const PACKAGES: &[&str] = &["nodejs", "npm"];

/// Sees that there is a Node.js; where there is none it is installed, if that is possible.
pub fn prepare() -> Result<(), TaskError> {
    if !has_programs() && package::can_install()? {
        package::install("Node.js", PACKAGES)?;
    }
    Ok(())
}

/// The folder `node_modules` with [`DRIVER`] in it; it is made now if need be. It installs no Node.js.
pub fn ready() -> Result<PathBuf, TaskError> {
    let folder = workspace::target().join("services").join(format!("node-{}", DRIVER.replace('@', "-")));
    made_once(&folder, DRIVER, |partial| {
        let mut npm = npm("install", partial);
        npm.arg(DRIVER);
        process::output(&mut npm, "install a library of Node.js").map(drop)
    })
}

/// The folder `node_modules` with exactly what the `package-lock.json` of a folder names; it is made now if need be, without
/// running any script of a package. It installs no Node.js.
pub fn locked(project: &Path) -> Result<PathBuf, TaskError> {
    let files = ["package.json", "package-lock.json"].map(|name| project.join(name));
    let mut hasher = DefaultHasher::new();
    for file in &files {
        let text = fs::read(file);
        text.map_err(|error| TaskError::new(format!("could not read {}: {error}", file.display())))?
            .hash(&mut hasher);
    }
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    let folder = workspace::target().join("services").join(format!("node-{name}-{:016x}", hasher.finish()));
    made_once(&folder, &format!("the packages of {}", project.display()), |partial| {
        for file in &files {
            let copy = partial.join(file.file_name().unwrap_or_default());
            fs::copy(file, &copy).map_err(|error| unwritable(&copy, &error))?;
        }
        let mut npm = npm("ci", partial);
        npm.arg("--ignore-scripts");
        process::output(&mut npm, "install libraries of Node.js").map(drop)
    })
}

fn npm(command: &str, folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.args([command, "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(folder).current_dir(folder);
    npm
}

/// The folder `node_modules` in `folder`, which `install` makes in an empty folder unless it is there.
fn made_once(
    folder: &Path,
    what: &str,
    install: impl FnOnce(&Path) -> Result<(), TaskError>,
) -> Result<PathBuf, TaskError> {
    let modules = folder.join("node_modules");
    if folder.exists() {
        return Ok(modules);
    }
    let _alone = lock(folder)?;
    if folder.exists() {
        return Ok(modules);
    }
    if !has_programs() {
        return Err(TaskError::new(format!(
            "Node.js with npm is missing: install it (Debian and Ubuntu: `apt-get install {}`)",
            PACKAGES.join(" ")
        )));
    }
    say(&format!("installing {what} for Node.js into {}", folder.display()));
    let partial = folder.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).map_err(|error| unwritable(&partial, &error))?;
    install(&partial)?;
    // All or nothing: one that was interrupted is made again.
    fs::rename(&partial, folder).map_err(|error| unwritable(folder, &error))?;
    Ok(modules)
}

fn has_programs() -> bool {
    let has =
        |program: &str| process::output(Command::new(program).arg("--version"), "ask for a version").is_ok();
    has("node") && has("npm")
}

/// Waits until no other process makes the folder, and keeps others waiting while it is held.
fn lock(folder: &Path) -> Result<File, TaskError> {
    let path = folder.with_extension("lock");
    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .and_then(|()| File::create(&path))
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| unwritable(&path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}
