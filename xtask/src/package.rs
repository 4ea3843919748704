//! Installing what tests need on a machine that has it not: Debian's and Ubuntu's packages, by root.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::account;
use crate::say;
use crate::task_error::TaskError;
use crate::workspace;

/// Installs the packages without starting the servers that they would set up: we start our own.
///
/// What may start is asked of `/usr/sbin/policy-rc.d`. One that is there already is the machine's own and stays as
/// it is; otherwise ours says no to everything for as long as the installation takes.
const INSTALL: &str = r#"
set -eu
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ] && [ ! -L "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends "$@"
"#;

/// Whether packages can be installed here: it takes root and `apt-get`.
pub fn can_install() -> Result<bool, TaskError> {
    Ok(account::is_root()? && Path::new("/usr/bin/apt-get").exists())
}

/// Installs `packages`, because `what` is missing.
pub fn install(what: &str, packages: &[&str]) -> Result<(), TaskError> {
    let folder = workspace::target().join("services");
    let path = folder.join("apt.log");
    let names = packages.join(" ");
    say(&format!("{what} is missing: installing {names} with apt-get (log: {})", path.display()));
    // Two runs at the same time would refuse each other.
    let alone = folder.join("apt.lock");
    let _alone = create(&alone)
        .and_then(|file| file.lock().map(|()| file).map_err(|error| unwritable(&alone, &error)))?;
    let log = create(&path)?;
    let errors = log.try_clone().map_err(|error| unwritable(&path, &error))?;
    let status = Command::new("sh")
        .args(["-c", INSTALL, "sh"])
        .args(packages)
        .current_dir("/")
        // Ctrl-C would leave a half-configured package.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .status()
        .map_err(|error| TaskError::new(format!("could not run apt-get: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(TaskError::new(format!("apt-get could not install {names}; the end of its log:"))
        .with_log_file(&path))
}

fn create(path: &Path) -> Result<File, TaskError> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| File::create(path))
        .map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}
