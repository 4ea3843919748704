//! Python with what tests ask of it: an environment of its own in the target folder, made once.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::task_error::TaskError;
use crate::{package, process, say, workspace};

/// What is installed: the libraries of CloudEvents and of Standard Webhooks, which read what we write, the driver that publishers in
/// Python use, and the schemas of Kubernetes with what checks files by them.
pub const REQUIREMENTS: &[&str] = &[
    "cloudevents==2.2.0",
    "python-dateutil==2.9.0.post0",
    "six==1.17.0",
    "standardwebhooks==1.1.0",
    "psycopg==3.3.8",
    "psycopg-binary==3.3.8",
    "typing_extensions==4.16.0",
    "kubernetes-validate==1.37.0",
    "importlib_resources==7.1.0",
    "jsonschema==4.26.0",
    "jsonschema-specifications==2025.9.1",
    "attrs==26.1.0",
    "packaging==26.3",
    "PyYAML==6.0.3",
    "referencing==0.37.0",
    "rpds-py==2026.9.1",
];

/// Debian's and Ubuntu's packages of Python and of what makes environments.
pub const PACKAGES: &[&str] = &["python3", "python3-venv"];

/// Sees that there is a Python that can make environments; where there is none it is installed, if that is possible.
pub fn prepare() -> Result<(), TaskError> {
    if !environment().exists() && !can_make_environments() && package::can_install()? {
        package::install("Python", PACKAGES)?;
    }
    Ok(())
}

/// The interpreter of an environment that has [`REQUIREMENTS`]; it is made now if need be. It installs no Python.
pub fn ready() -> Result<PathBuf, TaskError> {
    let folder = environment();
    let interpreter = folder.join("bin/python");
    if folder.exists() {
        return Ok(interpreter);
    }
    let _alone = lock(&folder)?;
    if folder.exists() {
        return Ok(interpreter);
    }
    if !can_make_environments() {
        return Err(TaskError::new(format!(
            "Python 3 with its module venv is missing: install it (Debian and Ubuntu: `apt-get install {}`)",
            PACKAGES.join(" ")
        )));
    }
    say(&format!("making a Python environment with {} in {}", REQUIREMENTS.join(", "), folder.display()));
    make(&folder)?;
    Ok(interpreter)
}

fn make(folder: &Path) -> Result<(), TaskError> {
    let partial = folder.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&partial);
    process::output(&mut venv, "make a Python environment")?;
    let mut pip = Command::new(partial.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(REQUIREMENTS);
    process::output(&mut pip, "install libraries of Python")?;
    // All or nothing: one that was interrupted is made again.
    fs::rename(&partial, folder).map_err(|error| unwritable(folder, &error))
}

fn can_make_environments() -> bool {
    let mut python = Command::new("python3");
    process::output(python.args(["-c", "import venv, ensurepip"]), "ask Python").is_ok()
}

/// Where the environment of this workspace lies: another list of requirements is another environment.
fn environment() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    REQUIREMENTS.hash(&mut hasher);
    workspace::target().join("services").join(format!("python-{:016x}", hasher.finish()))
}

/// Waits until no other process makes the environment, and keeps others waiting while it is held.
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
