//! A test program, as `cargo test --no-run --message-format=json` lists it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::task_error::TaskError;

/// A test program that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The package that it tests.
    pub package: String,
    /// The target's name: that of the file in `tests`, or of the library or binary whose unit tests it has.
    pub name: String,
    /// The program itself.
    pub path: PathBuf,
    /// The folder of the package, which it runs in.
    pub folder: PathBuf,
    /// The file that it is made of, within that folder.
    source: PathBuf,
}

impl Program {
    /// The test programs in what cargo listed, a JSON object a line.
    pub fn listed(text: &str) -> Result<Vec<Self>, TaskError> {
        let objects = text.lines().map(|line| {
            serde_json::from_str::<Value>(line)
                .map_err(|error| TaskError::new(format!("what cargo lists is not JSON: {error}")))
        });
        objects.filter_map(|object| object.map(|object| Self::of(&object)).transpose()).collect()
    }

    /// The test program in an object of cargo's; nothing if it is of anything else.
    fn of(object: &Value) -> Option<Self> {
        let of_tests = object["reason"] == "compiler-artifact" && object["profile"]["test"] == true;
        let path = object["executable"].as_str().filter(|_| of_tests)?;
        let folder = Path::new(object["manifest_path"].as_str()?).parent()?.to_owned();
        let source = Path::new(object["target"]["src_path"].as_str()?);
        Some(Self {
            package: folder.file_name()?.to_string_lossy().into_owned(),
            name: object["target"]["name"].as_str()?.to_owned(),
            path: path.into(),
            source: source.strip_prefix(&folder).unwrap_or(source).to_owned(),
            folder,
        })
    }

    /// Whether it is the one of that package and name.
    pub fn is(&self, (package, name): (&str, &str)) -> bool {
        self.package == package && self.name == name
    }

    /// As `cargo test` announces it, with the package.
    pub fn heading(&self) -> String {
        format!("{}/{} ({})", self.package, self.source.display(), self.path.display())
    }

    /// What its tests are called by: `package::program::`.
    pub fn prefix(&self) -> String {
        format!("{}::{}::", self.package, self.name)
    }

    /// A name for a file of its own.
    pub fn file(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_what_cargo_lists() {
        let listed = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["lib"],"name":"a","src_path":"/w/crates/a/src/lib.rs"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["bin"],"name":"a","src_path":"/w/crates/a/src/main.rs"},"profile":{"test":false},"executable":"/w/target/debug/a"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"kind":["test"],"name":"keys","src_path":"/w/crates/a/tests/keys.rs"},"profile":{"test":true},"executable":"/w/target/debug/deps/keys-1"}
{"reason":"build-finished","success":true}
"#;
        let programs = Program::listed(listed).expect("JSON");
        let [program] = &programs[..] else { panic!("one program: {programs:?}") };
        assert!(program.is(("a", "keys")) && !program.is(("keys", "a")));
        assert_eq!(program.folder, Path::new("/w/crates/a"));
        assert_eq!(program.heading(), "a/tests/keys.rs (/w/target/debug/deps/keys-1)");
        assert!(Program::listed("warning: something\n").is_err());
    }
}
