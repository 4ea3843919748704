//! Of which package and of which test programs a Rust file is, as far as its path tells.

use std::fs;
use std::path::{Path, PathBuf};

use crate::task_error::TaskError;
use crate::workspace;

/// The folders with packages.
const FOLDERS: [&str; 3] = ["crates", "systems", "examples"];

/// A package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// What it is called by: the name of its folder.
    pub(super) name: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// The test programs that a file in `src` may be of: those of the library and of the binaries.
    own: Vec<String>,
}

/// Where a file is in its package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The test programs that it may be of.
    pub(super) programs: Vec<String>,
    /// Its module.
    pub(super) module: String,
}

/// All packages.
pub(super) fn packages() -> Result<Vec<Package>, TaskError> {
    let mut packages = vec![Package::in_folder(workspace::root().join("xtask"))?];
    for folder in FOLDERS.map(|folder| workspace::root().join(folder)) {
        let unreadable = |error| TaskError::new(format!("could not read {}: {error}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.join("Cargo.toml").is_file() {
                packages.push(Package::in_folder(path)?);
            }
        }
    }
    Ok(packages)
}

impl Package {
    /// Of its name, its folder and its `Cargo.toml`.
    pub(super) fn new(name: &str, folder: PathBuf, manifest: &toml::Table) -> Self {
        let binaries = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
        let named = binaries.filter_map(|binary| binary.get("name")?.as_str()).map(str::to_owned);
        let own = [name.to_owned(), name.replace('-', "_")].into_iter().chain(named).collect();
        Self { name: name.to_owned(), folder, own }
    }

    fn in_folder(folder: PathBuf) -> Result<Self, TaskError> {
        let path = folder.join("Cargo.toml");
        let wrong = |what: &dyn std::fmt::Display| TaskError::new(format!("{}: {what}", path.display()));
        let manifest = fs::read_to_string(&path).map_err(|error| wrong(&error))?;
        let manifest: toml::Table = manifest.parse().map_err(|error| wrong(&error))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self::new(&name, folder, &manifest))
    }

    /// Where a file is, by its path within the folder; nothing if no test program has it.
    pub(super) fn place(&self, path: &Path) -> Option<Place> {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let stem = |file: &str| file.strip_suffix(".rs").unwrap_or(file).to_owned();
        let programs = match parts[..] {
            ["src", "bin", program, ..] | ["tests" | "examples" | "benches", program, ..] => {
                vec![stem(program)]
            }
            ["src", ..] => self.own.clone(),
            _ => return None,
        };
        let module = match parts[..] {
            [.., folder, "mod.rs" | "main.rs"] => folder.to_owned(),
            [.., file] => stem(file),
            [] => return None,
        };
        Some(Place { programs, module })
    }

    /// The arguments with which cargo builds a test program: the one in `tests`, or those of the library and the binaries.
    pub(super) fn target(&self, program: &str) -> Vec<String> {
        let tests = self.folder.join("tests");
        if tests.join(program).with_extension("rs").is_file() || tests.join(program).join("main.rs").is_file()
        {
            return vec!["--test".to_owned(), program.to_owned()];
        }
        let library = self.folder.join("src/lib.rs").is_file().then(|| "--lib".to_owned());
        library.into_iter().chain(["--bins".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::folder;

    fn package(folder: &Path) -> Package {
        let manifest = "[[bin]]\nname = \"tool\"\npath = \"src/main.rs\"\n".parse().expect("TOML");
        Package::new("a-tool", folder.to_owned(), &manifest)
    }

    #[test]
    fn a_file_is_of_the_program_that_its_path_names() {
        let place = |path: &str| package(Path::new("a-tool")).place(Path::new(path));
        let at = |programs: &[&str], module: &str| {
            let programs = programs.iter().map(|name| (*name).to_owned()).collect();
            Some(Place { programs, module: module.to_owned() })
        };
        assert_eq!(place("tests/flows.rs"), at(&["flows"], "flows"));
        assert_eq!(place("tests/system/main.rs"), at(&["system"], "system"));
        assert_eq!(place("tests/system/outage.rs"), at(&["system"], "outage"));
        assert_eq!(place("src/bin/other.rs"), at(&["other"], "other"));
        assert_eq!(place("src/alerts/reading.rs"), at(&["a-tool", "a_tool", "tool"], "reading"));
        assert_eq!(place("src/alerts/mod.rs"), at(&["a-tool", "a_tool", "tool"], "alerts"));
        assert_eq!(place("build.rs"), None);
    }

    #[test]
    fn a_program_that_is_not_in_tests_is_that_of_the_library_or_a_binary() {
        let root = folder::create(&Account::own_user()).expect("a folder");
        for (folder, file) in [("tests", "flows.rs"), ("tests/system", "main.rs"), ("src", "lib.rs")] {
            fs::create_dir_all(root.join(folder)).expect("a folder");
            fs::write(root.join(folder).join(file), "").expect("a file");
        }
        let targets = ["flows", "system", "a_tool"].map(|program| package(&root).target(program));
        fs::remove_file(root.join("src/lib.rs")).expect("removed");
        let without = package(&root).target("tool");
        folder::remove(&root).expect("removed");
        assert_eq!(targets, [vec!["--test", "flows"], vec!["--test", "system"], vec!["--lib", "--bins"]]);
        assert_eq!(without, ["--bins"]);
    }
}
