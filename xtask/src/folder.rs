//! A folder of a server's own, outside the checkout, that goes away with the server.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::task_error::TaskError;

/// How the name of every such folder begins; nothing else is ever removed.
const PREFIX: &str = "postrider-";

/// Makes a new folder that `account` owns and nobody else can read.
///
/// It lies in the temporary folder of this process or, where `account` cannot reach that, in `/tmp`. Its path is
/// short, because the path of a Unix socket is limited to about a hundred characters.
pub fn create(account: &Account) -> Result<PathBuf, TaskError> {
    let own = std::env::temp_dir();
    let path = create_in(&own, account)?;
    if account.can_write(&path) {
        return Ok(path);
    }
    remove(&path)?;
    let path = create_in(Path::new("/tmp"), account)?;
    if account.can_write(&path) {
        return Ok(path);
    }
    remove(&path)?;
    Err(TaskError::new(format!(
        "the server's account can write neither below {} nor below /tmp",
        own.display()
    )))
}

/// Removes a folder made by [`create`], with all that is in it; one that is gone already is no failure.
///
/// Any other folder is refused, whatever asked for it.
pub fn remove(path: &Path) -> Result<(), TaskError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !path.is_absolute() || !name.starts_with(PREFIX) {
        return Err(TaskError::new(format!(
            "{} is not a server's folder and was not removed",
            path.display()
        )));
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(TaskError::new(format!("could not remove {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

fn create_in(parent: &Path, account: &Account) -> Result<PathBuf, TaskError> {
    loop {
        let name = format!("{PREFIX}{:08x}", RandomState::new().hash_one(PREFIX) as u32);
        let path = parent.join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                account.own(&path)?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(TaskError::new(format!(
                    "could not make a folder in {}: {error}",
                    parent.display()
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_a_servers_is_never_removed() {
        let other = std::env::temp_dir().join(format!("somebody-elses-{}", std::process::id()));
        fs::create_dir(&other).expect("a folder");
        assert!(remove(&other).is_err());
        assert!(other.exists());
        fs::remove_dir(&other).expect("removed");
    }
}
