//! Installing PostgreSQL on a machine that has none: Debian's and Ubuntu's package, by root.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::binaries;
use crate::account;
use crate::failure::Failure;
use crate::say;
use crate::workspace;

/// Installs the package without starting the server that it would set up: we start our own.
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
apt-get install -y --no-install-recommends postgresql
"#;

/// Whether the package can be installed here: it takes root and `apt-get`.
pub fn can_install() -> Result<bool, Failure> {
    Ok(account::is_root()? && Path::new("/usr/bin/apt-get").exists())
}

/// Installs the package and gives the folder of its programs.
pub fn install() -> Result<PathBuf, Failure> {
    let path = workspace::target().join("services").join("apt.log");
    say(&format!("PostgreSQL is missing: installing it with apt-get (log: {})", path.display()));
    let log = create(&path)?;
    let errors = log.try_clone().map_err(|error| unwritable(&path, &error))?;
    let status = Command::new("sh")
        .args(["-c", INSTALL])
        .current_dir("/")
        // Ctrl-C would leave a half-configured package.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .status()
        .map_err(|error| Failure::new(format!("could not run apt-get: {error}")))?;
    if !status.success() {
        return Err(
            Failure::new("apt-get could not install PostgreSQL; the end of its log:").with_log_file(&path)
        );
    }
    binaries::find()?.ok_or_else(binaries::missing)
}

fn create(path: &Path) -> Result<File, Failure> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| File::create(path))
        .map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not write {}: {error}", path.display()))
}
