//! Java with the driver that publishers in Java use: its jars in a folder of the target folder, fetched once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kafka::java;
use crate::maven::{self, Artifact};
use crate::task_error::TaskError;
use crate::{package, process, say, workspace};

/// What is fetched.
pub const DRIVER: Artifact = ("org.postgresql", "postgresql", "42.7.8");

/// Debian's and Ubuntu's packages of a Java that compiles, and of what fetches jars for it.
pub const PACKAGES: &[&str] = &["default-jdk-headless", "maven"];

/// Sees that there is a Java that compiles, and Maven; where they are missing they are installed, if that is possible.
pub fn prepare() -> Result<(), TaskError> {
    if (compiler().is_none() || !(lib().exists() || maven::is_there())) && package::can_install()? {
        package::install("Java with its compiler, or Maven,", PACKAGES)?;
    }
    Ok(())
}

/// A `java` that has [`DRIVER`] and runs a source file; the driver is fetched now if need be. It installs no Java.
pub fn ready() -> Result<Command, TaskError> {
    let missing = || {
        TaskError::new(format!(
            "Java 17 or later with its compiler, or Maven, is missing: install them (Debian and Ubuntu: `apt-get install {}`)",
            PACKAGES.join(" ")
        ))
    };
    let program = compiler().ok_or_else(missing)?;
    let lib = lib();
    if !lib.exists() {
        let _alone = lock(&lib)?;
        if !lib.exists() {
            if !maven::is_there() {
                return Err(missing());
            }
            let (_, name, version) = DRIVER;
            say(&format!("fetching {name} {version} for Java with Maven into {}", lib.display()));
            maven::fetch(&[DRIVER], &lib)?;
        }
    }
    let mut command = java::command(&program);
    command.arg("-cp").arg(lib.join("*"));
    Ok(command)
}

/// A Java that can compile what it runs.
fn compiler() -> Option<PathBuf> {
    let java = java::find()?;
    let mut modules = java::command(&java);
    modules.arg("--list-modules");
    let modules = process::output(&mut modules, "ask Java for its modules").ok()?;
    modules.contains("jdk.compiler").then_some(java)
}

fn lib() -> PathBuf {
    workspace::target().join("services").join(format!("jdbc-{}", DRIVER.2)).join("lib")
}

/// Waits until no other process fetches the jars, and keeps others waiting while it is held.
fn lock(lib: &Path) -> Result<File, TaskError> {
    let path = lib.with_extension("lock");
    fs::create_dir_all(lib.parent().unwrap_or(lib))
        .and_then(|()| File::create(&path))
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| TaskError::new(format!("could not write {}: {error}", path.display())))
}
