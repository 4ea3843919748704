//! The binary `postrider`, which the systems' tests run and which none of their packages depends on: it has to be built beside them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::foreground::Foreground;
use crate::task_error::TaskError;
use crate::{say, workspace};

/// What builds it.
const PACKAGE: &str = "postrider-cli";

/// The binary. One that was built from a changed file does not outlive this: it is built again, or else removed.
pub(super) struct Binary<'a> {
    path: PathBuf,
    /// Builds it from the files as they are, and gives the exit code.
    build: Box<dyn FnMut() -> Result<u8, TaskError> + 'a>,
    /// Whether a changed file may be in it.
    is_changed: bool,
    /// The packages whose programs stand beside it and may have a changed file in them.
    packages: BTreeSet<String>,
}

impl<'a> Binary<'a> {
    /// The one that tests of this workspace run.
    pub(super) fn of_workspace(foreground: &'a Foreground) -> Self {
        let path = workspace::target().join("debug").join("postrider");
        Self::new(path, move || foreground.run(workspace::cargo().args(["build", "-p", PACKAGE])))
    }

    pub(super) fn new(path: PathBuf, build: impl FnMut() -> Result<u8, TaskError> + 'a) -> Self {
        Self { path, build: Box::new(build), is_changed: false, packages: BTreeSet::new() }
    }

    /// A test of this package is about to be built from a changed file, and with it the package's own program: it is removed at the
    /// end.
    pub(super) fn test_builds(&mut self, package: &str) {
        self.packages.insert(package.to_owned());
    }

    /// Builds it; gives whether that went well.
    pub(super) fn build(&mut self) -> Result<bool, TaskError> {
        let built = (self.build)()? == 0;
        self.is_changed &= !built;
        Ok(built)
    }

    /// Builds it from a file that is changed now and put back later; gives whether that went well.
    pub(super) fn build_changed(&mut self) -> Result<bool, TaskError> {
        self.is_changed = true;
        Ok((self.build)()? == 0)
    }

    /// Builds it if it is not the one of the files as they are; gives whether that went well.
    pub(super) fn build_if_changed(&mut self) -> Result<bool, TaskError> {
        if self.is_changed { self.build() } else { Ok(true) }
    }
}

impl Drop for Binary<'_> {
    fn drop(&mut self) {
        for package in &self.packages {
            let program = self.path.with_file_name(package);
            if program != self.path {
                remove(&program, package);
            }
        }
        // After an interruption nothing is built any more.
        if !self.build_if_changed().is_ok_and(|built| built) {
            remove(&self.path, PACKAGE);
        }
    }
}

/// Removes the program of a package, if it is there.
fn remove(program: &Path, package: &str) {
    let path = program.display();
    match fs::remove_file(program) {
        Ok(()) => say(&format!(
            "removed {path}, which was built from a changed file: `cargo build -p {package}` makes it again"
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => say(&format!(
            "{path} was built from a changed file and could not be removed ({error}): run `cargo build -p {package}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::account::Account;
    use crate::folder;

    /// Does something to a binary whose builds end with these exit codes; gives how many were begun, and whether it is there
    /// afterwards.
    fn after(codes: &[u8], does: impl FnOnce(&mut Binary<'_>)) -> (usize, bool) {
        let folder = folder::create(&Account::own_user()).expect("a folder");
        let path = folder.join("postrider");
        fs::write(&path, "").expect("a file");
        let begun = RefCell::new(0);
        let mut binary = Binary::new(path.clone(), || {
            let mut begun = begun.borrow_mut();
            *begun += 1;
            Ok(codes[*begun - 1])
        });
        does(&mut binary);
        drop(binary);
        let is_there = path.exists();
        folder::remove(&folder).expect("removed");
        (begun.into_inner(), is_there)
    }

    #[test]
    fn one_of_a_changed_file_is_built_again_at_the_end() {
        let changed = after(&[0, 0], |binary| assert!(binary.build_changed().expect("built")));
        assert_eq!(changed, (2, true));
    }

    #[test]
    fn one_of_the_files_as_they_are_is_built_once() {
        let unchanged = after(&[0], |binary| {
            assert!(binary.build().expect("built"));
            assert!(binary.build_if_changed().expect("there is nothing to build"));
        });
        assert_eq!(unchanged, (1, true));
    }

    #[test]
    fn a_change_is_taken_out_before_a_test_that_does_not_need_it() {
        let taken_out = after(&[0, 0], |binary| {
            assert!(binary.build_changed().expect("built"));
            assert!(binary.build_if_changed().expect("built"));
        });
        assert_eq!(taken_out, (2, true));
    }

    #[test]
    fn the_program_of_a_test_of_a_changed_file_is_removed() {
        let folder = folder::create(&Account::own_user()).expect("a folder");
        let [own, program, other] = ["postrider", "umbra", "everbit"].map(|name| folder.join(name));
        for path in [&own, &program, &other] {
            fs::write(path, "").expect("a file");
        }
        let mut binary = Binary::new(own.clone(), || Ok(0));
        binary.test_builds("umbra");
        binary.test_builds("postrider");
        drop(binary);
        let are_there = [own, program, other].map(|path| path.exists());
        folder::remove(&folder).expect("removed");
        assert_eq!(are_there, [true, false, true]);
    }

    #[test]
    fn one_of_a_changed_file_is_removed_where_nothing_is_built_any_more() {
        let interrupted = after(&[130, 130], |binary| assert!(!binary.build_changed().expect("begun")));
        assert_eq!(interrupted, (2, false));
    }
}
