//! Programs of Debian's unstable suite, in a folder of their own: nothing is installed, and nothing of the machine is changed.
//!
//! The packages come from the mirror that apt is set up with, by a list and a cache of their own. Programs that are newer than the
//! machine's C library run through the loader that is unpacked with them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::task_error::TaskError;

/// The key that Debian signs its suites with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Packages that servers name for their set-up in a running system: nothing of them is run here.
const LEFT_OUT: [&str; 2] = ["perl", "debconf"];

/// How a program begins that needs a loader.
const ELF: [u8; 4] = [0x7f, b'E', b'L', b'F'];

/// Fetches `packages` and all that they depend on, and unpacks them into `folder`; gives the
/// folder with `bin`, `sbin` and `lib` in it.
pub fn unpack(packages: &[&str], folder: &Path) -> Result<PathBuf, TaskError> {
    let apt = Apt::set_up(folder)?;
    let debs = folder.join("debs");
    make(&debs)?;
    let mut download = apt.command("apt-get");
    download.args(["-qq", "download"]).args(apt.needed(packages)?).current_dir(&debs);
    process::output(&mut download, &format!("download {} from Debian's unstable suite", packages.join(" ")))?;
    for deb in files(&debs)? {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("--extract").arg(&deb).arg(folder);
        process::output(&mut unpack, "unpack a package")?;
    }
    for used in [debs, apt.folder] {
        fs::remove_dir_all(&used).map_err(|error| unwritable(&used, &error))?;
    }
    let base = folder.join("usr");
    wrap(&base)?;
    Ok(base)
}

/// An apt with lists and a cache of its own, which knows the unstable suite alone.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn set_up(folder: &Path) -> Result<Self, TaskError> {
        let apt = Self { folder: folder.join("apt") };
        for below in ["lists/partial", "cache/archives/partial"] {
            make(&apt.folder.join(below))?;
        }
        let list = apt.folder.join("sources.list");
        let line = format!("deb [signed-by={KEYRING}] {} sid main\n", mirror()?);
        fs::write(&list, line).map_err(|error| unwritable(&list, &error))?;
        process::output(
            apt.command("apt-get").args(["-qq", "update"]),
            "read the lists of Debian's unstable suite",
        )?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let set = |name: &str, path: &str| format!("{name}={}", self.folder.join(path).display());
        for setting in [
            set("Dir::Etc::sourcelist", "sources.list"),
            set("Dir::Etc::sourceparts", "none"),
            set("Dir::State::lists", "lists"),
            set("Dir::Cache", "cache"),
            "APT::Sandbox::User=root".to_owned(),
        ] {
            command.arg("-o").arg(setting);
        }
        command
    }

    /// The packages and all that they depend on.
    fn needed(&self, packages: &[&str]) -> Result<BTreeSet<String>, TaskError> {
        let mut depends = self.command("apt-cache");
        depends.args(["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts"]);
        depends.args(["--no-breaks", "--no-replaces", "--no-enhances"]).args(packages);
        Ok(named(&process::output(&mut depends, "find what a package needs")?))
    }
}

/// The packages in what `apt-cache depends --recurse` prints: each stands at the beginning of a line, and virtual ones in brackets.
fn named(printed: &str) -> BTreeSet<String> {
    let is_left_out = |name: &str| LEFT_OUT.iter().any(|left_out| name.starts_with(left_out));
    let names = printed.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_alphanumeric()));
    names.filter(|name| !is_left_out(name)).map(str::to_owned).collect()
}

/// The mirror of Debian that apt is set up with.
fn mirror() -> Result<String, TaskError> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"]);
    let said = process::output(&mut targets, "ask apt for its mirror")?;
    said.lines().find_map(|line| line.strip_prefix("Debian|Debian|")).map(str::to_owned).ok_or_else(|| {
        TaskError::new(
            "apt has no list of a Debian mirror: run `apt-get update` on Debian, or name other versions",
        )
    })
}

/// Lets each program run by the loader and the libraries that came with it.
fn wrap(base: &Path) -> Result<(), TaskError> {
    let library = base.join("lib");
    let folders = fs::read_dir(&library).map_err(|error| unwritable(&library, &error))?;
    let mut folders = folders.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let found = folders.find_map(|folder| Some((loader_in(&folder)?, folder)));
    let Some((loader, own)) = found else { return Ok(()) };
    for folder in ["bin", "sbin"].map(|folder| base.join(folder)).iter().filter(|folder| folder.is_dir()) {
        for program in files(folder)? {
            let is_link = program.symlink_metadata().is_ok_and(|program| program.is_symlink());
            if is_link || !is_elf(&program) {
                continue;
            }
            let name = program.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
            let real = folder.join(format!(".{name}"));
            fs::rename(&program, &real).map_err(|error| unwritable(&real, &error))?;
            let script = format!(
                "#!/bin/sh\nexec '{}' --library-path '{}:{}' '{}' \"$@\"\n",
                loader.display(),
                own.display(),
                library.display(),
                real.display()
            );
            fs::write(&program, script)
                .and_then(|()| fs::set_permissions(&program, Permissions::from_mode(0o755)))
                .map_err(|error| unwritable(&program, &error))?;
        }
    }
    Ok(())
}

fn loader_in(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten();
    files.map(|file| file.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux")) && path.is_file()
    })
}

fn is_elf(path: &Path) -> bool {
    let mut beginning = [0; ELF.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut beginning)).is_ok() && beginning == ELF
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let entries = fs::read_dir(folder)
        .map_err(|error| TaskError::new(format!("could not read {}: {error}", folder.display())))?;
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect())
}

fn make(folder: &Path) -> Result<(), TaskError> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_package_needs_is_named_once_and_without_what_only_sets_it_up() {
        let printed = "mysql-server-core\n  Depends: libc6\n    libc6-amd64\n  Depends: perl\nlibc6\nperl\nperl-base\n<debconf-2.0>\n\
                       debconf\nlibc6\n";
        assert_eq!(named(printed), BTreeSet::from(["libc6".to_owned(), "mysql-server-core".to_owned()]));
    }

    #[test]
    fn a_program_that_was_unpacked_runs_by_its_own_loader() {
        let base = std::env::temp_dir().join(format!("postrider-wrapped-{}", std::process::id()));
        make(&base.join("bin")).expect("a folder");
        make(&base.join("lib/own")).expect("a folder");
        // A loader that says what it was given. It is no new file: a test that starts a process in this moment would keep a new file
        // open for writing, and then nobody can run it ("text file busy").
        std::os::unix::fs::symlink("/bin/echo", base.join("lib/own/ld-linux-x.so.2")).expect("a loader");
        fs::write(base.join("bin/server"), b"\x7fELF and so on").expect("a program");
        fs::write(base.join("bin/script"), "#!/bin/sh\n").expect("a script");
        wrap(&base).expect("wrapped");
        let server = base.join("bin/server");
        let mode = fs::metadata(&server).map(|server| server.permissions().mode() & 0o777);
        let said = process::output(Command::new("sh").arg(&server).arg("--port=1"), "run it");
        let script = fs::read(base.join("bin/script"));
        fs::remove_dir_all(&base).expect("removed");
        assert_eq!(mode.expect("its mode"), 0o755);
        let base = base.display();
        assert_eq!(
            said.expect("it runs").trim(),
            format!("--library-path {base}/lib/own:{base}/lib {base}/bin/.server --port=1")
        );
        assert_eq!(script.expect("a script"), b"#!/bin/sh\n", "a script needs no loader");
    }
}
